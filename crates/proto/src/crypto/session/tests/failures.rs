//! Handshakes that fail, and what is told of them.

use super::*;

/// Runs a handshake that fails and returns the code and, from the side that refused, the reason.
fn failure(client: &mut Session, server: &mut Session) -> (TransportErrorCode, TlsError) {
    let error = shake_hands(client, server).err().expect("a refusal");
    let words = client.error().or(server.error()).expect("a reason").clone();
    assert_eq!(error.reason, words.to_string());
    (error.code, words)
}

fn failure_of_certificate(change: impl FnOnce(&mut CertificateParams)) -> (TransportErrorCode, TlsError) {
    let identity = identity(change);
    let mut client = client(&client_config(&identity, provider()), Version::V1);
    failure(&mut client, &mut server(&server_config(&identity), Version::V1))
}

#[test]
fn unknown_issuer() {
    let (trusted, stranger) = (identity(|_| {}), identity_by("stranger", |_| {}));
    let mut client = client(&client_config(&trusted, provider()), Version::V1);
    let (code, words) = failure(&mut client, &mut server(&server_config(&stranger), Version::V1));
    assert_eq!(code, TransportErrorCode::crypto(48), "unknown_ca");
    assert_eq!(words, TlsError::UnknownIssuer);
}

#[test]
fn wrong_name() {
    let (code, words) = failure_of_certificate(|leaf| {
        leaf.subject_alt_names = vec![rcgen::SanType::DnsName("other.example".try_into().expect("ASCII"))];
    });
    assert_eq!(code, TransportErrorCode::crypto(42), "bad_certificate");
    let expected =
        "the peer's certificate is not valid for server.example; it is for other.example".to_owned();
    assert_eq!(words.to_string(), expected);
}

#[test]
fn expired_and_not_yet_valid() {
    let (code, words) = failure_of_certificate(|leaf| leaf.not_after = rcgen::date_time_ymd(2001, 1, 1));
    assert_eq!((code, words), (TransportErrorCode::crypto(45), TlsError::Expired), "certificate_expired");
    let (code, words) = failure_of_certificate(|leaf| leaf.not_before = rcgen::date_time_ymd(4000, 1, 1));
    assert_eq!((code, words), (TransportErrorCode::crypto(45), TlsError::NotValidYet), "certificate_expired");
}

#[test]
fn no_common_application_protocol() {
    let identity = identity(|_| {});
    for offered in [vec![], vec![b"h3".to_vec()]] {
        let mut config = client_config(&identity, provider());
        config.alpn_protocols = offered;
        let mut client = client(&config, Version::V1);
        let (code, words) = failure(&mut client, &mut server(&server_config(&identity), Version::V1));
        assert_eq!(code, TransportErrorCode::crypto(120));
        assert_eq!(words, TlsError::NoApplicationProtocol);
    }
}

#[test]
fn no_common_suite() {
    let identity = identity(|_| {});
    let provider = restrict_suites(&provider(), &[CipherSuite::ChaCha20Poly1305]);
    let mut client = client(&client_config(&identity, provider), Version::V1);
    let aes = restrict_suites(&self::provider(), &[CipherSuite::Aes128Gcm]);
    let config = server_config_with(&identity, aes);
    let (code, words) = failure(&mut client, &mut server(&config, Version::V1));
    assert_eq!(code, TransportErrorCode::crypto(40), "handshake_failure");
    assert!(matches!(words, TlsError::NothingInCommon(_)), "{words:?}");
}

#[test]
fn hello_of_tls_without_quic() {
    let identity = identity(|_| {});
    let name = ServerName::try_from(NAME).expect("a valid name");
    let config = Arc::new(client_config(&identity, provider()));
    let mut tls = rustls::ClientConnection::new(config, name).expect("usable");
    let mut record = Vec::new();
    tls.write_tls(&mut record).expect("memory");

    let mut server = server(&server_config(&identity), Version::V1);
    // The record header of TLS over TCP has five bytes.
    let error = server.read_handshake(Level::Initial, &record[5..]).expect_err("no transport parameters");
    assert_eq!(error.code, TransportErrorCode::crypto(109), "missing_extension");
    assert_eq!(server.error(), Some(&TlsError::NoTransportParameters));
}

#[test]
fn data_at_the_wrong_level() {
    let identity = identity(|_| {});
    let mut client = client(&client_config(&identity, provider()), Version::V1);
    let mut server = server(&server_config(&identity), Version::V1);
    let hello = flight(&mut client, &mut Output::default()).remove(0).1;
    let early = server.read_handshake(Level::Handshake, &hello).expect_err("no such keys yet");
    assert_eq!(early.code, TransportErrorCode::PROTOCOL_VIOLATION);
    server.read_handshake(Level::Initial, &hello).expect("the right level");
    let late = server.read_handshake(Level::Initial, &hello).expect_err("the level is over");
    assert_eq!(late.code, TransportErrorCode::PROTOCOL_VIOLATION);
    server.read_handshake(Level::Initial, &[]).expect("nothing is not new data");
}

#[test]
fn message_across_a_change_of_keys() {
    let identity = identity(|_| {});
    let mut client = client(&client_config(&identity, provider()), Version::V1);
    let mut server = server(&server_config(&identity), Version::V1);
    let hello = flight(&mut client, &mut Output::default()).remove(0).1;
    server.read_handshake(Level::Initial, &hello).expect("a valid hello");
    let flight = flight(&mut server, &mut Output::default());
    // The server's whole flight at the Initial level, where only its hello belongs.
    let all: Vec<_> = flight.into_iter().flat_map(|(_, bytes)| bytes).collect();
    let error = client.read_handshake(Level::Initial, &all).expect_err("a violation");
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn key_update_message_is_refused() {
    // RFC 9001 §6: a TLS KeyUpdate is an error of type 0x010a.
    let identity = identity(|_| {});
    let mut client = client(&client_config(&identity, provider()), Version::V1);
    let mut server = server(&server_config(&identity), Version::V1);
    shake_hands(&mut client, &mut server).expect("nothing wrong");
    for session in [&mut client, &mut server] {
        let error = session.read_handshake(Level::OneRtt, &[24, 0, 0, 1, 0]).expect_err("a violation");
        assert_eq!(error.code, TransportErrorCode::crypto(10), "unexpected_message");
    }
}

#[test]
fn garbage_is_refused() {
    let identity = identity(|_| {});
    for byte in 0..=255 {
        let mut server = server(&server_config(&identity), Version::V1);
        let mut result = Ok(());
        // The second byte starts the length: this announces messages of up to 16 MiB, of which rustls would
        // keep 64 KiB.
        for _ in 0..70 {
            result = result.and_then(|()| server.read_handshake(Level::Initial, &[byte; 1000]));
        }
        let error = result.expect_err("never a hello");
        assert!(error.code >= TransportErrorCode::crypto(0), "{error}");
    }
}
