//! Whole handshakes in memory, and what is reported when they fail.

mod damage;
mod failures;

use std::sync::Mutex;

use fulmar_wire::{PathId, TransportErrorCode};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, NamedGroup, RootCertStore, ServerConfig};

use super::*;
use crate::crypto::restrict_suites;

const NAME: &str = "server.example";
const ALPN: &[u8] = b"hq-interop";

/// An authority and what it issued for [`NAME`].
struct Identity {
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn identity(change: impl FnOnce(&mut CertificateParams)) -> Identity {
    identity_by("authority", change)
}

fn identity_by(authority_name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
    let mut authority = CertificateParams::new(vec![]).expect("no names");
    authority.distinguished_name.push(rcgen::DnType::CommonName, authority_name);
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, key_pair()).expect("a valid authority");
    let mut leaf = CertificateParams::new(vec![NAME.to_owned()]).expect("a valid name");
    change(&mut leaf);
    let key = key_pair();
    let leaf = leaf.signed_by(&key, &authority).expect("a valid certificate");
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).expect("a valid authority");
    Identity {
        roots: Arc::new(roots),
        chain: vec![leaf.der().clone()],
        key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
    }
}

fn key_pair() -> KeyPair {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a supported algorithm")
}

fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

fn client_config(identity: &Identity, provider: CryptoProvider) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("suites of TLS 1.3")
        .with_root_certificates(identity.roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

fn server_config(identity: &Identity) -> ServerConfig {
    server_config_with(identity, provider())
}

fn server_config_with(identity: &Identity, provider: CryptoProvider) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("suites of TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .expect("a key for the certificate");
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

fn client(config: &ClientConfig, version: Version) -> Session {
    let name = ServerName::try_from(NAME).expect("a valid name");
    Session::client(config, version, name, b"client's".to_vec(), AeadBackend::Ring).expect("usable")
}

fn server(config: &ServerConfig, version: Version) -> Session {
    Session::server(config, version, b"server's".to_vec(), Circumstances::default(), AeadBackend::AwsLc)
        .expect("usable")
}

/// What one side has got out of the handshake.
#[derive(Default)]
struct Output {
    handshake: Option<Keys>,
    one_rtt: Option<OneRttKeys>,
    /// Bytes of the first flight, by level.
    first_flight: Vec<(Level, usize)>,
}

/// Writes all that a session has to say.
fn flight(session: &mut Session, output: &mut Output) -> Vec<(Level, Vec<u8>)> {
    let mut flight = Vec::new();
    loop {
        let (level, mut bytes) = (session.write_level(), Vec::new());
        let keys = session.write_handshake(&mut bytes);
        let done = keys.is_none() && bytes.is_empty();
        if !bytes.is_empty() {
            flight.push((level, bytes));
        }
        match keys {
            Some(KeyEvent::Handshake(keys)) => output.handshake = Some(*keys),
            Some(KeyEvent::OneRtt(keys)) => output.one_rtt = Some(*keys),
            None if done => return flight,
            None => {}
        }
    }
}

/// Runs a handshake; the error is of the side that failed.
fn shake_hands(client: &mut Session, server: &mut Session) -> Result<[Output; 2], TransportError> {
    let mut outputs = [Output::default(), Output::default()];
    let mut in_flight = flight(client, &mut outputs[0]);
    outputs[0].first_flight = lengths(&in_flight);
    for turn in 1.. {
        let me = turn % 2;
        let to = if me == 0 { &mut *client } else { &mut *server };
        let mut answer = Vec::new();
        for (level, bytes) in in_flight {
            // In pieces, as packets would carry it.
            for piece in bytes.chunks(700) {
                to.read_handshake(level, piece)?;
                answer.extend(flight(to, &mut outputs[me]));
            }
        }
        if turn == 1 {
            outputs[1].first_flight = lengths(&answer);
        }
        if answer.is_empty() {
            break;
        }
        in_flight = answer;
    }
    Ok(outputs)
}

fn lengths(flight: &[(Level, Vec<u8>)]) -> Vec<(Level, usize)> {
    flight.iter().map(|(level, bytes)| (*level, bytes.len())).collect()
}

/// Sends a packet through the keys of both sides.
fn assert_keys_match([client, server]: [Output; 2]) {
    let (client_keys, server_keys) = (client.handshake.expect("keys"), server.handshake.expect("keys"));
    let mut packet = *b"header|text|room for the tag";
    let original = packet;
    client_keys.local.packet.seal(PathId::ZERO, 3, &mut packet, 7);
    assert_eq!(server_keys.remote.packet.open(PathId::ZERO, 3, &mut packet, 7), Ok(5));
    server_keys.local.packet.seal(PathId::ZERO, 3, &mut packet, 7);
    assert_eq!(client_keys.remote.packet.open(PathId::ZERO, 3, &mut packet, 7), Ok(5));
    assert_eq!(packet[..12], original[..12]);
    assert_eq!(client_keys.local.header.mask(&[5; 16]), server_keys.remote.header.mask(&[5; 16]));

    let (mut client, mut server) = (client.one_rtt.expect("keys"), server.one_rtt.expect("keys"));
    client.seal(PathId::ZERO, 4, &mut packet, 7);
    assert_eq!(server.open(PathId::ZERO, 4, false, &mut packet, 7).expect("authentic").len, 5);
    server.seal(PathId::ZERO, 4, &mut packet, 7);
    assert_eq!(client.open(PathId::ZERO, 4, false, &mut packet, 7).expect("authentic").len, 5);
    assert_eq!(packet[..12], original[..12]);
    assert_eq!(client.local_header().mask(&[5; 16]), server.remote_header().mask(&[5; 16]));
    assert_eq!(server.local_header().mask(&[5; 16]), client.remote_header().mask(&[5; 16]));
    assert_eq!(client.suite(), server.suite());
}

#[test]
fn handshake_with_post_quantum_key_exchange() {
    let identity = identity(|_| {});
    for version in [Version::V1, Version::V2] {
        let mut client = client(&client_config(&identity, provider()), version);
        let mut server = server(&server_config(&identity), version);
        let outputs = shake_hands(&mut client, &mut server).expect("nothing wrong");

        // The hello needs a second Initial packet.
        let hello = outputs[0].first_flight.as_slice();
        assert!(matches!(hello, [(Level::Initial, 1201..)]), "{hello:?}");
        let levels: Vec<_> = outputs[1].first_flight.iter().map(|(level, _)| *level).collect();
        assert_eq!(levels, [Level::Initial, Level::Handshake]);
        assert_keys_match(outputs);

        for session in [&client, &server] {
            assert!(!session.is_handshaking());
            assert_eq!(session.alpn(), Some(ALPN));
            assert_eq!(session.key_exchange(), Some(NamedGroup::X25519MLKEM768));
            assert_eq!(session.read_level(), Level::OneRtt);
            assert_eq!(session.write_level(), Level::OneRtt);
            assert_eq!(session.error(), None);
        }
        assert_eq!(client.transport_parameters(), Some(&b"server's"[..]));
        assert_eq!(server.transport_parameters(), Some(&b"client's"[..]));
        assert_eq!(server.server_name(), Some(NAME));
        assert_eq!(client.server_name(), None);
        assert_eq!(client.peer_certificates(), Some(&identity.chain[..]));
        assert_eq!(server.peer_certificates(), None);

        let (mut one, mut other) = ([0; 40], [0; 40]);
        client.export_keying_material(&mut one, b"label", Some(b"context")).expect("complete");
        server.export_keying_material(&mut other, b"label", Some(b"context")).expect("complete");
        assert_eq!(one, other);
        assert_ne!(one, [0; 40]);
    }
}

#[test]
fn every_suite_can_be_forced() {
    let identity = identity(|_| {});
    for suite in [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305] {
        let config = client_config(&identity, restrict_suites(&provider(), &[suite]));
        let mut client = client(&config, Version::V1);
        let mut server = server(&server_config(&identity), Version::V1);
        let outputs = shake_hands(&mut client, &mut server).expect("nothing wrong");
        assert_eq!(client.suite(), Some(suite));
        assert_eq!(server.suite(), Some(suite));
        assert_keys_match(outputs);
    }
}

#[test]
fn hello_retry_request() {
    let identity = identity(|_| {});
    let mut only_p256 = provider();
    only_p256.kx_groups.retain(|group| group.name() == NamedGroup::secp256r1);
    let config = server_config_with(&identity, only_p256);
    let mut client = client(&client_config(&identity, provider()), Version::V1);
    let mut server = server(&config, Version::V1);
    let outputs = shake_hands(&mut client, &mut server).expect("nothing wrong");
    assert_eq!(client.key_exchange(), Some(NamedGroup::secp256r1));
    assert_keys_match(outputs);
}

#[test]
fn versions_differ_in_their_keys() {
    let identity = identity(|_| {});
    let mut client = client(&client_config(&identity, provider()), Version::V1);
    let mut server = server(&server_config(&identity), Version::V2);
    let [client, server] = shake_hands(&mut client, &mut server).expect("TLS does not know");
    let (client, server) = (client.handshake.expect("keys"), server.handshake.expect("keys"));
    let mut packet = [0; 40];
    client.local.packet.seal(PathId::ZERO, 0, &mut packet, 5);
    assert!(server.remote.packet.open(PathId::ZERO, 0, &mut packet, 5).is_err());
}

#[derive(Debug, Default)]
struct Log(Mutex<Vec<String>>);

impl rustls::KeyLog for Log {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        assert!(!secret.is_empty());
        self.0.lock().expect("nobody panics").push(label.to_owned());
    }
}

#[test]
fn key_log_of_the_user_still_works() {
    let identity = identity(|_| {});
    let log = Arc::new(Log::default());
    let mut config = client_config(&identity, provider());
    config.key_log = log.clone();
    let mut client = client(&config, Version::V1);
    shake_hands(&mut client, &mut server(&server_config(&identity), Version::V1)).expect("nothing wrong");
    let mut labels = log.0.lock().expect("nobody panics").clone();
    labels.sort_unstable();
    let expected = [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "EXPORTER_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_TRAFFIC_SECRET_0",
    ];
    assert_eq!(labels, expected);
}
