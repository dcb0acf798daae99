//! Fields that have come become heads of messages, or are found malformed (RFC 9114 §4.1.2).

use bytes::Bytes;
use fulmar_qpack::Field;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, StatusCode, Uri, Version, header};

use super::fields::regular;
use super::{Malformed, Protocol};

/// The pseudo-header fields of a message.
#[derive(Default)]
struct Pseudo {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    protocol: Option<Bytes>,
    status: Option<Bytes>,
}

impl Pseudo {
    /// Takes those that stand before the other fields, and returns the others.
    fn take(fields: Vec<Field>) -> Result<(Self, HeaderMap), Malformed> {
        let mut pseudo = Self::default();
        let count = fields.iter().take_while(|field| field.name.first() == Some(&b':')).count();
        let mut fields = fields.into_iter();
        for field in fields.by_ref().take(count) {
            let place = match &field.name[..] {
                b":method" => &mut pseudo.method,
                b":scheme" => &mut pseudo.scheme,
                b":authority" => &mut pseudo.authority,
                b":path" => &mut pseudo.path,
                b":protocol" => &mut pseudo.protocol,
                b":status" => &mut pseudo.status,
                _ => return Err("an unknown pseudo-header field"),
            };
            if place.replace(field.value).is_some() {
                return Err("a pseudo-header field comes twice");
            }
        }
        Ok((pseudo, regular(fields)?))
    }
}

/// A request. `with_protocol` says whether extended CONNECT was offered.
pub(crate) fn request(fields: Vec<Field>, with_protocol: bool) -> Result<http::request::Parts, Malformed> {
    let (pseudo, headers) = Pseudo::take(fields)?;
    if pseudo.status.is_some() {
        return Err("a request with a status");
    }
    let method = pseudo.method.as_deref().ok_or("a request without a method")?;
    let method = Method::from_bytes(method).map_err(|_| "a method that is no token")?;
    let is_tunnel = method == Method::CONNECT && pseudo.protocol.is_none();
    let uri = if is_tunnel { tunnel_uri(&pseudo)? } else { uri(&pseudo, &headers, &method)? };
    let (mut parts, ()) = http::Request::new(()).into_parts();
    if let Some(protocol) = pseudo.protocol {
        if !with_protocol || method != Method::CONNECT {
            return Err("a protocol where none is allowed");
        }
        parts.extensions.insert(Protocol::new(protocol).ok_or("a protocol that is no token")?);
    }
    parts.method = method;
    parts.uri = uri;
    parts.version = Version::HTTP_3;
    parts.headers = headers;
    Ok(parts)
}

/// What CONNECT names: a host and a port, and nothing else (RFC 9114 §4.4).
fn tunnel_uri(pseudo: &Pseudo) -> Result<Uri, Malformed> {
    if pseudo.scheme.is_some() || pseudo.path.is_some() {
        return Err("CONNECT with a scheme or a path");
    }
    let authority = authority(pseudo.authority.clone().ok_or("CONNECT without an authority")?)?;
    if authority.port_u16().is_none() {
        return Err("CONNECT without a port");
    }
    Ok(Uri::from(authority))
}

fn uri(pseudo: &Pseudo, headers: &HeaderMap, method: &Method) -> Result<Uri, Malformed> {
    let scheme = pseudo.scheme.as_deref().ok_or("a request without a scheme")?;
    let path = pseudo.path.clone().ok_or("a request without a path")?;
    let is_path = path.starts_with(b"/") || (path == "*" && method == Method::OPTIONS);
    if !is_path || path.contains(&b'#') {
        return Err("a path that is none");
    }
    if !scheme.first().is_some_and(u8::is_ascii_alphabetic) {
        return Err("a scheme that is none");
    }
    let host = host(pseudo, headers)?;
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::try_from(scheme).map_err(|_| "a scheme that is none")?);
    parts.authority = Some(authority(host)?);
    parts.path_and_query = Some(PathAndQuery::from_maybe_shared(path).map_err(|_| "a path that is none")?);
    Uri::from_parts(parts).map_err(|_| "a target that is none")
}

/// The authority, from its pseudo-header field or from Host; if both are there they have to agree (RFC 9114 §4.3.1).
fn host(pseudo: &Pseudo, headers: &HeaderMap) -> Result<Bytes, Malformed> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err("Host comes twice");
    }
    match (&pseudo.authority, host) {
        (None, None) => Err("a request without an authority"),
        (Some(authority), None) => Ok(authority.clone()),
        (None, Some(host)) => Ok(Bytes::copy_from_slice(host.as_bytes())),
        (Some(authority), Some(host)) if authority.eq_ignore_ascii_case(host.as_bytes()) => {
            Ok(authority.clone())
        }
        (Some(_), Some(_)) => Err("Host and the authority differ"),
    }
}

fn authority(bytes: Bytes) -> Result<Authority, Malformed> {
    // RFC 9114 §4.3.1: the deprecated userinfo must not be there.
    if bytes.is_empty() || bytes.contains(&b'@') {
        return Err("an authority that is empty or names a user");
    }
    Authority::from_maybe_shared(bytes).map_err(|_| "an authority that is none")
}

/// A response.
pub(crate) fn response(fields: Vec<Field>) -> Result<http::response::Parts, Malformed> {
    let (pseudo, headers) = Pseudo::take(fields)?;
    let of_request = [&pseudo.method, &pseudo.scheme, &pseudo.authority, &pseudo.path, &pseudo.protocol];
    if of_request.into_iter().any(Option::is_some) {
        return Err("a response with what belongs to a request");
    }
    let status = pseudo.status.as_deref().ok_or("a response without a status")?;
    let status = StatusCode::from_bytes(status).map_err(|_| "a status that is none")?;
    // RFC 9114 §4.5: there is nothing to upgrade to.
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err("status 101");
    }
    let (mut parts, ()) = http::Response::new(()).into_parts();
    parts.status = status;
    parts.version = Version::HTTP_3;
    parts.headers = headers;
    Ok(parts)
}

/// Trailers, in which there are no pseudo-header fields.
pub(crate) fn trailers(fields: Vec<Field>) -> Result<HeaderMap, Malformed> {
    regular(fields.into_iter())
}
