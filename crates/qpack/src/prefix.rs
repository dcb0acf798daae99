//! What stands before the field lines of a section: which entries it needs, and where its indices count from
//! (RFC 9204 §4.5.1).

use crate::error::Error;
use crate::integer;

/// The prefix of an encoded field section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// How many entries must have been inserted before the section can be decoded; zero if it needs none.
    pub(crate) required: u64,
    /// The absolute index that relative ones count down from, and others up.
    pub(crate) base: u64,
}

/// The most entries that a table of a capacity can have (RFC 9204 §4.5.1.1).
fn entries_max(capacity_max: usize) -> u64 {
    (capacity_max / crate::FIELD_OVERHEAD) as u64
}

impl Prefix {
    /// Writes the prefix to a decoder that allows tables of `capacity_max` bytes.
    pub(crate) fn write(self, capacity_max: usize, out: &mut Vec<u8>) {
        if self.required == 0 {
            out.extend([0, 0]);
            return;
        }
        integer::write(out, 0, 8, self.required % (2 * entries_max(capacity_max)) + 1);
        if self.base >= self.required {
            integer::write(out, 0, 7, self.base - self.required);
        } else {
            integer::write(out, 0x80, 7, self.required - self.base - 1);
        }
    }

    /// Takes a prefix from the beginning of a section, at a decoder that allows tables of `capacity_max` bytes and has
    /// `inserted` entries so far.
    pub(crate) fn read(input: &mut &[u8], capacity_max: usize, inserted: u64) -> Result<Self, Error> {
        let encoded = integer::read(input, 8).map_err(|_| Error::section("no Required Insert Count"))?;
        let required = required(encoded, entries_max(capacity_max), inserted)
            .ok_or(Error::section("a Required Insert Count that cannot be"))?;
        let is_below = input.first().is_some_and(|byte| byte & 0x80 != 0);
        let delta = integer::read(input, 7).map_err(|_| Error::section("no Base"))?;
        let base = if is_below { required.checked_sub(delta + 1) } else { required.checked_add(delta) };
        Ok(Self { required, base: base.ok_or(Error::section("a Base below zero"))? })
    }
}

/// The count of which the remainder was sent (RFC 9204 §4.5.1.1).
fn required(encoded: u64, entries_max: u64, inserted: u64) -> Option<u64> {
    if encoded == 0 {
        return Some(0);
    }
    let range = 2 * entries_max;
    if encoded > range {
        return None;
    }
    let value_max = inserted + entries_max;
    let required = value_max / range * range + encoded - 1;
    let required = if required > value_max { required.checked_sub(range)? } else { required };
    (required > 0).then_some(required)
}

#[cfg(test)]
mod tests;
