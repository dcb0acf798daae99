//! NEW_TOKEN (RFC 9000 §19.7).

use super::{Malformed, put_type};
use crate::{FrameType, Reader, Writer};

/// Gives the client a token for the Initial packets of a future connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewToken<'a> {
    /// The token, which is not empty.
    pub token: &'a [u8],
}

impl<'a> NewToken<'a> {
    /// The bytes that [`NewToken::encode`] writes.
    pub fn encoded_len(&self) -> usize {
        1 + super::prefixed_len(self.token)
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        put_type(FrameType::NEW_TOKEN, writer);
        writer.put_length_prefixed(self.token);
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let token = reader.length_prefixed()?;
        // RFC 9000 §19.7: a client must treat an empty token as FRAME_ENCODING_ERROR.
        if token.is_empty() {
            return Err(Malformed::new("the token is empty"));
        }
        Ok(Self { token })
    }
}
