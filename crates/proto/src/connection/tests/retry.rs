//! A client that is asked to prove its address (RFC 9000 §8.1.2, §17.2.5).

use fulmar_base::Instant;
use fulmar_wire::{
    ConnectionId, PathId, ProtectedKind, Side, Version, packet_number, read_packet, sample, unprotect_header,
};

use super::by_hand::{CLIENT_CID, ORIGINAL_DCID, cid, client, deliver, exchange, lost, sent, server};
use crate::crypto::{AeadBackend, Keys, retry_tag};
use crate::{Connection, ConnectionError, TransportErrorCode};

const RETRY_CID: [u8; 8] = [0xee; 8];
const TOKEN: &[u8] = b"a token that proves the address";

fn retry(src: [u8; 8], token: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    fulmar_wire::write_retry(&mut packet, Version::V1, 0, &cid(CLIENT_CID), &cid(src), token);
    let tag = retry_tag(Version::V1, &cid(ORIGINAL_DCID), &packet);
    packet.extend(tag);
    packet
}

/// A client whose first datagrams have left.
fn waiting_client(now: Instant) -> Connection {
    let mut client = client(now, |_| {}, &[]);
    assert_eq!(numbers(&sent(&mut client, now), cid(ORIGINAL_DCID), &[]), [0, 1]);
    client
}

/// The packet numbers of Initial packets that go to `dcid` and carry `token`.
#[track_caller]
fn numbers(datagrams: &[Vec<u8>], dcid: ConnectionId, token: &[u8]) -> Vec<u64> {
    let keys = Keys::initial(Version::V1, &dcid, Side::Server, AeadBackend::default());
    datagrams
        .iter()
        .map(|datagram| {
            assert!(datagram.len() >= 1_200);
            let packet = read_packet(datagram, 8).unwrap();
            assert_eq!(packet.dst, dcid);
            let ProtectedKind::Initial { token: range, pn_offset } = packet.kind else {
                panic!("{packet:?}")
            };
            assert_eq!(&datagram[range], token);
            let mut bytes = datagram[..packet.len].to_vec();
            let mask = keys.remote.header.mask(sample(&bytes, pn_offset).unwrap());
            let header = unprotect_header(&mut bytes, pn_offset, mask).unwrap();
            let number = packet_number::decode(None, header.truncated_pn, header.pn_len);
            let opened = keys.remote.packet.open(PathId::ZERO, number, &mut bytes, pn_offset + header.pn_len);
            assert!(opened.is_ok());
            number
        })
        .collect()
}

#[test]
fn the_client_sends_again_with_the_token_and_the_server_is_believed() {
    let now = Instant::from_millis(1);
    let mut client = waiting_client(now);
    deliver(&mut client, now, &retry(RETRY_CID, TOKEN));
    assert_eq!(client.paths.primary_mut().tuple.congestion.bytes_in_flight(), 0, "what was sent is void");
    let again = sent(&mut client, now);
    assert_eq!(numbers(&again, cid(RETRY_CID), TOKEN), [2, 3], "the numbers go on");
    let mut server = server(
        now,
        cid(RETRY_CID),
        |parameters| {
            parameters.original_dcid = Some(cid(ORIGINAL_DCID));
            parameters.retry_scid = Some(cid(RETRY_CID));
        },
        &[],
    );
    for datagram in again {
        deliver(&mut server, now, &datagram);
    }
    exchange(&mut client, &mut server, now);
    assert!(client.handshake.is_confirmed() && server.handshake.is_confirmed());
}

#[test]
fn a_server_that_does_not_own_up_to_the_retry_is_refused() {
    let now = Instant::from_millis(1);
    for retry_scid in [None, Some(cid([9; 8]))] {
        let mut client = waiting_client(now);
        deliver(&mut client, now, &retry(RETRY_CID, TOKEN));
        let mut server = server(
            now,
            cid(RETRY_CID),
            |parameters| {
                parameters.original_dcid = Some(cid(ORIGINAL_DCID));
                parameters.retry_scid = retry_scid;
            },
            &[],
        );
        exchange(&mut client, &mut server, now);
        let Some(ConnectionError::Transport(error)) = lost(&mut client) else { panic!("it was believed") };
        assert_eq!(error.code, TransportErrorCode::TRANSPORT_PARAMETER_ERROR);
        assert!(error.reason.contains("retry_source_connection_id"), "{}", error.reason);
    }
}

#[track_caller]
fn is_ignored(client: &mut Connection, now: Instant, packet: &[u8]) {
    deliver(client, now, packet);
    assert_eq!(client.paths.primary_mut().remote_cids.active(), cid(ORIGINAL_DCID));
    assert!(sent(client, now).is_empty());
    assert_eq!(lost(client), None);
}

#[test]
fn a_retry_that_is_none_is_ignored() {
    let now = Instant::from_millis(1);
    let mut client = waiting_client(now);
    let genuine = retry(RETRY_CID, TOKEN);
    for at in 0..genuine.len() {
        let mut damaged = genuine.clone();
        damaged[at] ^= 1;
        is_ignored(&mut client, now, &damaged);
        is_ignored(&mut client, now, &genuine[..at]);
    }
    // RFC 9000 §17.2.5.1, §17.2.5.2: no token, or the ID that the client made up.
    is_ignored(&mut client, now, &retry(RETRY_CID, b""));
    is_ignored(&mut client, now, &retry(ORIGINAL_DCID, TOKEN));
}

#[test]
fn only_the_first_retry_is_followed_and_none_after_an_answer() {
    let now = Instant::from_millis(1);
    let mut follower = waiting_client(now);
    deliver(&mut follower, now, &retry(RETRY_CID, TOKEN));
    sent(&mut follower, now);
    deliver(&mut follower, now, &retry([0xaa; 8], b"another"));
    assert_eq!(follower.paths.primary_mut().remote_cids.active(), cid(RETRY_CID));
    assert!(sent(&mut follower, now).is_empty());

    let mut answered = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    exchange(&mut answered, &mut server, now);
    let active = answered.paths.primary_mut().remote_cids.active();
    deliver(&mut answered, now, &retry(RETRY_CID, TOKEN));
    deliver(&mut server, now, &retry(RETRY_CID, TOKEN));
    assert_eq!(answered.paths.primary_mut().remote_cids.active(), active);
    assert_eq!((lost(&mut answered), lost(&mut server)), (None, None));
}
