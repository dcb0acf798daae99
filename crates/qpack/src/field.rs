//! A field line: a name and a value.

use bytes::Bytes;

/// What an entry of a table takes beside its name and value (RFC 9204 §3.2.1), and a field beside them in the size of a
/// field section (RFC 9114 §4.2.2), in bytes.
pub const FIELD_OVERHEAD: usize = 32;

/// A field line with bytes of its own.
///
/// Names and values are any bytes here; which of them HTTP allows is checked elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Field {
    /// The name, in lower case on the wire of HTTP/3.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
    /// Whether the field must be sent as a literal that nobody on the way puts into a table (the N bit, RFC 9204 §4.5.4).
    pub sensitive: bool,
}

impl Field {
    /// A field that may be kept in tables.
    pub fn new(name: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self { name: name.into(), value: value.into(), sensitive: false }
    }

    /// The same field, never to be indexed.
    #[must_use]
    pub fn sensitive(self) -> Self {
        Self { sensitive: true, ..self }
    }

    /// What it counts for in the size of a field section, in bytes (RFC 9114 §4.2.2).
    #[must_use]
    pub fn size(&self) -> usize {
        FieldRef::from(self).size()
    }
}

/// A field line whose bytes are somewhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldRef<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Whether it must be sent as a literal that nobody on the way puts into a table.
    pub sensitive: bool,
}

impl<'a> FieldRef<'a> {
    /// A field that may be kept in tables.
    pub fn new(name: &'a (impl AsRef<[u8]> + ?Sized), value: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { name: name.as_ref(), value: value.as_ref(), sensitive: false }
    }

    /// What it counts for in a table and in the size of a field section, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.name.len() + self.value.len() + FIELD_OVERHEAD
    }
}

impl<'a> From<&'a Field> for FieldRef<'a> {
    fn from(field: &'a Field) -> Self {
        Self { name: &field.name, value: &field.value, sensitive: field.sensitive }
    }
}
