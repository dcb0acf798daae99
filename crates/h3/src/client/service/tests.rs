use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn record(priority: u16, alpn: &[&str]) -> Record {
    let alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Record { priority, alpn, ..Record::default() }
}

fn at(last: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, last), port).into()
}

fn located(addresses: &[SocketAddr], has_http3: bool, has_tcp: bool) -> Located {
    Located { addresses: addresses.to_vec(), at_own: None, has_http3, has_tcp }
}

#[test]
fn records_are_taken_in_the_order_of_their_priorities() {
    let third = Record { port: Some(8443), target: "c.example".to_owned(), ..record(3, &["h2"]) };
    let Said::Services(services) = understand(vec![third, record(1, &["h3", "h2"]), record(2, &[])]) else {
        panic!("services")
    };
    let told: Vec<(bool, bool, Option<u16>)> =
        services.iter().map(|service| (service.has_http3, service.has_tcp, service.port)).collect();
    assert_eq!(told, [(true, true, None), (false, true, None), (false, true, Some(8443))]);
    assert_eq!(services[2].target, "c.example");
}

#[test]
fn what_cannot_be_used_is_left_out() {
    let beyond = Record { is_beyond: true, ..record(1, &["h3"]) };
    let no_port = Record { port: Some(0), ..record(1, &["h3"]) };
    let other = Record { has_no_default_alpn: true, ..record(1, &["dot"]) };
    assert_eq!(understand(vec![beyond, no_port, other]), Said::Nothing);
    assert_eq!(understand(Vec::new()), Said::Nothing);
    let only_http3 = Record { has_no_default_alpn: true, ..record(1, &["h3"]) };
    let Said::Services(services) = understand(vec![only_http3]) else { panic!("services") };
    assert!(services[0].has_http3 && !services[0].has_tcp);
}

#[test]
fn an_alias_hides_all_others() {
    let alias = Record { target: "pool.example".to_owned(), ..record(0, &[]) };
    assert_eq!(understand(vec![record(1, &["h3"]), alias]), Said::Alias("pool.example".to_owned()));
    assert_eq!(understand(vec![record(0, &[])]), Said::Nothing);
}

#[test]
fn services_come_before_the_server_itself() {
    let own = [at(1, 443), at(2, 443)];
    let found = Found::of(&own, &[located(&[at(9, 8443)], true, true), located(&[at(8, 443)], false, true)]);
    assert_eq!(found.quic, [at(9, 8443), at(1, 443), at(2, 443)]);
    assert_eq!(found.tcp, [at(9, 8443), at(8, 443), at(1, 443), at(2, 443)]);
    assert_eq!(Found::of(&own, &[]), Found { quic: own.to_vec(), tcp: own.to_vec() });
}

#[test]
fn a_server_that_names_no_http3_is_not_asked_for_it() {
    let found = Found::of(&[at(1, 443)], &[located(&[], false, true)]);
    assert_eq!((found.quic.len(), found.tcp.len()), (0, 1));
}

#[test]
fn a_port_of_its_own_is_at_the_addresses_of_the_server() {
    let service = Located { at_own: Some(4433), ..located(&[], true, true) };
    let found = Found::of(&[at(1, 443)], &[service]);
    assert_eq!(found.quic, [at(1, 4433), at(1, 443)]);
}

#[test]
fn names_are_those_of_the_port() {
    assert_eq!(name_of("example.org", 443), "example.org");
    assert_eq!(name_of("example.org", 8443), "_8443._https.example.org");
    for host in ["example.org", "a.b.example."] {
        assert!(may_have_records(host), "{host}");
    }
    for host in ["localhost", "a.localhost", "printer.local", "192.0.2.1", "::1", "intranet"] {
        assert!(!may_have_records(host), "{host}");
    }
}

fn any_record() -> impl Strategy<Value = Record> {
    let alpn =
        prop::collection::vec(prop::sample::select(vec![b"h3".to_vec(), b"h2".to_vec(), vec![0xff]]), 0..3);
    let hints = prop::collection::vec(any::<[u8; 4]>().prop_map(IpAddr::from), 0..20);
    (0..4u16, "[a-z.]{0,6}", alpn, any::<(bool, bool)>(), any::<Option<u16>>(), hints).prop_map(
        |(priority, target, alpn, (has_no_default_alpn, is_beyond), port, hints)| Record {
            priority,
            target,
            alpn,
            has_no_default_alpn,
            port,
            hints,
            is_beyond,
        },
    )
}

proptest! {
    #[test]
    fn whatever_dns_says_is_limited(records in prop::collection::vec(any_record(), 0..40), own in 0..9u8) {
        let own: Vec<SocketAddr> = (0..own).map(|n| at(n, 443)).collect();
        match understand(records.clone()) {
            Said::Services(services) => {
                prop_assert!(records.iter().all(|record| record.priority > 0));
                prop_assert!((1..=RECORDS_MAX).contains(&services.len()));
                prop_assert!(services.iter().all(|one| one.hints.len() <= HINTS_MAX && (one.has_http3 || one.has_tcp)));
                let all: Vec<Located> = services
                    .iter()
                    .map(|one| Located {
                        addresses: one.hints.iter().map(|ip| SocketAddr::new(*ip, one.port.unwrap_or(443))).collect(),
                        at_own: one.port,
                        has_http3: one.has_http3,
                        has_tcp: one.has_tcp,
                    })
                    .collect();
                let found = Found::of(&own, &all);
                for list in [&found.quic, &found.tcp] {
                    prop_assert!(list.len() <= ADDRESSES_MAX + own.len());
                    prop_assert!(list.iter().all(|address| address.port() != 0));
                    // The server itself is the last resort.
                    prop_assert!(list.is_empty() || own.iter().all(|address| list.contains(address)));
                }
                if !own.is_empty() {
                    prop_assert_eq!(found.quic.is_empty(), !services.iter().any(|one| one.has_http3));
                }
            }
            Said::Alias(target) => prop_assert!(!target.is_empty()),
            Said::Nothing => {}
        }
    }
}
