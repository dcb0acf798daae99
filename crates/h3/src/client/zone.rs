//! Zones of addresses that mean something on one link alone (RFC 4007 §11), in URIs (RFC 6874: `[fe80::1%25eth0]`).
//!
//! A zone is a name of this machine: it says where connections leave, and the server is not told (RFC 9844).

use http::Uri;
use http::uri::Authority;

use crate::error::Error;

/// How the zone begins in a URI, where a percent sign itself is encoded.
const DELIMITER: &str = "%25";

/// The host of a URI without brackets, in lower case, and its zone.
///
/// # Errors
/// [`Error::Uri`] if there is no host, or its zone is none.
pub(super) fn host_and_zone(uri: &Uri) -> Result<(String, Option<String>), Error> {
    let host = uri.host().ok_or(Error::Uri)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.split_once(DELIMITER) {
        None => Ok((host.to_ascii_lowercase(), None)),
        // Names of interfaces that would have to be encoded are not known to anybody.
        Some((_, zone)) if zone.is_empty() || zone.contains('%') => Err(Error::Uri),
        Some((address, zone)) => Ok((address.to_ascii_lowercase(), Some(zone.to_owned()))),
    }
}

/// What a request to this URI tells the server: all but the zone.
///
/// # Errors
/// [`Error::Uri`] if nothing is left that is a URI.
pub(super) fn without_zone(uri: &Uri) -> Result<Uri, Error> {
    let Some(authority) = uri.authority().filter(|authority| authority.host().contains(DELIMITER)) else {
        return Ok(uri.clone());
    };
    let text = authority.as_str();
    let (before, rest) = text.split_once(DELIMITER).ok_or(Error::Uri)?;
    let (_, after) = rest.split_once(']').ok_or(Error::Uri)?;
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(Authority::try_from(format!("{before}]{after}")).map_err(|_| Error::Uri)?);
    Uri::from_parts(parts).map_err(|_| Error::Uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &'static str) -> Uri {
        Uri::from_static(text)
    }

    #[test]
    fn a_zone_is_for_this_machine_and_not_for_the_server() {
        let zoned = uri("https://[FE80::1%25eth0.10]:4433/a?b%25c");
        assert_eq!(host_and_zone(&zoned).unwrap(), ("fe80::1".to_owned(), Some("eth0.10".to_owned())));
        assert_eq!(without_zone(&zoned).unwrap(), uri("https://[FE80::1]:4433/a?b%25c"));
    }

    #[test]
    fn hosts_without_zones_stay_as_they_are() {
        for (text, host) in [
            ("https://Example.org/%25", "example.org"),
            ("https://[2001:db8::1]:1/", "2001:db8::1"),
            ("https://192.0.2.1/", "192.0.2.1"),
        ] {
            assert_eq!(host_and_zone(&uri(text)).unwrap(), (host.to_owned(), None));
            assert_eq!(without_zone(&uri(text)).unwrap(), uri(text));
        }
        assert!(host_and_zone(&uri("https://[fe80::1%25]/")).is_err());
        assert!(host_and_zone(&uri("https://[fe80::1%25a%25b]/")).is_err());
    }
}
