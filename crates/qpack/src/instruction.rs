//! The instructions of the encoder stream and of the decoder stream (RFC 9204 §4.3 and §4.4).

use crate::integer::{self, ReadError};
use crate::static_table;
use crate::string::{self, Literal};

/// Where a name is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRef {
    /// In the static table.
    Static(u64),
    /// In the dynamic table, at an index that counts from where the context says.
    Dynamic(u64),
}

/// What an encoder tells the decoder about its dynamic table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncoderInstruction<'a> {
    SetCapacity(u64),
    InsertWithNameRef(NameRef, Literal<'a>),
    InsertWithLiteralName(Literal<'a>, Literal<'a>),
    Duplicate(u64),
}

impl<'a> EncoderInstruction<'a> {
    /// Takes an instruction whose strings have at most `len_max` bytes. Nothing is taken if it is not whole.
    pub(crate) fn read(input: &mut &'a [u8], len_max: usize) -> Result<Self, ReadError> {
        let mut rest = *input;
        let first = *rest.first().ok_or(ReadError::Incomplete)?;
        let instruction = if first & 0x80 != 0 {
            let index = integer::read(&mut rest, 6)?;
            let name = if first & 0x40 != 0 { NameRef::Static(index) } else { NameRef::Dynamic(index) };
            if matches!(name, NameRef::Static(index) if index >= static_table::LEN as u64) {
                // The value need not be waited for.
                return Err(ReadError::Invalid("a name that the static table does not have"));
            }
            Self::InsertWithNameRef(name, Literal::read(&mut rest, 7, len_max)?)
        } else if first & 0x40 != 0 {
            let name = Literal::read(&mut rest, 5, len_max)?;
            Self::InsertWithLiteralName(name, Literal::read(&mut rest, 7, len_max)?)
        } else if first & 0x20 != 0 {
            Self::SetCapacity(integer::read(&mut rest, 5)?)
        } else {
            Self::Duplicate(integer::read(&mut rest, 5)?)
        };
        *input = rest;
        Ok(instruction)
    }
}

pub(crate) fn write_set_capacity(out: &mut Vec<u8>, capacity: usize) {
    integer::write(out, 0x20, 5, capacity as u64);
}

pub(crate) fn write_insert(out: &mut Vec<u8>, name_ref: Option<NameRef>, name: &[u8], value: &[u8]) {
    match name_ref {
        Some(NameRef::Static(index)) => integer::write(out, 0xc0, 6, index),
        Some(NameRef::Dynamic(index)) => integer::write(out, 0x80, 6, index),
        None => string::write(out, 0x40, 5, name),
    }
    string::write(out, 0, 7, value);
}

pub(crate) fn write_duplicate(out: &mut Vec<u8>, index: u64) {
    integer::write(out, 0, 5, index);
}

/// What a decoder tells the encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecoderInstruction {
    SectionAcknowledgment(u64),
    StreamCancellation(u64),
    InsertCountIncrement(u64),
}

impl DecoderInstruction {
    /// Takes an instruction. Nothing is taken if it is not whole.
    pub(crate) fn read(input: &mut &[u8]) -> Result<Self, ReadError> {
        let first = *input.first().ok_or(ReadError::Incomplete)?;
        Ok(match first >> 6 {
            0 => Self::InsertCountIncrement(integer::read(input, 6)?),
            1 => Self::StreamCancellation(integer::read(input, 6)?),
            _ => Self::SectionAcknowledgment(integer::read(input, 7)?),
        })
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::SectionAcknowledgment(stream_id) => integer::write(out, 0x80, 7, stream_id),
            Self::StreamCancellation(stream_id) => integer::write(out, 0x40, 6, stream_id),
            Self::InsertCountIncrement(increment) => integer::write(out, 0, 6, increment),
        }
    }
}
