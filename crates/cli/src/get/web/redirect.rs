//! Where a server says that something has moved to.

use http::{HeaderMap, Method, StatusCode, header};

use crate::get::Url;

/// The URL that a `Location` names, seen from the one that was asked for (RFC 9110 §10.2.2, RFC 3986 §5.2).
pub(super) fn target(base: &Url, headers: &HeaderMap) -> Option<Result<Url, String>> {
    let location = ascii(headers.get(header::LOCATION)?.as_bytes());
    let location = location.trim();
    let authority = base.to_string();
    let origin = &authority[..authority.len() - base.target.len()];
    let path = base.path();
    let scheme_end = location.find(':').filter(|end| !location[..*end].contains(['/', '?', '#']));
    Some(Url::parse(&match location {
        _ if scheme_end.is_some() => location.to_owned(),
        _ if location.starts_with("//") => format!("https:{location}"),
        _ if location.starts_with('/') => format!("{origin}{location}"),
        "" => format!("{origin}{}", base.target),
        _ if location.starts_with('?') => format!("{origin}{path}{location}"),
        _ if location.starts_with('#') => format!("{origin}{}", base.target),
        _ => {
            let folder = &path[..=path.rfind('/').unwrap_or(0)];
            format!("{origin}{folder}{location}")
        }
    }))
}

/// There are servers that write other characters than a URI has. Those are encoded as they are, in whatever way they are meant.
fn ascii(bytes: &[u8]) -> String {
    let plain = |byte: &u8| {
        if byte.is_ascii() { char::from(*byte).to_string() } else { format!("%{byte:02X}") }
    };
    bytes.iter().map(plain).collect()
}

/// The method of the next request, if this status sends on (RFC 9110 §15.4): what was posted goes on as a GET, as browsers do it.
pub(super) fn next_method(status: StatusCode, method: &Method) -> Option<Method> {
    match status.as_u16() {
        301 | 302 if *method == Method::POST => Some(Method::GET),
        303 if *method != Method::HEAD => Some(Method::GET),
        301 | 302 | 303 | 307 | 308 => Some(method.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_seen_from_the_url_that_was_asked_for() {
        let base = Url::parse("https://a.example:444/b/c/d?q").expect("a URL");
        for (location, expected) in [
            ("https://x.example/y", "https://x.example/y"),
            ("//x.example/y", "https://x.example/y"),
            ("/y?z", "https://a.example:444/y?z"),
            ("y", "https://a.example:444/b/c/y"),
            ("../y", "https://a.example:444/b/y"),
            ("../../../y/./", "https://a.example:444/y/"),
            ("?z", "https://a.example:444/b/c/d?z"),
            ("", "https://a.example:444/b/c/d?q"),
            ("/a<b>.txt", "https://a.example:444/a%3Cb%3E.txt"),
            ("/\u{e9}", "https://a.example:444/%C3%A9"),
            ("y:/z", ""),
            ("http://a.example/", ""),
        ] {
            let mut headers = HeaderMap::new();
            let value = http::HeaderValue::from_bytes(location.as_bytes());
            headers.insert(header::LOCATION, value.expect("a value"));
            let found = target(&base, &headers).expect("a location");
            assert_eq!(found.map(|url| url.to_string()).unwrap_or_default(), expected, "{location}");
        }
        assert!(target(&base, &HeaderMap::new()).is_none());
    }

    #[test]
    fn what_was_posted_goes_on_as_a_get() {
        let next = |status, method| next_method(StatusCode::from_u16(status).expect("a status"), &method);
        assert_eq!(next(302, Method::POST), Some(Method::GET));
        assert_eq!(next(303, Method::PUT), Some(Method::GET));
        assert_eq!(next(307, Method::POST), Some(Method::POST));
        assert_eq!(next(303, Method::HEAD), Some(Method::HEAD));
        assert_eq!(next(304, Method::GET), None);
    }
}
