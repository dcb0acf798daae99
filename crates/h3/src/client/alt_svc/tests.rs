use super::*;

fn services(value: &str) -> Vec<(String, u16, u64, bool)> {
    match AltSvc::parse(value.as_bytes()) {
        Some(AltSvc::Services(services)) => services
            .into_iter()
            .map(|service| (service.host, service.port, service.max_age.as_secs(), service.persist))
            .collect(),
        other => panic!("{value}: {other:?}"),
    }
}

#[test]
fn alternatives_are_read() {
    let day = 86_400;
    assert_eq!(services(r#"h3=":443""#), [(String::new(), 443, day, false)]);
    assert_eq!(services(r#"h3=":443"; ma=60; persist=1"#), [(String::new(), 443, 60, true)]);
    let several =
        r#"h2="alt.example.com:8000", h3="Alt.Example.com:8443";ma="7";v=x , h3-29=":1",h3="[::1]:9","#;
    assert_eq!(
        services(several),
        [("alt.example.com".to_owned(), 8443, 7, false), ("::1".to_owned(), 9, day, false)]
    );
    // The escapes of a quoted string.
    assert_eq!(services(r#"h3="a\.b:\4""#), [("a.b".to_owned(), 4, day, false)]);
}

#[test]
fn clear_takes_all_back() {
    assert_eq!(AltSvc::parse(b" clear "), Some(AltSvc::Clear));
    let mut known = Known::default();
    let now = Instant::ZERO;
    assert!(known.learn(AltSvc::parse(br#"h3=":4433""#).unwrap(), now));
    assert!(!known.learn(AltSvc::parse(br#"h3=":4433"; ma=5"#).unwrap(), now), "it is known");
    assert_eq!(known.at(now).len(), 1);
    assert!(!known.learn(AltSvc::Clear, now));
    assert_eq!(known.at(now), []);
}

#[test]
fn an_alternative_is_good_for_its_time() {
    let mut known = Known::default();
    known.learn(AltSvc::parse(br#"h3=":1";ma=5, h3=":2";ma=99999999999999999999"#).unwrap(), Instant::ZERO);
    let ports = |known: &mut Known, seconds| -> Vec<u16> {
        let now = Instant::ZERO + Duration::from_secs(seconds);
        known.at(now).iter().map(|service| service.port).collect()
    };
    assert_eq!(ports(&mut known, 4), [1, 2]);
    assert_eq!(ports(&mut known, 5), [2]);
    assert!(ports(&mut known, 31 * 86_400).is_empty());
}

#[test]
fn the_age_of_a_response_counts_in_the_time_of_an_alternative() {
    let said = AltSvc::parse(br#"h3=":1";ma=50, h3=":2";ma=60"#).unwrap();
    let mut known = Known::default();
    known.learn(said.aged(Duration::from_secs(50)), Instant::ZERO);
    let ports = |known: &mut Known, seconds| -> Vec<u16> {
        let now = Instant::ZERO + Duration::from_secs(seconds);
        known.at(now).iter().map(|service| service.port).collect()
    };
    assert_eq!(ports(&mut known, 9), [2]);
    assert!(ports(&mut known, 10).is_empty());
    assert_eq!(AltSvc::Clear.aged(Duration::MAX), AltSvc::Clear);
}

#[test]
fn what_is_malformed_ends_the_reading() {
    for nothing in ["", ",", "h3", "h3=", "h3=:443", r#"h3=":443"#, r#"="a:1""#, r#"h3=":443"; ma"#, "\u{e9}"]
    {
        assert_eq!(AltSvc::parse(nothing.as_bytes()), None, "{nothing}");
    }
    let long = format!(r#"h3="{}:443""#, "a".repeat(ALT_SVC_BYTES_MAX));
    assert_eq!(AltSvc::parse(long.as_bytes()), None);
    assert_eq!(services(r#"h3=":1", h3=:2"#).len(), 1);
    // An authority that is none is left out.
    for bad in [":0", ":65536", "a b:1", ":+1", "[::1:1", "443"] {
        assert_eq!(services(&format!(r#"h3="{bad}""#)), [], "{bad}");
    }
}

#[test]
fn the_number_of_alternatives_is_limited() {
    let many = r#"h3=":1","#.repeat(100);
    assert_eq!(services(&many).len(), ALTERNATIVES_MAX);
}
