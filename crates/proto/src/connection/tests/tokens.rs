//! Everything that a first packet can carry as a token, from every address, to every kind of server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, Frame, PacketKind, ProtectedKind, Side, Version, read_packet};

use super::by_hand::{CLIENT_CID, ORIGINAL_DCID, cid};
use super::packets::packet;
use super::pair::{CLIENT, Setup, server_tls};
use crate::config::RetryPolicy;
use crate::crypto::{AeadBackend, Keys};
use crate::{
    AddressValidation, Datagram, Ecn, Endpoint, EndpointConfig, FourTuple, ResetKey, Route, ServerConfig,
    SessionStore, TransmitBatch,
};

/// What an endpoint makes of a first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// An attempt, of a client that has proven its address or not.
    Attempt { validated: bool },
    /// Another Retry.
    Retry,
    /// The attempt is over.
    Closed,
}

/// A server with the same keys as all others here.
struct Server {
    endpoint: Endpoint,
    batch: TransmitBatch,
}

impl Server {
    fn new(retry: RetryPolicy) -> Self {
        let validation = AddressValidation { retry, ..AddressValidation::default() };
        let config = ServerConfig::new(Arc::new(server_tls())).with_address_validation(validation).unwrap();
        let endpoint = EndpointConfig::new(ResetKey::new(&[2; 32]));
        let endpoint = Endpoint::new(Arc::new(endpoint), Some(Arc::new(config)), [1; 32]);
        Self { endpoint, batch: TransmitBatch::new(1) }
    }

    /// Shows it a client's first packet with this token.
    fn receive(&mut self, from: SocketAddr, dst: ConnectionId, token: &[u8]) -> Outcome {
        let keys = Keys::initial(Version::V1, &dst, Side::Client, AeadBackend::default());
        let ids = (dst, cid(CLIENT_CID));
        let first = packet(&keys, (PacketKind::Initial, token), ids, 0, &[Frame::Ping], 1_200);
        let addrs = FourTuple::new(from, None);
        let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(&first[..]) };
        match self.endpoint.handle_datagram(NOW, datagram, &mut self.batch) {
            Route::Incoming(incoming) => {
                let validated = incoming.is_validated();
                self.endpoint.accept(NOW, incoming).expect("a good configuration");
                Outcome::Attempt { validated }
            }
            Route::Reply(transmit) => match read_packet(&self.batch.bytes()[..transmit.len], 8).unwrap().kind
            {
                ProtectedKind::Retry { .. } => Outcome::Retry,
                ProtectedKind::Initial { .. } => Outcome::Closed,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

const NOW: Instant = Instant::from_millis(1_000);
const SAME: &str = CLIENT;
const OTHER_PORT: &str = "10.0.0.1:1001";
const OTHER_HOST: &str = "10.0.0.3:1000";

/// The token of a Retry, and the connection ID that it is for.
fn retry_token() -> (Vec<u8>, ConnectionId) {
    let mut server = Server::new(RetryPolicy::Always);
    assert_eq!(server.receive(SAME.parse().unwrap(), cid(ORIGINAL_DCID), &[]), Outcome::Retry);
    let retry = server.batch.bytes().to_vec();
    let packet = read_packet(&retry, 8).unwrap();
    let ProtectedKind::Retry { token, .. } = packet.kind else { panic!("no Retry") };
    (retry[token].to_vec(), packet.src)
}

/// A token for later connections: kind, key, salt, time, format, credit and tag, at the end of the file of a client's sessions, before
/// what is remembered of the path.
fn new_token() -> Vec<u8> {
    const LEN: usize = 1 + 4 + 16 + 8 + 1 + 16 + 16;
    let sessions = SessionStore::new(1);
    let mut pair = Setup { sessions: Some(sessions.clone()), ..Setup::default() }.connect();
    pair.run_for(Duration::from_millis(100));
    let file = sessions.to_bytes();
    let at = file.len() - 2 - LEN;
    assert_eq!(file[at], b'N', "the kind of such a token");
    file[at..at + LEN].to_vec()
}

/// A genuine token and what can be made of it.
fn variants(token: &[u8], other: &[u8]) -> Vec<Vec<u8>> {
    let changed = |at: usize, change: u8| {
        let mut token = token.to_vec();
        token[at] ^= change;
        token
    };
    let mut variants = vec![
        token[..1].to_vec(),
        token[..token.len() - 1].to_vec(),
        [token, &[0]].concat(),
        [token, other].concat(),
        [&token[..1], &other[1..]].concat(),
        [&token[..1], &[0; 700]].concat(),
        changed(0, b'R' ^ b'N'),
        changed(token.len() - 1, 1),
    ];
    variants.extend((0..token.len()).step_by(5).map(|at| changed(at, 0x10)));
    variants
}

#[test]
fn tokens_addresses_connection_ids_and_policies_in_every_combination() {
    let ((retried, retry_scid), known) = (retry_token(), new_token());
    let mut tokens = vec![Vec::new(), vec![0; 700], retried.clone(), known.clone()];
    tokens.extend(variants(&retried, &known));
    tokens.extend(variants(&known, &retried));
    let policies =
        [RetryPolicy::Never, RetryPolicy::Always, RetryPolicy::Auto { half_open: 0 }, RetryPolicy::default()];
    for token in &tokens {
        for from in [SAME, OTHER_PORT, OTHER_HOST] {
            for dst in [retry_scid, cid(ORIGINAL_DCID), cid([0x77; 8])] {
                for policy in policies {
                    let mut server = Server::new(policy);
                    let proves = (token == &retried && from == SAME && dst == retry_scid)
                        || (token == &known && from != OTHER_HOST);
                    let outcome = server.receive(from.parse().unwrap(), dst, token);
                    let asks = matches!(policy, RetryPolicy::Always | RetryPolicy::Auto { half_open: 0 });
                    let expected = match proves {
                        true => vec![Outcome::Attempt { validated: true }],
                        // What was, or pretends to be, of a Retry: no other Retry would be followed.
                        false if token.first() == Some(&b'R') => {
                            let foreign =
                                if asks { Outcome::Retry } else { Outcome::Attempt { validated: false } };
                            vec![Outcome::Closed, foreign]
                        }
                        false if asks => vec![Outcome::Retry],
                        false => vec![Outcome::Attempt { validated: false }],
                    };
                    assert!(expected.contains(&outcome), "{token:x?} from {from} to {dst:?}: {outcome:?}");
                    // A second time, for another connection, the token of an earlier one proves nothing.
                    let again = server.receive(from.parse().unwrap(), cid([0x78; 8]), token);
                    assert_ne!(again, Outcome::Attempt { validated: true }, "{token:x?} from {from}");
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_in_a_token_of_a_first_packet() {
    let ((retried, retry_scid), known) = (retry_token(), new_token());
    for (token, dst) in [(retried, retry_scid), (known, cid(ORIGINAL_DCID))] {
        let mut server = Server::new(RetryPolicy::Always);
        for bit in 0..8 * token.len() {
            let mut damaged = token.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let outcome = server.receive(SAME.parse().unwrap(), dst, &damaged);
            assert!(matches!(outcome, Outcome::Retry | Outcome::Closed), "bit {bit}: {outcome:?}");
        }
        let outcome = server.receive(SAME.parse().unwrap(), dst, &token);
        assert_eq!(outcome, Outcome::Attempt { validated: true });
    }
}
