use super::*;
use crate::interop::relay::Amplification;

fn evidence(server: Option<Value>, client: Option<Value>) -> Evidence {
    let pair = Pair { server: Peer::Fulmar, client: Peer::Quinn };
    Evidence { pair, client, server, traffic: Traffic::default(), elapsed: Duration::from_secs(1) }
}

#[test]
fn a_second_handshake_is_a_failure() {
    assert!(check(Case::Handshake, &evidence(None, None)).is_ok());
    assert!(check(Case::Handshake, &evidence(Some(json!({ "handshakes": 1 })), None)).is_ok());
    assert!(check(Case::Handshake, &evidence(Some(json!({ "handshakes": 2 })), None)).is_err());
    // Fulmar's server prints no such report, then the client's counts.
    assert!(check(Case::Handshake, &evidence(None, Some(json!({ "handshakes": 2 })))).is_err());
}

#[test]
fn an_offer_of_another_suite_is_a_failure() {
    let alone = json!({ "offered_suites": [CHACHA20], "cipher_suite": CHACHA20 });
    assert!(check(Case::Chacha20, &evidence(Some(alone), None)).is_ok());
    let more = json!({ "offered_suites": ["TLS_AES_128_GCM_SHA256", CHACHA20], "cipher_suite": CHACHA20 });
    assert!(check(Case::Chacha20, &evidence(Some(more.clone()), None)).is_err());
    assert!(check(Case::Handshake, &evidence(Some(more), None)).is_ok());
    let other = json!({ "cipher_suite": "TLS_AES_128_GCM_SHA256" });
    assert!(check(Case::Chacha20, &evidence(None, Some(other))).is_err());
}

#[test]
fn a_long_link_crossed_too_fast_is_a_failure() {
    assert!(check(Case::Longrtt, &evidence(None, None)).is_err());
    let slow = Evidence { elapsed: Duration::from_millis(1600), ..evidence(None, None) };
    assert!(check(Case::Longrtt, &slow).is_ok());
}

#[test]
fn a_retry_case_without_a_retry_is_a_failure() {
    assert!(check(Case::Retry, &evidence(None, None)).is_err());
}

#[test]
fn strangers_may_finish_a_datagram_beyond_the_amplification_limit_and_fulmar_may_not() {
    let mut evidence = evidence(None, None);
    evidence.traffic.amplification = Some(Amplification { received: 1200, sent: 3840 });
    assert!(check(Case::Handshake, &evidence).is_err());
    evidence.pair = Pair { server: Peer::Quinn, client: Peer::Fulmar };
    assert!(check(Case::Handshake, &evidence).is_ok());
    evidence.traffic.amplification = Some(Amplification { received: 1200, sent: 4801 });
    assert!(check(Case::Handshake, &evidence).is_err());
}
