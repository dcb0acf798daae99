//! Heads of messages become fields.

use fulmar_qpack::FieldRef;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use smallvec::SmallVec;

use super::fields::is_of_connection;
use super::{Malformed, Protocol};

/// The most pseudo-header fields of a message.
const PSEUDO_MAX: usize = 5;

/// Pseudo-header fields, which stand before the others.
type Pseudo<'a> = [Option<FieldRef<'a>>; PSEUDO_MAX];

/// The fields of a section, which most of the time need no memory of their own.
pub(crate) type Fields<'a> = SmallVec<[FieldRef<'a>; 24]>;

/// The fields of a request.
pub(crate) fn request_fields(parts: &http::request::Parts) -> Result<Fields<'_>, Malformed> {
    let protocol = parts.extensions.get::<Protocol>();
    if protocol.is_some() && parts.method != Method::CONNECT {
        return Err("a protocol in a request that is no CONNECT");
    }
    let is_tunnel = parts.method == Method::CONNECT && protocol.is_none();
    let authority = match parts.uri.authority() {
        Some(authority) => Some(authority.as_str().as_bytes()),
        None => parts.headers.get(header::HOST).map(header::HeaderValue::as_bytes),
    };
    let authority = authority.ok_or("a request without an authority")?;
    if authority.contains(&b'@') {
        return Err("an authority that names a user");
    }
    let mut pseudo: Pseudo<'_> = [None; PSEUDO_MAX];
    pseudo[0] = Some(FieldRef::new(":method", parts.method.as_str()));
    if !is_tunnel {
        let path = match parts.uri.path_and_query() {
            Some(path) if !path.as_str().is_empty() => path.as_str(),
            _ => "/",
        };
        // RFC 9114 §4.3.1: OPTIONS of the whole server.
        let path = if parts.method != Method::OPTIONS && path == "*" { "/" } else { path };
        pseudo[1] = Some(FieldRef::new(":scheme", parts.uri.scheme_str().unwrap_or("https")));
        pseudo[3] = Some(FieldRef::new(":path", path));
    }
    pseudo[2] = Some(FieldRef::new(":authority", authority));
    pseudo[4] = protocol.map(|protocol| FieldRef::new(":protocol", protocol.as_str()));
    // The authority says what Host would.
    Ok(fields(pseudo, &parts.headers, Some(header::HOST)))
}

/// The fields of a response.
pub(crate) fn response_fields(parts: &http::response::Parts) -> Result<Fields<'_>, Malformed> {
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err("status 101, which HTTP/3 does not have");
    }
    let mut pseudo: Pseudo<'_> = [None; PSEUDO_MAX];
    pseudo[0] = Some(FieldRef::new(":status", parts.status.as_str()));
    Ok(fields(pseudo, &parts.headers, None))
}

/// The fields of trailers.
pub(crate) fn trailer_fields(trailers: &HeaderMap) -> Fields<'_> {
    fields([None; PSEUDO_MAX], trailers, None)
}

/// All of them in order, without those that HTTP/3 does not have: services that also serve HTTP/1.1 set some.
fn fields<'a>(pseudo: Pseudo<'a>, headers: &'a HeaderMap, left_out: Option<HeaderName>) -> Fields<'a> {
    let regular = headers
        .iter()
        .filter(|(name, value)| {
            !is_of_connection(name)
                && left_out.as_ref() != Some(*name)
                && (*name != header::TE || value.as_bytes() == b"trailers")
        })
        .map(|(name, value)| FieldRef {
            name: name.as_str().as_bytes(),
            value: value.as_bytes(),
            sensitive: value.is_sensitive(),
        });
    pseudo.into_iter().flatten().chain(regular).collect()
}
