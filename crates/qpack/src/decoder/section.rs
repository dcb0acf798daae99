//! Field lines become fields.

use bytes::{Bytes, BytesMut};

use super::{Decoded, DecoderConfig, Excess};
use crate::error::Error;
use crate::field::Field;
use crate::prefix::Prefix;
use crate::representation::{Index, Name, Representation};
use crate::static_table;
use crate::string::Literal;
use crate::table::Table;

/// Decodes the lines of a section whose entries have all come.
///
/// A line that refers to a table costs a byte and can stand for thousands: fields share the bytes of the entries, so that
/// such a line costs no copy, and the first one beyond a limit ends it.
pub(super) fn decode_section(
    table: &Table,
    config: &DecoderConfig,
    prefix: Prefix,
    mut lines: &[u8],
) -> Result<Decoded, Error> {
    let mut section = Section { table, prefix, literals: BytesMut::new() };
    let mut room = Room { config, size: 0, fields: 0, cookies: 0 };
    let mut fields = Vec::new();
    while !lines.is_empty() {
        let rest_len = lines.len();
        let line =
            Representation::read(&mut lines).map_err(|_| Error::section("a field line is cut short"))?;
        let field = section.field(line, rest_len)?;
        if let Some(excess) = room.take(&field) {
            return Ok(Decoded::Refused(excess));
        }
        fields.push(field);
    }
    // A count that is larger than it need be is let pass, as RFC 9204 §2.2.1 allows: it hurts the peer's compression alone.
    Ok(Decoded::Fields(fields))
}

/// What is left to a section.
struct Room<'a> {
    config: &'a DecoderConfig,
    size: usize,
    fields: usize,
    cookies: usize,
}

impl Room<'_> {
    fn take(&mut self, field: &Field) -> Option<Excess> {
        self.size += field.size();
        self.fields += 1;
        self.cookies += usize::from(&field.name[..] == b"cookie");
        if self.size > self.config.field_section_size_max {
            return Some(Excess::Size);
        }
        if self.fields > self.config.fields_max {
            return Some(Excess::Fields);
        }
        (self.cookies > self.config.cookie_crumbs_max).then_some(Excess::CookieCrumbs)
    }
}

struct Section<'a> {
    table: &'a Table,
    prefix: Prefix,
    /// Where literals are decoded: one allocation for all of them.
    literals: BytesMut,
}

impl Section<'_> {
    /// The field of a line, with which `rest_len` bytes of the section begin.
    fn field(&mut self, line: Representation<'_>, rest_len: usize) -> Result<Field, Error> {
        match line {
            Representation::Indexed(index) => {
                let (name, value) = self.entry(index)?;
                Ok(Field { name, value, sensitive: false })
            }
            Representation::Literal { name, value, sensitive } => {
                let name = match name {
                    Name::Ref(index) => self.entry(index)?.0,
                    Name::Literal(name) => self.literal(name, rest_len)?,
                };
                Ok(Field { name, value: self.literal(value, rest_len)?, sensitive })
            }
        }
    }

    fn entry(&self, index: Index) -> Result<(Bytes, Bytes), Error> {
        if let Index::Static(index) = index {
            return static_table::get(index).ok_or(Error::section("no entry of the static table"));
        }
        let index = index.absolute(self.prefix.base).filter(|index| *index < self.prefix.required);
        let index = index.ok_or(Error::section("an entry beyond the Required Insert Count"))?;
        let entry = self.table.get(index).ok_or(Error::section("an entry that was evicted"))?;
        Ok((entry.name.clone(), entry.value.clone()))
    }

    fn literal(&mut self, literal: Literal<'_>, rest_len: usize) -> Result<Bytes, Error> {
        let room = literal.room();
        if self.literals.capacity() < room {
            // Enough for all that can follow, so that this happens once: five bits are the shortest code of a byte.
            self.literals = BytesMut::with_capacity(room.max(rest_len * 8 / 5 + 2));
        }
        literal.append_to(&mut self.literals).map_err(Error::section)?;
        Ok(self.literals.split().freeze())
    }
}
