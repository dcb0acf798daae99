//! What goes into the dynamic table, and what a section refers to.
//!
//! A section is planned in two passes. The first looks its fields up: those that are in the table are referred to, others
//! are candidates. The second inserts candidates, those that save most for their size first, where what has to be evicted
//! for one is worth less. Entries in the way that are worth more are duplicated, which costs a byte.

use super::history::{ONE, SeenName};
use super::lines::{Line, is_sensitive};
use super::stored::Worth;
use super::{Dynamic, Instructions, References};
use crate::field::FieldRef;
use crate::hash::hash;
use crate::instruction::{self, NameRef};
use crate::static_table::{self, Match};
use crate::string;
use crate::table::Entry;

/// What an encoder is allowed.
pub(super) struct Limits {
    pub(super) capacity: usize,
    pub(super) blocked_streams: usize,
    pub(super) cookie_len_min: usize,
}

/// A field that may go into the table.
struct Candidate<'a> {
    field: FieldRef<'a>,
    /// Its place in the section.
    line: usize,
    /// Whether its name alone is to be inserted, without a value.
    is_name: bool,
    name_hash: u64,
    static_name: Option<u8>,
    worth: Worth,
    /// What it costs on the encoder stream, in bytes.
    cost: u32,
}

/// What stands in the way of a candidate.
enum Way {
    /// Nothing, if these entries are duplicated.
    Clear(Vec<u64>),
    /// An entry that a section refers to, or that the decoder may not have yet.
    Held(u64),
    /// What is worth more than the candidate, or too much to look at.
    Closed,
}

/// A reserve takes at most this part of the table.
const RESERVE_SHARE: usize = 8;

/// The most candidates of a section that are looked at: what others put into a message must not cost time without an end.
const CANDIDATES_MAX: usize = 32;

/// The most entries in the way of a candidate that are looked at.
const STEPS_MAX: usize = 32;

