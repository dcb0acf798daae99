//! Field lines as they stand in a section (RFC 9204 §4.5.2 to §4.5.6).

use crate::instruction::NameRef;
use crate::integer::{self, ReadError};
use crate::string::{self, Literal};

/// Where a line counts from the base of its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    /// In the static table.
    Static(u64),
    /// Back from the base: zero is the entry before it.
    Relative(u64),
    /// On from the base: zero is the entry at it.
    PostBase(u64),
}

impl Index {
    /// The absolute index in the dynamic table, unless it is in the static one or cannot be.
    pub(crate) fn absolute(self, base: u64) -> Option<u64> {
        match self {
            Self::Static(_) => None,
            Self::Relative(index) => base.checked_sub(index)?.checked_sub(1),
            Self::PostBase(index) => base.checked_add(index),
        }
    }
}

/// The name of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    Ref(Index),
    Literal(Literal<'a>),
}

/// A field line of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation<'a> {
    Indexed(Index),
    Literal { name: Name<'a>, value: Literal<'a>, sensitive: bool },
}

impl<'a> Representation<'a> {
    /// Takes the next line of a section.
    pub(crate) fn read(input: &mut &'a [u8]) -> Result<Self, ReadError> {
        let first = *input.first().ok_or(ReadError::Incomplete)?;
        if first & 0x80 != 0 {
            let index = integer::read(input, 6)?;
            let index = if first & 0x40 != 0 { Index::Static(index) } else { Index::Relative(index) };
            return Ok(Self::Indexed(index));
        }
        let (name, sensitive) = if first & 0x40 != 0 {
            let index = integer::read(input, 4)?;
            let index = if first & 0x10 != 0 { Index::Static(index) } else { Index::Relative(index) };
            (Name::Ref(index), first & 0x20 != 0)
        } else if first & 0x20 != 0 {
            (Name::Literal(Literal::read(input, 3, usize::MAX)?), first & 0x10 != 0)
        } else if first & 0x10 != 0 {
            return Ok(Self::Indexed(Index::PostBase(integer::read(input, 4)?)));
        } else {
            (Name::Ref(Index::PostBase(integer::read(input, 3)?)), first & 0x08 != 0)
        };
        Ok(Self::Literal { name, value: Literal::read(input, 7, usize::MAX)?, sensitive })
    }
}

/// Writes a line that is in a table. A dynamic index counts back from the base.
pub(crate) fn write_indexed(out: &mut Vec<u8>, index: NameRef) {
    match index {
        NameRef::Static(index) => integer::write(out, 0xc0, 6, index),
        NameRef::Dynamic(index) => integer::write(out, 0x80, 6, index),
    }
}

/// Writes a literal. A dynamic index of its name counts back from the base.
pub(crate) fn write_literal(
    out: &mut Vec<u8>,
    name_ref: Option<NameRef>,
    name: &[u8],
    value: &[u8],
    sensitive: bool,
) {
    match name_ref {
        Some(NameRef::Static(index)) => integer::write(out, 0x50 | u8::from(sensitive) << 5, 4, index),
        Some(NameRef::Dynamic(index)) => integer::write(out, 0x40 | u8::from(sensitive) << 5, 4, index),
        None => string::write(out, 0x20 | u8::from(sensitive) << 4, 3, name),
    }
    string::write(out, 0, 7, value);
}
