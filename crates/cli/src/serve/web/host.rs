//! Which server a request is for.

use http::header::{HOST, HeaderValue};
use http::uri::Authority;
use http::{Version, request};

/// Whether a request says that as it must: once, by a name that is one (RFC 9112 §3.2), and not otherwise than in its authority
/// (RFC 9113 §8.3.1). Which name it is does not count here. Of HTTP/3 the stack has seen to it.
pub(super) fn is_right(request: &request::Parts) -> bool {
    let mut hosts = request.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => request.version != Version::HTTP_11,
        (Some(host), None) => is_name(host) && (request.version != Version::HTTP_2 || agrees(request, host)),
        (Some(_), Some(_)) => false,
    }
}

fn is_name(host: &HeaderValue) -> bool {
    let is_authority = || Authority::try_from(host.as_bytes()).is_ok_and(|name| !name.as_str().contains('@'));
    // The name of a server may be empty, as far as the rules for URIs go.
    host.is_empty() || is_authority()
}

fn agrees(request: &request::Parts, host: &HeaderValue) -> bool {
    let authority = request.uri.authority();
    authority.is_none_or(|authority| authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_server() {
        for (version, uri, hosts, expected) in [
            (Version::HTTP_11, "/", &["h:443"][..], true),
            (Version::HTTP_11, "/", &["[::1]:4433"], true),
            (Version::HTTP_11, "https://other/", &["h"], true),
            (Version::HTTP_11, "/", &[""], true),
            (Version::HTTP_11, "/", &[], false),
            (Version::HTTP_11, "/", &["h", "h"], false),
            (Version::HTTP_11, "/", &["a b"], false),
            (Version::HTTP_11, "/", &["a/b"], false),
            (Version::HTTP_11, "/", &["user@h"], false),
            (Version::HTTP_10, "/", &[], true),
            (Version::HTTP_10, "/", &["h", "h"], false),
            (Version::HTTP_2, "https://h/", &[], true),
            (Version::HTTP_2, "https://h/", &["H"], true),
            (Version::HTTP_2, "https://h/", &["other"], false),
        ] {
            let mut request = http::Request::builder().version(version).uri(uri);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            assert_eq!(is_right(&parts), expected, "{version:?} {uri} {hosts:?}");
        }
    }
}
