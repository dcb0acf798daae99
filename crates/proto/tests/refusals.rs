//! TLS handshakes that fail: what each end learns, as a code and in words (RFC 9001 §4.8).

mod pair;

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{ConnectionError, Side, TlsError, TransportErrorCode};
use pair::{
    Setup, certificate_for, client_tls, client_tls_that_trusts, client_tls_with, server_tls, server_tls_with,
};

/// What the two ends say of a handshake that fails.
struct Outcome {
    refusing: ConnectionError,
    /// What the other end was told.
    code: TransportErrorCode,
    words: String,
}

/// Runs a handshake that `refusing` breaks off.
#[track_caller]
fn refused_by(refusing: Side, setup: Setup) -> Outcome {
    let mut pair = setup.dial();
    pair.run_for(Duration::from_millis(200));
    let reason = pair.lost(refusing).expect("the handshake was not refused");
    let told = pair.lost(!refusing).expect("the other end was not told");
    let ConnectionError::ConnectionClosed { code, .. } = told else { panic!("{told:?}") };
    assert!(!pair.end(refusing).is_connected());
    pair.run_for(Duration::from_secs(10));
    for end in [&mut pair.client, &mut pair.server] {
        assert!(end.conn().is_drained());
        assert_eq!(end.endpoint.open_connections(), 0);
    }
    Outcome { refusing: reason, code, words: told.to_string() }
}

#[test]
fn a_certificate_that_nobody_vouches_for() {
    let (stranger, _) = certificate_for(&["localhost"], |params| {
        params.distinguished_name.push(rcgen::DnType::CommonName, "another authority");
    });
    let client_tls = client_tls_that_trusts(&stranger[0]);
    let outcome = refused_by(Side::Client, Setup { client_tls, ..Setup::default() });
    assert_eq!(outcome.refusing, ConnectionError::Tls(TlsError::UnknownIssuer));
    let words = "the peer's certificate is not issued by a trusted authority";
    assert_eq!(outcome.refusing.to_string(), words);
    // unknown_ca
    assert_eq!(outcome.code, TransportErrorCode::crypto(48));
    assert!(outcome.words.contains(words), "{}", outcome.words);
}

#[test]
fn a_certificate_for_another_name() {
    let setup = Setup { server_name: "elsewhere.example", ..Setup::default() };
    let outcome = refused_by(Side::Client, setup);
    assert_eq!(
        outcome.refusing.to_string(),
        "the peer's certificate is not valid for elsewhere.example; it is for localhost"
    );
    // bad_certificate
    assert_eq!(outcome.code, TransportErrorCode::crypto(42));
}

fn with_validity(from: i32, to: i32) -> Setup {
    let identity = certificate_for(&["localhost"], |params| {
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(to, 1, 1);
    });
    let client_tls = client_tls_that_trusts(&identity.0[0]);
    Setup { client_tls, server_tls: server_tls_with(identity), ..Setup::default() }
}

#[test]
fn a_certificate_of_yesterday_or_tomorrow() {
    let outcome = refused_by(Side::Client, with_validity(2001, 2002));
    assert_eq!(outcome.refusing, ConnectionError::Tls(TlsError::Expired));
    assert_eq!(outcome.refusing.to_string(), "the peer's certificate has expired");
    // certificate_expired
    assert_eq!(outcome.code, TransportErrorCode::crypto(45));
    let outcome = refused_by(Side::Client, with_validity(3001, 3002));
    assert_eq!(outcome.refusing, ConnectionError::Tls(TlsError::NotValidYet));
}

#[test]
fn a_certificate_with_a_signature_of_an_unknown_kind() {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.signature_verification_algorithms.all = &[];
    let client_tls = client_tls_with(Arc::new(provider), &pair::certificate().0[0]);
    let outcome = refused_by(Side::Client, Setup { client_tls, ..Setup::default() });
    assert_eq!(
        outcome.refusing.to_string(),
        "the peer's certificate is not acceptable: it is signed by an algorithm that is not supported"
    );
}

#[test]
fn no_application_protocol_in_common() {
    let mut client_tls = client_tls();
    client_tls.alpn_protocols = vec![b"another".to_vec()];
    let outcome = refused_by(Side::Server, Setup { client_tls, ..Setup::default() });
    assert_eq!(outcome.refusing, ConnectionError::Tls(TlsError::NoApplicationProtocol));
    // no_application_protocol
    assert_eq!(outcome.code, TransportErrorCode::crypto(120));
    assert!(outcome.words.contains("application protocol"), "{}", outcome.words);
}

#[test]
fn a_client_without_application_protocols() {
    // RFC 9001 §8.1: without one that is agreed on, the connection ends.
    let mut client_tls = client_tls();
    client_tls.alpn_protocols.clear();
    let outcome = refused_by(Side::Server, Setup { client_tls, ..Setup::default() });
    assert_eq!(outcome.code, TransportErrorCode::crypto(120));
}

#[derive(Debug)]
struct NoCertificate;

impl rustls::server::ResolvesServerCert for NoCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
}

#[test]
fn a_server_without_a_certificate_for_the_name() {
    let mut server_tls = server_tls();
    server_tls.cert_resolver = Arc::new(NoCertificate);
    let outcome = refused_by(Side::Server, Setup { server_tls, ..Setup::default() });
    assert!(matches!(outcome.refusing, ConnectionError::Tls(TlsError::Other(_))), "{:?}", outcome.refusing);
    assert!(outcome.refusing.to_string().contains("certificate"), "{}", outcome.refusing);
    // access_denied
    assert_eq!(outcome.code, TransportErrorCode::crypto(49));
}

#[test]
fn nothing_in_common() {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let with_suite = |suite: rustls::CipherSuite| {
        let mut provider = provider.clone();
        provider.cipher_suites.retain(|candidate| candidate.suite() == suite);
        Arc::new(provider)
    };
    let (chain, key) = pair::certificate();
    let aes = with_suite(rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    let mut server_tls = rustls::ServerConfig::builder_with_provider(aes)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    server_tls.alpn_protocols = vec![pair::ALPN.to_vec()];
    let chacha = with_suite(rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    let mut client_tls = rustls::ClientConfig::builder_with_provider(chacha)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    client_tls.alpn_protocols = vec![pair::ALPN.to_vec()];
    let outcome = refused_by(Side::Server, Setup { client_tls, server_tls, ..Setup::default() });
    assert!(
        matches!(outcome.refusing, ConnectionError::Tls(TlsError::NothingInCommon(_))),
        "{:?}",
        outcome.refusing
    );
    // handshake_failure
    assert_eq!(outcome.code, TransportErrorCode::crypto(40));
}
