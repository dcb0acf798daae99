//! Fields that a section has in common with the one before.

use super::lines::{Line, is_sensitive};
use crate::field::FieldRef;

/// So many lines of a section are remembered.
const PLACES_MAX: usize = 16;
/// How long a field and its line may be together to be remembered, in bytes.
const BYTES_MAX: usize = 256;

/// The lines of the latest sections without a dynamic table, by their places there. The messages of a connection have most fields in
/// common and in the same order (a date, a type, the name of a server): to compare one takes a fraction of the time that it takes to look
/// for it in the static table and to write it in the Huffman code.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    places: Vec<Place>,
}

/// What was written last at a place.
#[derive(Debug, Default)]
struct Place {
    name_len: usize,
    value_len: usize,
    /// The name, the value and their line.
    bytes: Vec<u8>,
}

impl Repeated {
    /// Writes the fields of a section.
    pub(super) fn write<'a>(
        &mut self,
        fields: impl Iterator<Item = FieldRef<'a>>,
        cookie_len_min: usize,
        out: &mut Vec<u8>,
    ) {
        for (at, field) in fields.enumerate() {
            match self.places.get(at) {
                Some(place) if !field.sensitive && place.has(field) => out.extend_from_slice(place.line()),
                _ => {
                    let start = out.len();
                    Line::without_table(field, cookie_len_min).write(field, 0, out);
                    self.remember(at, field, cookie_len_min, &out[start..]);
                }
            }
        }
    }

    /// Remembers a line, but for secrets, which are not kept.
    fn remember(&mut self, at: usize, field: FieldRef<'_>, cookie_len_min: usize, line: &[u8]) {
        if at == self.places.len() && at < PLACES_MAX {
            self.places.push(Place::default());
        }
        let Some(place) = self.places.get_mut(at) else { return };
        place.bytes.clear();
        (place.name_len, place.value_len) = (0, 0);
        let len = field.name.len() + field.value.len() + line.len();
        if len <= BYTES_MAX && !is_sensitive(field, cookie_len_min) {
            (place.name_len, place.value_len) = (field.name.len(), field.value.len());
            place.bytes.reserve_exact(len);
            [field.name, field.value, line].into_iter().for_each(|part| place.bytes.extend_from_slice(part));
        }
    }
}

impl Place {
    fn has(&self, field: FieldRef<'_>) -> bool {
        let (name, rest) = self.bytes.split_at(self.name_len);
        !self.bytes.is_empty() && name == field.name && rest[..self.value_len] == *field.value
    }

    fn line(&self) -> &[u8] {
        &self.bytes[self.name_len + self.value_len..]
    }
}

#[cfg(test)]
mod tests;