impl Dynamic {
    /// Decides how the fields of a section are written, changes the table for it, and tells what the section refers to.
    pub(super) fn plan<'a>(
        &mut self,
        stream_id: u64,
        fields: impl Iterator<Item = FieldRef<'a>>,
        limits: &Limits,
        lines: &mut Vec<Line>,
        instructions: &mut Instructions<'_>,
    ) -> Option<References> {
        if self.outstanding.is_full() {
            lines.extend(fields.map(|field| Line::without_table(field, limits.cookie_len_min)));
            return None;
        }
        let now = self.history.tick();
        let may_block = self.outstanding.is_at_risk(stream_id, self.known)
            || self.outstanding.streams_at_risk() < limits.blocked_streams;
        let mut candidates = Vec::new();
        for field in fields {
            let line = self.look_up(field, now, limits, may_block, lines.len(), &mut candidates);
            lines.push(line);
        }
        candidates.sort_by_key(|candidate| {
            std::cmp::Reverse(candidate.worth.value(now) / candidate.field.size() as u64)
        });
        for candidate in candidates.iter().take(CANDIDATES_MAX) {
            self.try_insert(candidate, now, limits, may_block, lines, instructions);
        }
        let references = references(lines);
        if let Some(references) = references {
            self.outstanding.add(stream_id, references, self.known);
        }
        references
    }

    /// How a field is written with the table as it is. One that would be worth an entry becomes a candidate.
    fn look_up<'a>(
        &mut self,
        field: FieldRef<'a>,
        now: u32,
        limits: &Limits,
        may_block: bool,
        line: usize,
        candidates: &mut Vec<Candidate<'a>>,
    ) -> Line {
        let name_hash = hash(0, field.name);
        let sensitive = is_sensitive(field, limits.cookie_len_min);
        let found = static_table::find(name_hash, field.name, field.value);
        if let (Some(Match::Field(index)), false) = (found, sensitive) {
            return Line::Indexed(NameRef::Static(index.into()));
        }
        let static_name = found.map(Match::index);
        if sensitive {
            return Line::Literal { name: static_name.map(|index| NameRef::Static(index.into())), sensitive };
        }
        let seen = *self.history.field(hash(name_hash, field.value));
        let name = *self.history.name(name_hash, field.name, seen.weight > ONE);
        let can_refer = |index: u64| index < self.known || may_block;
        let stored = self.table.find(seen.entry, field);
        if let Some(index) = stored {
            self.table.touch(index, now, name.prospect());
            // A copy that the decoder may not have yet stands for the entry that it was made of.
            let index = Some(index)
                .filter(|index| can_refer(*index))
                .or_else(|| self.table.find_before(self.known, field));
            if let Some(index) = index {
                return Line::Indexed(NameRef::Dynamic(index));
            }
        }
        let dynamic_name = match static_name {
            Some(_) => None,
            None => self.table.find_name(name.entry, field.name).filter(|index| can_refer(*index)),
        };
        if stored.is_none() {
            let field_worth = Worth {
                weight: seen.weight,
                last: now,
                prospect: name.prospect(),
                saving: literal_len(field, static_name.is_some() || dynamic_name.is_some()) - 1,
            };
            let cost = field_worth.saving + 1;
            candidates.push(Candidate {
                field,
                line,
                is_name: false,
                name_hash,
                static_name,
                worth: field_worth,
                cost,
            });
            if static_name.is_none() && self.table.find_name(name.entry, field.name).is_none() {
                candidates.extend(name_alone(field, line, name_hash, &name, now));
            }
        }
        if let Some(index) = dynamic_name {
            self.table.touch(index, now, ONE);
        }
        let name =
            static_name.map(|index| NameRef::Static(index.into())).or(dynamic_name.map(NameRef::Dynamic));
        Line::Literal { name, sensitive }
    }

    /// Inserts a candidate if it pays, and lets the section refer to it if it may.
    fn try_insert(
        &mut self,
        candidate: &Candidate<'_>,
        now: u32,
        limits: &Limits,
        may_block: bool,
        lines: &mut [Line],
        instructions: &mut Instructions<'_>,
    ) {
        let field = candidate.field;
        // Another candidate may have brought it in.
        if let Some(index) = self.find_now(candidate) {
            if may_block {
                lines[candidate.line] = candidate.line_at(index, lines[candidate.line]);
            }
            return;
        }
        if !self.is_worth_it(candidate, now, limits, may_block)
            || !self.make_room(candidate, now, limits, may_block, lines, instructions)
        {
            return;
        }
        let static_name = candidate.static_name.map(|index| NameRef::Static(index.into()));
        let name_ref = static_name.or_else(|| {
            let index = self.table.find_name(self.history.peek_name(candidate.name_hash)?, field.name)?;
            Some(NameRef::Dynamic(self.table.inserted() - 1 - index))
        });
        if !instructions.write(|out| instruction::write_insert(out, name_ref, field.name, field.value)) {
            return;
        }
        let Some(index) = self.table.insert(field, candidate.worth) else { return };
        self.history.set_entry(hash(candidate.name_hash, field.value), candidate.name_hash, index);
        if may_block {
            lines[candidate.line] = candidate.line_at(index, lines[candidate.line]);
        }
    }

    /// The entry that has what the candidate would bring in.
    fn find_now(&self, candidate: &Candidate<'_>) -> Option<u64> {
        if candidate.is_name {
            return self.table.find_name(self.history.peek_name(candidate.name_hash)?, candidate.field.name);
        }
        self.table.find(self.history.peek(hash(candidate.name_hash, candidate.field.value))?, candidate.field)
    }

    /// Whether an entry of a candidate would save more than it costs, if nothing had to go for it.
    fn is_worth_it(&self, candidate: &Candidate<'_>, now: u32, limits: &Limits, may_block: bool) -> bool {
        if candidate.field.size() > limits.capacity {
            return false;
        }
        // A peer that is not to be blocked gets one entry first. Only if it shows that it uses its table it gets more.
        if !may_block && self.known == 0 && self.table.inserted() > 0 {
            return false;
        }
        // Where the section can refer to it the literal is only written elsewhere.
        let extra = if may_block { 1 + u32::from(candidate.is_name) } else { candidate.cost };
        candidate.worth.value(now) > u64::from(extra) * u64::from(ONE)
    }

    /// Evicts what is worth less than the candidate until that fits, and duplicates what is worth more.
    fn make_room(
        &mut self,
        candidate: &Candidate<'_>,
        now: u32,
        limits: &Limits,
        may_block: bool,
        lines: &mut [Line],
        instructions: &mut Instructions<'_>,
    ) -> bool {
        if self.table.capacity() == 0 {
            if !instructions.set_capacity(limits.capacity) {
                return false;
            }
            self.table.set_capacity(limits.capacity);
        }
        let kept = match self.way(candidate, now, may_block, lines) {
            Way::Clear(kept) => kept,
            Way::Held(index) => {
                self.copy_held(index, may_block, lines, instructions);
                return false;
            }
            Way::Closed => return false,
        };
        kept.into_iter().all(|index| self.duplicate(index, may_block, lines, instructions))
    }

    /// Looks at the oldest entries, which a candidate would evict.
    fn way(&self, candidate: &Candidate<'_>, now: u32, may_block: bool, lines: &[Line]) -> Way {
        let size = candidate.field.size();
        let needed = size + self.reserve(may_block, lines);
        let gain = candidate.worth.value(now);
        let (mut kept, mut free, mut loss) = (Vec::new(), self.table.free(), 0);
        let dropped = self.table.dropped();
        let held = self.outstanding.oldest().unwrap_or(u64::MAX).min(self.known);
        for index in (dropped..self.table.inserted()).take(STEPS_MAX) {
            if free >= needed {
                return Way::Clear(kept);
            }
            let is_used = lines.iter().any(|line| line.dynamic() == Some(index));
            if index >= held || is_used && !may_block {
                return Way::Held(index);
            }
            let (Some(entry), Some(worth)) = (self.table.get(index), self.table.worth(index)) else { break };
            let value = worth.value(now);
            if is_used || value * size as u64 > gain * entry.size() as u64 {
                loss += 2 * u64::from(ONE);
                kept.push(index);
            } else {
                loss += value;
                free += entry.size();
            }
            if loss >= gain {
                return Way::Closed;
            }
        }
        if free >= needed { Way::Clear(kept) } else { Way::Closed }
    }

    /// What is left free where entries are held by sections on their way, in bytes: room for a copy of the oldest one that this
    /// section refers to as well. Sections that follow refer to the copy, so that the old one can go some day.
    fn reserve(&self, may_block: bool, lines: &[Line]) -> usize {
        if may_block && self.outstanding.oldest().is_none() {
            return 0;
        }
        let oldest = lines.iter().filter_map(|line| line.dynamic()).min();
        let size = oldest.and_then(|index| self.table.get(index)).map_or(0, Entry::size);
        if size * RESERVE_SHARE <= self.table.capacity() { size } else { 0 }
    }

    /// Copies an entry that is in the way and in use, if it has no copy yet and nothing need be evicted for it.
    fn copy_held(
        &mut self,
        index: u64,
        may_block: bool,
        lines: &mut [Line],
        instructions: &mut Instructions<'_>,
    ) {
        let Some(entry) = self.table.get(index) else { return };
        let newest = self.history.peek(hash(hash(0, &entry.name), &entry.value));
        let is_used = lines.iter().any(|line| line.dynamic() == Some(index));
        if is_used && newest == Some(index as u32) && entry.size() <= self.table.free() {
            self.duplicate(index, may_block, lines, instructions);
        }
    }

    /// Inserts an entry once more, and lets the section refer to the new one if it may. Returns whether that was possible.
    fn duplicate(
        &mut self,
        index: u64,
        may_block: bool,
        lines: &mut [Line],
        instructions: &mut Instructions<'_>,
    ) -> bool {
        let relative = self.table.inserted() - 1 - index;
        if !instructions.write(|out| instruction::write_duplicate(out, relative)) {
            return false;
        }
        let Some(new) = self.table.duplicate(index) else { return false };
        self.note_entry(new);
        if may_block {
            for line in lines.iter_mut().filter(|line| line.dynamic() == Some(index)) {
                line.move_to(new);
            }
        }
        true
    }

    /// Lets the history know where an entry is.
    fn note_entry(&mut self, index: u64) {
        let Some(entry) = self.table.get(index) else { return };
        let name_hash = hash(0, &entry.name);
        self.history.set_entry(hash(name_hash, &entry.value), name_hash, index);
    }
}

