//! Where a server is found, as the user says: `--resolve HOST:PORT:ADDR`.

use std::net::IpAddr;

use crate::authority::Authority;

/// A server and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) server: Authority,
    pub(crate) addresses: Vec<IpAddr>,
}

impl Resolved {
    /// Parses `HOST:PORT:ADDR[,ADDR]..`; addresses of IPv6 may stand in brackets, and as a host they have to.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let malformed = || "write HOST:PORT:ADDR, as example.org:443:192.0.2.1".to_owned();
        // In front of its colon a host that is an address of IPv6 has others, in brackets.
        let host_end = if text.starts_with('[') { text.find(']').unwrap_or_default() } else { 0 };
        let port = host_end + text[host_end..].find(':').ok_or_else(malformed)? + 1;
        let port_end = port + text[port..].find(':').ok_or_else(malformed)?;
        let server = Authority::parse(&text[..port_end], None)?;
        let address = |text: &str| {
            let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            bare.parse().map_err(|_| format!("`{text}` is no address"))
        };
        let addresses = text[port_end + 1..].split(',').map(address).collect::<Result<_, _>>()?;
        Ok(Self { server, addresses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_addresses_of_both_families() {
        let place = Resolved::parse("Example.org:8443:192.0.2.1,[2001:db8::1],2001:db8::2").expect("a place");
        assert_eq!((place.server.host.as_str(), place.server.port), ("example.org", 8443));
        let addresses: Vec<String> = place.addresses.iter().map(IpAddr::to_string).collect();
        assert_eq!(addresses, ["192.0.2.1", "2001:db8::1", "2001:db8::2"]);
        let place = Resolved::parse("[2001:db8::1]:443:192.0.2.1").expect("a place");
        assert_eq!((place.server.host.as_str(), place.server.port), ("2001:db8::1", 443));
    }

    #[test]
    fn what_lacks_a_part_is_none() {
        for text in [
            "",
            "a",
            "a:443",
            "a:443:",
            "a:0:192.0.2.1",
            "a:b:192.0.2.1",
            "a:443:b",
            "a:443:192.0.2.1,",
            "[::1]",
        ] {
            assert!(Resolved::parse(text).is_err(), "{text}");
        }
    }
}
