//! Illegal inputs of clients that the conformance test h3spec sends to servers, as far as `violations` and `parameters` do not
//! have them already: in packets with valid keys, to a connection in the middle of its handshake or behind it.

use fulmar_base::Instant;
use fulmar_wire::{
    ConnectionId, Crypto, Frame, LongHeader, NewConnectionId, PacketKind, PathId, ResetToken, ShortHeader,
    Side, TransportErrorCode as Code, TransportParameters, VarInt, Version, Writer, patch_length,
    protect_header, sample,
};

use super::super::Connection;
use super::DATA;
use super::by_hand::{
    CLIENT_CID, ORIGINAL_DCID, SERVER_CID, cid, client, client_that_tells, deliver, exchange, lost, sent,
    server, server_with,
};
use super::packets::packet;
use super::pair::{CLIENT, Pair, server_tls};
use super::violations::{encode, receive_as, refused_by_server};
use crate::ConnectionError;
use crate::crypto::{AeadBackend, Keys, Level, TAG_LEN};

/// The bits of the first byte that must be zero: of a long header and of a short one (RFC 9000 §17.2, §17.3.1).
const RESERVED_LONG: u8 = 0x0c;
const RESERVED_SHORT: u8 = 0x18;
const NUMBER_LEN: usize = 4;

/// A client that has Handshake keys and has not sent its last flight, and its server.
pub(super) fn in_the_handshake(now: Instant) -> (Connection, Connection) {
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    for datagram in sent(&mut client, now) {
        deliver(&mut server, now, &datagram);
    }
    for datagram in sent(&mut server, now) {
        if client.handshake.keys.handshake().is_none() {
            deliver(&mut client, now, &datagram);
        }
    }
    assert!(client.handshake.keys.handshake().is_some());
    (client, server)
}

/// A Handshake packet of the client with this payload; `reserved` is set in its first byte.
fn handshake_packet(client: &Connection, reserved: u8, payload: &[u8]) -> Vec<u8> {
    let keys = &client.handshake.keys.handshake().unwrap().local;
    let kind = PacketKind::Handshake;
    let header =
        LongHeader { kind, version: Version::V1, dst: cid(SERVER_CID), src: cid(CLIENT_CID), token: &[] };
    let number = 100;
    let mut packet = vec![0; 200];
    let mut writer = Writer::new(&mut packet);
    let offsets = header.write(&mut writer, number, NUMBER_LEN);
    let header_len = writer.len();
    writer.put_bytes(payload);
    packet.truncate(header_len + payload.len().max(20) + TAG_LEN);
    let behind_number = packet.len() - offsets.pn_offset;
    patch_length(&mut packet, offsets.length_at, behind_number);
    packet[0] |= reserved;
    keys.packet.seal(PathId::ZERO, number, &mut packet, header_len);
    let mask = keys.header.mask(sample(&packet, offsets.pn_offset).unwrap());
    protect_header(&mut packet, offsets.pn_offset, mask);
    packet
}

/// A 1-RTT packet of the client.
fn short_packet(client: &mut Connection, reserved: u8, payload: &[u8]) -> Vec<u8> {
    let dst = client.paths.primary_mut().remote_cids.active();
    let keys = client.handshake.keys.one_rtt_mut().unwrap();
    let header = ShortHeader { dst, spin: false, key_phase: false };
    let number = 100;
    let mut packet = vec![0; 200];
    let mut writer = Writer::new(&mut packet);
    let pn_offset = header.write(&mut writer, number, NUMBER_LEN);
    let header_len = writer.len();
    writer.put_bytes(payload);
    packet.truncate(header_len + payload.len().max(20) + TAG_LEN);
    packet[0] |= reserved;
    keys.seal(PathId::ZERO, number, &mut packet, header_len);
    let mask = keys.local_header().mask(sample(&packet, pn_offset).unwrap());
    protect_header(&mut packet, pn_offset, mask);
    packet
}