impl Candidate<'_> {
    /// How its field is written with an entry of its own, where it was written like `line` without.
    fn line_at(&self, index: u64, line: Line) -> Line {
        match line {
            Line::Literal { name: None, sensitive } if self.is_name => {
                Line::Literal { name: Some(NameRef::Dynamic(index)), sensitive }
            }
            line if self.is_name => line,
            _ => Line::Indexed(NameRef::Dynamic(index)),
        }
    }
}

/// A name that was seen before with other values, as a candidate.
fn name_alone<'a>(
    field: FieldRef<'a>,
    line: usize,
    name_hash: u64,
    name: &SeenName,
    now: u32,
) -> Option<Candidate<'a>> {
    let saving = string::encoded_len(3, field.name) as u32 - 1;
    let worth = Worth { weight: name.weight, last: now, prospect: ONE, saving };
    let (field, cost) = (FieldRef { value: b"", ..field }, saving + 3);
    let candidate = Candidate { field, line, is_name: true, name_hash, static_name: None, worth, cost };
    (name.weight > ONE).then_some(candidate)
}

/// The bytes of a literal, of which a table may have the name.
fn literal_len(field: FieldRef<'_>, has_name: bool) -> u32 {
    let name_len = if has_name { 1 } else { string::encoded_len(3, field.name) };
    (name_len + string::encoded_len(7, field.value)) as u32
}

/// What the lines of a section refer to.
fn references(lines: &[Line]) -> Option<References> {
    let indices = lines.iter().filter_map(|line| line.dynamic());
    let (oldest, newest) = indices
        .fold((u64::MAX, None), |(oldest, newest), index| (oldest.min(index), newest.max(Some(index))));
    Some(References { required: newest? + 1, oldest })
}
