use fulmar_wire::Dialect;

use super::*;

fn write(tokens: &mut AddressTokens) -> usize {
    let mut payload = [0; 1_000];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    tokens.write(&mut out);
    out.finish().len
}

#[test]
fn a_token_is_repeated_until_the_client_has_it() {
    let mut tokens = AddressTokens::default();
    tokens.give(vec![1; 50]);
    assert!(write(&mut tokens) > 50 && !tokens.wants_to_send());
    tokens.on_lost(0);
    assert!(write(&mut tokens) > 50);
    tokens.on_acked(0);
    tokens.on_lost(0);
    assert!(!tokens.wants_to_send() && tokens.given.is_empty());
}

#[test]
fn each_host_is_served_once_as_long_as_it_is_remembered() {
    let mut tokens = AddressTokens::default();
    let host = |n: u8| IpAddr::from([192, 0, 2, n]);
    assert!(tokens.remember_host(host(1)) && !tokens.remember_host(host(1)));
    let mapped = "::ffff:192.0.2.1".parse().unwrap();
    assert!(!tokens.remember_host(mapped), "the same host");
    for n in 2..100 {
        assert!(tokens.remember_host(host(n)));
    }
    assert!(tokens.remember_host(host(1)), "it was forgotten");
    assert_eq!(tokens.hosts.len(), HOSTS_MAX);
}

#[test]
fn who_issues_no_tokens_gives_no_other_one() {
    let mut tokens = AddressTokens::default();
    assert!(tokens.remember_host(IpAddr::from([192, 0, 2, 1])) && !tokens.can_grow());
}

#[test]
fn tokens_that_nobody_acknowledges_make_room() {
    let mut tokens = AddressTokens::default();
    for n in 0..100 {
        tokens.give(vec![n; 50]);
    }
    assert_eq!(tokens.given.len(), TOKENS_MAX);
    tokens.on_acked(0);
    assert_eq!(tokens.given.len(), TOKENS_MAX, "it is gone already");
}
