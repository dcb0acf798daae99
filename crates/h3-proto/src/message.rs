//! Messages: fields become the types of the `http` crate, and the other way around (RFC 9114 §4).

mod decode;
mod encode;
mod fields;

use bytes::Bytes;

pub(crate) use decode::{request, response, trailers};
pub(crate) use encode::{Fields, request_fields, response_fields, trailer_fields};
pub(crate) use fields::content_length;

/// The `:protocol` of an extended CONNECT request (RFC 8441 §4, RFC 9220), among the extensions of the request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Protocol(Bytes);

impl Protocol {
    /// A protocol by its name, which is a token (RFC 9110 §5.6.2), or nothing if it is none.
    pub fn new(name: impl Into<Bytes>) -> Option<Self> {
        let name = name.into();
        fields::is_token(&name).then_some(Self(name))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Why a message is malformed, as a short sentence.
pub(crate) type Malformed = &'static str;