/// Delivers a packet and gives the code with which the server closes.
#[track_caller]
fn code_of(server: &mut Connection, now: Instant, packet: &[u8]) -> Code {
    deliver(server, now, packet);
    match lost(server) {
        Some(ConnectionError::Transport(error)) => error.code,
        Some(ConnectionError::Tls(error)) => panic!("{error}: without its code"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reserved_bits_of_a_handshake_packet() {
    let now = Instant::from_millis(1);
    let (client, mut server) = in_the_handshake(now);
    let ping = encode(&Frame::Ping);
    deliver(&mut server, now, &handshake_packet(&client, 0, &ping));
    assert_eq!(lost(&mut server), None, "the packet is good but for the bits");
    let (client, mut server) = in_the_handshake(now);
    let packet = handshake_packet(&client, RESERVED_LONG, &ping);
    assert_eq!(code_of(&mut server, now, &packet), Code::PROTOCOL_VIOLATION);
}

#[test]
fn reserved_bits_of_a_short_header() {
    for (reserved, closes) in [(0, false), (RESERVED_SHORT, true)] {
        let now = Instant::from_millis(1);
        let mut client = client(now, |_| {}, &[]);
        let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
        let now = exchange(&mut client, &mut server, now);
        let packet = short_packet(&mut client, reserved, &encode(&Frame::Ping));
        if closes {
            assert_eq!(code_of(&mut server, now, &packet), Code::PROTOCOL_VIOLATION);
        } else {
            deliver(&mut server, now, &packet);
            assert_eq!(lost(&mut server), None, "the packet is good but for the bits");
        }
    }
}

#[test]
fn tls_messages_that_have_no_place_in_the_handshake() {
    // RFC 9001 §6 and §8.3: KeyUpdate and EndOfEarlyData are unexpected_message, alert 10.
    for message in [&[24, 0, 0, 1, 0][..], &[5, 0, 0, 0]] {
        let now = Instant::from_millis(1);
        let (client, mut server) = in_the_handshake(now);
        let crypto = encode(&Frame::Crypto(Crypto { offset: VarInt::ZERO, data: message }));
        deliver(&mut server, now, &handshake_packet(&client, 0, &crypto));
        let reason = lost(&mut server).expect("the message was taken");
        assert!(matches!(reason, ConnectionError::Tls(_) | ConnectionError::Transport(_)), "{reason:?}");
        let told = sent(&mut server, now);
        let mut client = client;
        told.iter().for_each(|datagram| deliver(&mut client, now, datagram));
        let Some(ConnectionError::ConnectionClosed { code, .. }) = lost(&mut client) else {
            panic!("the client was not told")
        };
        assert_eq!(code, Code::crypto(10));
    }
}

/// The code with which a server closes, as its client hears it.
#[track_caller]
fn told_code(client: &mut Connection, server: &mut Connection, now: Instant) -> Code {
    sent(server, now).iter().for_each(|datagram| deliver(client, now, datagram));
    match lost(client) {
        Some(ConnectionError::ConnectionClosed { code, .. }) => code,
        other => panic!("the client was not told: {other:?}"),
    }
}

#[test]
fn a_key_update_of_tls_behind_a_gap_in_the_handshake() {
    let now = Instant::from_millis(1);
    let (mut client, mut server) = in_the_handshake(now);
    let crypto = Crypto { offset: VarInt::from_u32(1_000), data: &[24, 0, 0, 1, 0] };
    let handshake = &mut server.handshake;
    let taken = handshake.tls.on_crypto(Level::Handshake, &crypto, &mut handshake.keys);
    assert!(taken.is_ok(), "TLS may still wait for what is before");
    // With the client's last flight TLS goes on to the next keys.
    exchange(&mut client, &mut server, now);
    match lost(&mut server) {
        Some(ConnectionError::Transport(error)) => assert_eq!(error.code, Code::crypto(10)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_update_of_tls_in_a_handshake_packet_behind_the_handshake() {
    let now = Instant::from_millis(1);
    let (mut client, mut server) = in_the_handshake(now);
    exchange(&mut client, &mut server, now);
    let handshake = &mut server.handshake;
    // Behind Finished, which has 4 bytes and a hash of the suite's length.
    let mut codes = Vec::new();
    for offset in [4 + 32, 4 + 48] {
        let crypto = Crypto { offset: VarInt::from_u32(offset), data: &[24, 0, 0, 1, 0] };
        let taken = handshake.tls.on_crypto(Level::Handshake, &crypto, &mut handshake.keys);
        codes.extend(taken.err().map(|error| error.code));
    }
    assert!(!codes.is_empty() && codes.iter().all(|code| *code == Code::crypto(10)), "{codes:?}");
}

#[test]
fn what_follows_the_last_message_of_a_level_in_its_frame() {
    // RFC 9001 §4.1.3: nothing may; §6: KeyUpdate has an error code of its own.
    let cases = [
        (&[24, 0, 0, 1, 1][..], Code::crypto(10)),
        (&[24, 0, 0, 1], Code::crypto(10)),
        (&[4, 0, 0, 1, 1], Code::PROTOCOL_VIOLATION),
        (&[4, 0], Code::PROTOCOL_VIOLATION),
    ];
    for (message, code) in cases {
        let now = Instant::from_millis(1);
        let of = |side: Side| move |parameters: TransportParameters| parameters.write(side, None);
        let mut client = client(now, |_| {}, &[]);
        let mut server = server_with(now, cid(ORIGINAL_DCID), &server_tls(), of(Side::Server));
        sent(&mut client, now).iter().for_each(|datagram| deliver(&mut server, now, datagram));
        sent(&mut server, now).iter().for_each(|datagram| deliver(&mut client, now, datagram));
        assert!(client.handshake.is_complete(), "the client is about to send its last flight");
        client.handshake.tls.crypto.say(Level::Handshake, message);
        sent(&mut client, now).iter().for_each(|datagram| deliver(&mut server, now, datagram));
        assert!(lost(&mut server).is_some());
        assert_eq!(told_code(&mut client, &mut server, now), code, "{message:?}");
    }
}

#[test]
fn a_key_update_of_tls_behind_the_handshake() {
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    let now = exchange(&mut client, &mut server, now);
    let crypto = encode(&Frame::Crypto(Crypto { offset: VarInt::ZERO, data: &[24, 0, 0, 1, 0] }));
    let packet = short_packet(&mut client, 0, &crypto);
    deliver(&mut server, now, &packet);
    assert!(lost(&mut server).is_some());
    assert_eq!(told_code(&mut client, &mut server, now), Code::crypto(10));
}

#[test]
fn a_close_in_an_initial_packet_fills_its_datagram() {
    // A client without transport parameters is closed before there are other keys.
    let now = Instant::from_millis(1);
    let mut client = client_that_tells(now, |_| Vec::new());
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    for datagram in sent(&mut client, now) {
        deliver(&mut server, now, &datagram);
    }
    assert!(lost(&mut server).is_some());
    let told = sent(&mut server, now);
    let [close] = &told[..] else { panic!("{} datagrams", told.len()) };
    assert_eq!(close.len(), usize::from(crate::config::MTU_MIN));
    deliver(&mut client, now, close);
    assert!(matches!(lost(&mut client), Some(ConnectionError::ConnectionClosed { .. })));
}

#[test]
fn handshake_data_in_early_packets() {
    // RFC 9000 §12.4: CRYPTO has no place in 0-RTT packets.
    let mut pair = Pair::connected();
    let crypto = encode(&Frame::Crypto(Crypto { offset: VarInt::ZERO, data: b"x" }));
    let error = receive_as(&mut pair.server, DATA, PacketKind::ZeroRtt, crypto, pair.now);
    assert_eq!(error.unwrap_err().code, Code::PROTOCOL_VIOLATION);
}

#[test]
fn a_connection_id_without_bytes() {
    let frame = Frame::NewConnectionId(NewConnectionId {
        path: PathId::ZERO,
        sequence: VarInt::from_u32(1),
        retire_prior_to: VarInt::ZERO,
        cid: ConnectionId::new(&[7]).unwrap(),
        reset_token: ResetToken([1; 16]),
    });
    let mut payload = encode(&frame);
    // Type, sequence, what to retire, length, one byte, token.
    assert_eq!(payload[3..5], [1, 7]);
    payload[3] = 0;
    payload.remove(4);
    refused_by_server(payload, Code::FRAME_ENCODING_ERROR, Some(fulmar_wire::FrameType::NEW_CONNECTION_ID));
}

#[test]
fn transport_parameters_under_the_number_of_the_drafts() {
    let draft = rustls::quic::Version::V1Draft;
    let name = "localhost".try_into().unwrap();
    let tls = std::sync::Arc::new(super::pair::client_tls());
    let mut attacker = rustls::quic::ClientConnection::new(tls, draft, name, Vec::new()).unwrap();
    let mut hello = Vec::new();
    attacker.write_hs(&mut hello);
    let mut pair = super::pair::Setup::default().dial();
    let keys = Keys::initial(Version::V1, &cid(ORIGINAL_DCID), Side::Client, AeadBackend::default());
    for (number, data) in hello.chunks(1_000).enumerate() {
        let frame = Frame::Crypto(Crypto { offset: VarInt::from_u32(1_000 * number as u32), data });
        let ids = (cid(ORIGINAL_DCID), cid(CLIENT_CID));
        let initial = packet(&keys, (PacketKind::Initial, &[]), ids, number as u64, &[frame], 1_200);
        pair.inject(Side::Server, CLIENT.parse().unwrap(), initial);
    }
    let Some(ConnectionError::Transport(error)) = pair.lost(Side::Server) else {
        panic!("{:?}", pair.lost(Side::Server))
    };
    assert_eq!(error.code, Code::crypto(109), "missing_extension");
}
