use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};

use super::*;

const ALPN: &[u8] = b"lab";

/// Everything that both sides of a handshake say, and an exported secret of each.
#[derive(Debug, PartialEq)]
struct Transcript {
    /// The turn and the bytes; the client speaks in even turns.
    flights: Vec<(usize, Vec<u8>)>,
    exported: [[u8; 32]; 2],
}

fn shake(client: ClientConfig, server: ServerConfig, name: &'static str) -> Result<Transcript, Error> {
    let name = ServerName::try_from(name).expect("a name");
    let client = ClientConnection::new(client.into(), Version::V1, name, b"from the client".to_vec())?;
    let server = ServerConnection::new(server.into(), Version::V1, b"from the server".to_vec())?;
    let mut sides = [Connection::from(client), Connection::from(server)];
    let mut flights = Vec::new();
    // Each side speaks until it has nothing to say; three turns each are more than enough.
    for turn in 0..6 {
        loop {
            // One call writes what belongs under one key, and such a piece must be read on its own.
            let mut flight = Vec::new();
            let keys = sides[turn % 2].write_hs(&mut flight);
            if keys.is_none() && flight.is_empty() {
                break;
            }
            sides[(turn + 1) % 2].read_hs(&flight)?;
            flights.push((turn, flight));
        }
    }
    assert!(sides.iter().all(|side| !side.is_handshaking()));
    assert!(sides.iter().all(|side| side.alpn_protocol() == Some(ALPN)));
    assert_eq!(sides[0].quic_transport_parameters(), Some(&b"from the server"[..]));
    let export = |side: &Connection| side.export_keying_material([0; 32], b"lab", None);
    Ok(Transcript { flights, exported: [export(&sides[0])?, export(&sides[1])?] })
}

fn run(with_seed: u64) -> Transcript {
    seed(with_seed);
    shake(client_config(&[ALPN]), server_config(&[ALPN]), SERVER_NAME).expect("the handshake completes")
}

#[test]
fn the_same_seed_gives_the_same_handshake() {
    let first = run(1);
    assert_eq!(first.exported[0], first.exported[1]);
    assert_eq!(first, run(1));
    assert_ne!(first, run(2));
    assert_eq!(first, std::thread::scope(|scope| scope.spawn(|| run(1)).join().expect("no panic")));
}

#[test]
fn no_ticket_follows_the_handshake() {
    let flights = run(3).flights;
    // The client's Finished is its second turn, and the last word.
    assert_eq!(flights.last().map(|(turn, _)| *turn), Some(2));
}

#[test]
fn each_suite_of_tls13_works() {
    let suites = [
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    for suite in suites {
        seed(4);
        let only = || provider_with_suite(suite).expect("the suite is there");
        shake(client_config_with(only(), &[ALPN]), server_config(&[ALPN]), "localhost").expect("a handshake");
    }
    assert!(provider_with_suite(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256).is_none());
}

#[test]
fn another_name_is_refused() {
    seed(5);
    let error =
        shake(client_config(&[ALPN]), server_config(&[ALPN]), "example.org").expect_err("a wrong name");
    assert!(matches!(error, Error::InvalidCertificate(_)), "{error:?}");
}

#[test]
fn a_share_of_order_one_and_a_short_one_are_refused() {
    for share in [&[0; 32][..], &[9; 31]] {
        let exchange = X25519.start().expect("the lab's generator does not fail");
        assert!(exchange.complete(share).is_err());
    }
}

/// The replacement computes what aws-lc-rs computes.
#[test]
fn a_stock_client_meets_the_lab_server() {
    seed(6);
    let stock = CryptoProvider { kx_groups: vec![aws_lc_rs::kx_group::X25519], ..provider() };
    shake(client_config_with(stock, &[ALPN]), server_config(&[ALPN]), SERVER_NAME).expect("a handshake");
}
