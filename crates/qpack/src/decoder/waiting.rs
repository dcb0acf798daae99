//! Sections that wait for entries of the table.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::prefix::Prefix;

/// The sections that wait, one of a stream. How many there may be is the caller's to check.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_stream: BTreeMap<u64, (Prefix, Bytes)>,
    /// How many inserts each waits for, with its stream.
    by_count: BTreeSet<(u64, u64)>,
    bytes: usize,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.by_stream.len()
    }

    /// What they take together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn contains(&self, stream_id: u64) -> bool {
        self.by_stream.contains_key(&stream_id)
    }

    /// Keeps the lines of a section of a stream that has none here.
    pub(super) fn add(&mut self, stream_id: u64, prefix: Prefix, lines: Bytes) {
        self.bytes += lines.len();
        self.by_count.insert((prefix.required, stream_id));
        self.by_stream.insert(stream_id, (prefix, lines));
    }

    pub(super) fn remove(&mut self, stream_id: u64) -> Option<(Prefix, Bytes)> {
        let (prefix, lines) = self.by_stream.remove(&stream_id)?;
        self.by_count.remove(&(prefix.required, stream_id));
        self.bytes -= lines.len();
        Some((prefix, lines))
    }

    /// Takes a section that needs no more than `inserted` entries.
    pub(super) fn take_ready(&mut self, inserted: u64) -> Option<(u64, Prefix, Bytes)> {
        let &(required, stream_id) = self.by_count.first()?;
        if required > inserted {
            return None;
        }
        let (prefix, lines) = self.remove(stream_id)?;
        Some((stream_id, prefix, lines))
    }
}
