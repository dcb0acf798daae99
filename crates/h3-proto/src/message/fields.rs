//! Fields that are no pseudo-header fields.

use bytes::{Bytes, BytesMut};
use fulmar_qpack::Field;
use http::header::{CONTENT_LENGTH, COOKIE, HeaderMap, HeaderName, HeaderValue};

use super::Malformed;

/// What only concerns a connection of HTTP/1.1, and must not be here (RFC 9114 §4.2).
pub(super) fn is_of_connection(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    )
}

/// The fields of a section, without pseudo-header fields.
pub(super) fn regular(fields: impl ExactSizeIterator<Item = Field>) -> Result<HeaderMap, Malformed> {
    let mut map = HeaderMap::with_capacity(fields.len());
    let mut cookies = Cookies::default();
    for field in fields {
        if field.name.first() == Some(&b':') {
            return Err("a pseudo-header field after others or in trailers");
        }
        // A name in upper case is malformed, and this accepts none.
        let name = HeaderName::from_lowercase(&field.name).map_err(|_| "a name that no field can have")?;
        if is_of_connection(&name) {
            return Err("a field of a connection of HTTP/1.1");
        }
        if name == http::header::TE && &field.value[..] != b"trailers" {
            return Err("TE with more than trailers");
        }
        if name == COOKIE {
            cookies.add(field);
            continue;
        }
        let value = value(field.value, field.sensitive)?;
        map.try_append(name, value).map_err(|_| "too many fields")?;
    }
    if let Some(cookies) = cookies.joined()? {
        map.insert(COOKIE, cookies);
    }
    Ok(map)
}

/// A value, which may hold no control character and neither begin nor end with a space (RFC 9114 §10.3, RFC 9110 §5.5).
fn value(bytes: Bytes, is_sensitive: bool) -> Result<HeaderValue, Malformed> {
    let is_space = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    if is_space(bytes.first()) || is_space(bytes.last()) {
        return Err("a value with a space at its border");
    }
    let mut value = HeaderValue::from_maybe_shared(bytes).map_err(|_| "a value that no field can have")?;
    value.set_sensitive(is_sensitive);
    Ok(value)
}

/// The crumbs of a cookie, which HTTP/3 may send one by one, and which an application gets as one (RFC 9114 §4.2.1).
#[derive(Default)]
struct Cookies {
    first: Option<Bytes>,
    joined: BytesMut,
    is_sensitive: bool,
}

impl Cookies {
    fn add(&mut self, field: Field) {
        self.is_sensitive |= field.sensitive;
        match &self.first {
            None => self.first = Some(field.value),
            Some(first) => {
                if self.joined.is_empty() {
                    self.joined.extend_from_slice(first);
                }
                self.joined.extend_from_slice(b"; ");
                self.joined.extend_from_slice(&field.value);
            }
        }
    }

    fn joined(self) -> Result<Option<HeaderValue>, Malformed> {
        let whole = if self.joined.is_empty() { self.first } else { Some(self.joined.freeze()) };
        whole.map(|whole| value(whole, self.is_sensitive)).transpose()
    }
}

/// What Content-Length says. Repeated ones have to agree (RFC 9110 §8.6).
pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut length = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        let this = number(value.as_bytes()).ok_or("a Content-Length that is no number")?;
        if length.is_some_and(|length| length != this) {
            return Err("two values of Content-Length");
        }
        length = Some(this);
    }
    Ok(length)
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether this is a token (RFC 9110 §5.6.2).
pub(super) fn is_token(bytes: &[u8]) -> bool {
    let is_tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_tchar)
}
