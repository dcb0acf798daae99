//! How a field of a section is written.

use crate::field::FieldRef;
use crate::hash::hash;
use crate::instruction::NameRef;
use crate::representation::{write_indexed, write_literal};
use crate::static_table::{self, Match};

/// How a field is written. Dynamic indices are absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// A table has it.
    Indexed(NameRef),
    /// It is written out, but for its name if a table has that.
    Literal { name: Option<NameRef>, sensitive: bool },
}

impl Line {
    /// How a field is written without a dynamic table.
    pub(super) fn without_table(field: FieldRef<'_>, cookie_len_min: usize) -> Self {
        let sensitive = is_sensitive(field, cookie_len_min);
        match static_table::find(hash(0, field.name), field.name, field.value) {
            Some(Match::Field(index)) if !sensitive => Self::Indexed(NameRef::Static(index.into())),
            Some(Match::Field(index) | Match::Name(index)) => {
                Self::Literal { name: Some(NameRef::Static(index.into())), sensitive }
            }
            None => Self::Literal { name: None, sensitive },
        }
    }

    /// Writes a field of a section with this base, which no reference is beyond.
    pub(super) fn write(self, field: FieldRef<'_>, base: u64, out: &mut Vec<u8>) {
        let relative = |index| match index {
            NameRef::Dynamic(index) => NameRef::Dynamic(base - 1 - index),
            NameRef::Static(_) => index,
        };
        match self {
            Self::Indexed(index) => write_indexed(out, relative(index)),
            Self::Literal { name, sensitive } => {
                write_literal(out, name.map(relative), field.name, field.value, sensitive);
            }
        }
    }

    /// Lets it refer to another entry of the dynamic table.
    pub(super) fn move_to(&mut self, entry: u64) {
        match self {
            Self::Indexed(index) | Self::Literal { name: Some(index), .. } => {
                *index = NameRef::Dynamic(entry)
            }
            Self::Literal { name: None, .. } => {}
        }
    }

    /// The entry of the dynamic table that it refers to.
    pub(super) fn dynamic(self) -> Option<u64> {
        match self {
            Self::Indexed(NameRef::Dynamic(index))
            | Self::Literal { name: Some(NameRef::Dynamic(index)), .. } => Some(index),
            _ => None,
        }
    }
}

/// Whether a field is never to be indexed: its owner says so, it is a secret, or a cookie that is short enough to be guessed
/// by trying what is compressed (RFC 9204 §7.1.3).
pub(super) fn is_sensitive(field: FieldRef<'_>, cookie_len_min: usize) -> bool {
    field.sensitive
        || match field.name {
            b"authorization" | b"proxy-authorization" => true,
            b"cookie" | b"set-cookie" => field.value.len() < cookie_len_min,
            _ => false,
        }
}
