use super::*;

#[test]
fn names_of_other_letters_are_those_that_dns_knows() {
    for (name, known) in [
        ("b\u{fc}cher.example", "xn--bcher-kva.example"),
        ("B\u{dc}CHER.example", "xn--bcher-kva.example"),
        ("\u{4f8b}\u{3048}.\u{30c6}\u{30b9}\u{30c8}", "xn--r8jz45g.xn--zckzah"),
        // An ideographic full stop is one (UTS #46).
        ("a\u{3002}example", "a.example"),
    ] {
        let parsed = Authority::parse(&format!("{name}:443"), None).expect(name);
        assert_eq!(parsed.host, known);
    }
    for name in ["\u{202e}a.example", "a\u{fc}/b", "\u{fc} \u{fc}"] {
        assert!(Authority::parse(&format!("{name}:443"), None).is_err(), "{name}");
    }
}

#[test]
fn names_and_addresses_are_hosts() {
    for (text, host, port) in [
        ("localhost:4433", "localhost", 4433),
        ("Example.ORG", "example.org", 443),
        ("192.0.2.1:1", "192.0.2.1", 1),
        ("localhost.:1", "localhost.", 1),
        ("[::1]:65535", "::1", 65535),
        ("[2001:DB8:0::1]", "2001:db8::1", 443),
        ("[FE80::1%Eth0]:1", "fe80::1%Eth0", 1),
        ("[fe80::1%25eth0.10]", "fe80::1%eth0.10", 443),
        ("[fe80::1%25]", "fe80::1%25", 443),
    ] {
        let parsed = Authority::parse(text, Some(443)).expect(text);
        assert_eq!((parsed.host.as_str(), parsed.port), (host, port), "{text}");
        assert_eq!(
            Authority::parse(&parsed.to_string(), None),
            Ok(parsed),
            "{text} is printed as it can be read"
        );
    }
}

#[test]
fn what_is_no_host_and_port_is_refused() {
    for text in [
        "",
        ":1",
        "::1:443",
        "[::1",
        "[::1]443",
        "[::1]:",
        "[host]:1",
        "[fe80::1%]:1",
        "[fe80::1%eth0%1]:1",
        "[host%eth0]:1",
        "host:",
        "host:0",
        "host:65536",
        "host:-1",
        "host:+1",
        "ho st:1",
        "user@host:1",
        "host/:1",
        "1.2.3:4",
        "1.2.3.4.5:6",
        "300.1.1.1:2",
        "300.1.1.1.:2",
        ".:1",
        "host:1:2",
    ] {
        let error = Authority::parse(text, Some(443)).expect_err(text);
        assert!(!error.is_empty() && !error.contains('\n'));
    }
    assert!(Authority::parse(&"a".repeat(254), Some(443)).is_err());
}

#[test]
fn a_port_is_needed_where_there_is_no_default() {
    let error = Authority::parse("localhost", None).expect_err("no port");
    assert!(error.contains("lacks a port"), "{error}");
}

#[test]
fn a_port_alone_means_all_addresses_to_listen_on() {
    for text in ["4433", ":4433"] {
        assert_eq!(parse_listen(text), Ok(ListenAddr::All(4433)), "{text}");
    }
    for text in ["127.0.0.1:0", "[::]:4433", "0.0.0.0:4433"] {
        assert_eq!(parse_listen(text), Ok(ListenAddr::One(text.parse().expect("an address"))), "{text}");
    }
    let Ok(ListenAddr::One(address)) = parse_listen("localhost:4433") else {
        panic!("localhost has an address")
    };
    assert!(address.ip().is_loopback() && address.port() == 4433, "{address}");
    for text in ["", ":", "localhost", "[::]", "::", "70000", ":-1", "localhost:", "local host:1", "*:4433"] {
        let error = parse_listen(text).expect_err(text);
        assert!(error.contains("to listen on"), "{text}: {error}");
    }
}

/// The interface of this machine itself has a name of its own and the first number.
#[cfg(target_os = "linux")]
#[test]
fn an_address_of_a_link_may_have_the_name_of_an_interface_as_its_zone() {
    for text in ["[fe80::1%lo]:4433", "[fe80::1%25lo]:4433", "[fe80::1%1]:4433"] {
        let expected = std::net::SocketAddrV6::new("fe80::1".parse().expect("an address"), 4433, 0, 1);
        assert_eq!(parse_listen(text), Ok(ListenAddr::One(expected.into())), "{text}");
    }
    for text in ["[fe80::1%no-such-one]:4433", "[fe80::1%]:4433", "[fe80::1%lo]"] {
        assert!(parse_listen(text).is_err(), "{text}");
    }
}
