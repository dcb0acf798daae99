//! Transport parameters that a peer must not send, and those that this end sends (RFC 9000 §7.3, §7.4, §18.2).

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{TransportErrorCode as Code, TransportParameters, VarInt};

use super::by_hand::{ORIGINAL_DCID, cid, client, exchange, lost, server};
use super::pair::Setup;
use crate::{ConnectionError, TransportConfig};

type Change = fn(&mut TransportParameters);

/// A peer with other parameters, the other one's verdict, and what the peer is told.
fn verdict(
    client_tells: (Change, &[u8]),
    server_tells: (Change, &[u8]),
    judge_is_client: bool,
) -> [ConnectionError; 2] {
    let now = Instant::from_millis(1);
    let mut client = client(now, client_tells.0, client_tells.1);
    let mut server = server(now, cid(ORIGINAL_DCID), server_tells.0, server_tells.1);
    exchange(&mut client, &mut server, now);
    let (judge, judged) =
        if judge_is_client { (&mut client, &mut server) } else { (&mut server, &mut client) };
    [lost(judge).expect("the parameters were accepted"), lost(judged).expect("the peer was not told")]
}

#[track_caller]
fn is_refused(by_client: bool, change: Change, raw: &[u8], words: &str) {
    let honest: (Change, &[u8]) = (|_| {}, &[]);
    let [judged, told] = match by_client {
        true => verdict(honest, (change, raw), true),
        false => verdict((change, raw), honest, false),
    };
    let ConnectionError::Transport(error) = judged else { panic!("{judged:?}") };
    assert_eq!(error.code, Code::TRANSPORT_PARAMETER_ERROR);
    assert!(error.reason.contains(words), "{}", error.reason);
    let ConnectionError::ConnectionClosed { code, .. } = told else { panic!("{told:?}") };
    assert_eq!(code, Code::TRANSPORT_PARAMETER_ERROR);
}

#[test]
fn honest_parameters_are_accepted() {
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    exchange(&mut client, &mut server, now);
    assert!(client.handshake.is_confirmed() && server.handshake.is_confirmed());
}

#[test]
fn values_that_are_out_of_range() {
    for by_client in [false, true] {
        is_refused(by_client, |_| {}, &[0x0a, 1, 21], "ack_delay_exponent is above 20");
        is_refused(
            by_client,
            |p| p.max_ack_delay = TransportParameters::default().max_ack_delay,
            &[0x0b, 4, 0x80, 0, 0x40, 0],
            "max_ack_delay is 2^14",
        );
        is_refused(by_client, |_| {}, &[0x03, 2, 0x44, 0xaf], "max_udp_payload_size is below 1200");
        is_refused(
            by_client,
            |p| p.active_connection_id_limit = 2u32.into(),
            &[0x0e, 1, 1],
            "active_connection_id_limit is below 2",
        );
        is_refused(by_client, |_| {}, &[0x0f, 1], "initial_source_connection_id");
        is_refused(by_client, |_| {}, &[0x40], "end in the middle");
        is_refused(by_client, |_| {}, &[0x21, 0, 0x21, 0], "occurs more than once");
    }
}

#[test]
fn connection_ids_that_are_missing_or_not_those_of_the_packets() {
    let words = "initial_source_connection_id does not match";
    for by_client in [false, true] {
        is_refused(by_client, |p| p.initial_scid = None, &[], words);
        is_refused(by_client, |p| p.initial_scid = Some(cid([9; 8])), &[], words);
    }
    let words = "original_destination_connection_id does not match";
    is_refused(true, |p| p.original_dcid = None, &[], words);
    is_refused(true, |p| p.original_dcid = Some(cid([9; 8])), &[], words);
    is_refused(true, |p| p.retry_scid = Some(cid([9; 8])), &[], "retry_source_connection_id does not match");
}

#[test]
fn a_client_that_sends_what_only_servers_may() {
    let words = "may only be sent by a server";
    is_refused(false, |_| {}, &[[0x00, 8].as_slice(), &[1; 8]].concat(), words);
    is_refused(false, |_| {}, &[[0x02, 16].as_slice(), &[1; 16]].concat(), words);
    is_refused(false, |_| {}, &[[0x10, 8].as_slice(), &[1; 8]].concat(), words);
    is_refused(false, |_| {}, &[[0x0d, 49].as_slice(), &[1; 49]].concat(), words);
}

#[test]
fn extreme_values_are_used_without_harm() {
    let now = Instant::from_millis(1);
    let largest = [0xff; 8];
    let raw = |ids: &[u8]| ids.iter().flat_map(|id| [&[*id, 8], &largest[..]].concat()).collect::<Vec<u8>>();
    let zero = |p: &mut TransportParameters| {
        p.max_idle_timeout = None;
        p.initial_max_data = 0u32.into();
        p.initial_max_stream_data_bidi_local = 0u32.into();
        p.initial_max_stream_data_bidi_remote = 0u32.into();
        p.initial_max_stream_data_uni = 0u32.into();
        p.max_datagram_frame_size = None;
        p.active_connection_id_limit = 2u32.into();
    };
    // Timeout, payload size, windows and frame size; the limit of connection IDs.
    let raw = raw(&[0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x20, 0x0e]);
    let mut client = client(now, zero, &raw);
    let mut server = server(now, cid(ORIGINAL_DCID), zero, &raw);
    let now = exchange(&mut client, &mut server, now);
    assert_eq!((lost(&mut client), lost(&mut server)), (None, None));
    let id = client.streams().open(crate::Dir::Uni).unwrap();
    assert_eq!(client.streams().send(id).write(b"hello"), Ok(5));
    client.send_datagram(bytes::Bytes::from_static(b"hello"), false).unwrap();
    exchange(&mut client, &mut server, now);
    assert_eq!(server.read_datagram().as_deref(), Some(&b"hello"[..]));
}

#[test]
fn what_an_end_is_configured_with_is_what_the_peer_is_told() {
    let server = TransportConfig {
        max_ack_delay: Duration::from_millis(7),
        max_idle_timeout: Some(Duration::from_millis(12_345)),
        stream_receive_window: 70_000,
        receive_window: 80_000,
        max_concurrent_bidi_streams: 11,
        max_concurrent_uni_streams: 12,
        connection_ids: 3,
        migration: false,
        ..TransportConfig::default()
    };
    let mut pair = Setup { server, ..Setup::default() }.connect();
    let told = pair.client.conn().peer_transport_parameters().unwrap();
    assert_eq!(told.max_ack_delay, Duration::from_millis(7));
    assert_eq!(told.max_idle_timeout, Some(Duration::from_millis(12_345)));
    assert_eq!(told.initial_max_data.get(), 80_000);
    let streams = [
        told.initial_max_stream_data_bidi_local,
        told.initial_max_stream_data_bidi_remote,
        told.initial_max_stream_data_uni,
    ];
    assert_eq!(streams.map(VarInt::get), [70_000; 3]);
    assert_eq!((told.initial_max_streams_bidi.get(), told.initial_max_streams_uni.get()), (11, 12));
    assert_eq!((told.active_connection_id_limit.get(), told.disable_active_migration), (3, true));
}
