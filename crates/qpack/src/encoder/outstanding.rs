//! Sections that the decoder has not acknowledged: which entries they hold, and which streams they may block.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most sections with references that may be unacknowledged. While there are as many, sections refer to nothing.
pub(super) const SECTIONS_MAX: usize = 1024;

/// What an encoded section refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct References {
    /// One more than the newest entry (the Required Insert Count).
    pub(super) required: u64,
    /// The oldest entry. Entries are evicted in their order, so that none behind it can go before it.
    pub(super) oldest: u64,
}

/// The sections with references that were sent and neither acknowledged nor cancelled.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    by_stream: BTreeMap<u64, VecDeque<References>>,
    /// The oldest entries of the sections, with how many name each.
    oldest: BTreeMap<u64, usize>,
    /// Streams that need more than the decoder is known to have: what they need, and which they are.
    at_risk: BTreeSet<(u64, u64)>,
    sections: usize,
}

impl Outstanding {
    pub(super) fn is_full(&self) -> bool {
        self.sections >= SECTIONS_MAX
    }

    /// The oldest entry that a section refers to.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.oldest.first_key_value().map(|(index, _)| *index)
    }

    /// How many streams may be blocked.
    pub(super) fn streams_at_risk(&self) -> usize {
        self.at_risk.len()
    }

    /// Whether a stream may be blocked already, so that it can be once more.
    pub(super) fn is_at_risk(&self, stream_id: u64, known: u64) -> bool {
        self.by_stream.get(&stream_id).is_some_and(|sections| needed(sections) > known)
    }

    /// Notes a section that leaves, while the decoder is known to have `known` entries.
    pub(super) fn add(&mut self, stream_id: u64, section: References, known: u64) {
        let sections = self.by_stream.entry(stream_id).or_default();
        self.at_risk.remove(&(needed(sections), stream_id));
        sections.push_back(section);
        let needed = needed(sections);
        if needed > known {
            self.at_risk.insert((needed, stream_id));
        }
        *self.oldest.entry(section.oldest).or_default() += 1;
        self.sections += 1;
    }

    /// Takes the first section of a stream: what the decoder acknowledges.
    pub(super) fn acknowledge(&mut self, stream_id: u64) -> Option<References> {
        let sections = self.by_stream.get_mut(&stream_id)?;
        let needed_before = needed(sections);
        let section = sections.pop_front()?;
        let needed = needed(sections);
        if sections.is_empty() {
            self.by_stream.remove(&stream_id);
        }
        if needed != needed_before && self.at_risk.remove(&(needed_before, stream_id)) && needed > 0 {
            self.at_risk.insert((needed, stream_id));
        }
        self.release(section);
        Some(section)
    }

    /// Forgets a stream.
    pub(super) fn cancel(&mut self, stream_id: u64) {
        let Some(sections) = self.by_stream.remove(&stream_id) else { return };
        self.at_risk.remove(&(needed(&sections), stream_id));
        for section in sections {
            self.release(section);
        }
    }

    /// The decoder is known to have `known` entries: streams that need no more cannot be blocked.
    pub(super) fn on_known(&mut self, known: u64) {
        while self.at_risk.first().is_some_and(|(needed, _)| *needed <= known) {
            self.at_risk.pop_first();
        }
    }

    fn release(&mut self, section: References) {
        self.sections -= 1;
        if let Some(count) = self.oldest.get_mut(&section.oldest) {
            *count -= 1;
            if *count == 0 {
                self.oldest.remove(&section.oldest);
            }
        }
    }
}

/// How many entries the sections of a stream need.
fn needed(sections: &VecDeque<References>) -> u64 {
    sections.iter().map(|section| section.required).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
