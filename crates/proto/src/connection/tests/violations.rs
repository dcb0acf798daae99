//! What a peer that breaks the protocol is told (RFC 9000 §11, §19, §20).

use bytes::Bytes;
use fulmar_wire::{
    AddressDiscovery, CloseCode, ConnectionClose, ConnectionId, Crypto, Dialect, Dir, Frame, FrameType,
    MaxStreamData, NewConnectionId, NewToken, ObservedAddress, PacketKind, PathChallenge, PathId,
    PathResponse, ResetStream, ResetStreamAt, ResetToken, RetireConnectionId, Side, StopSending, Stream,
    StreamId, TimeStamps, Timestamp, TransportErrorCode as Code, VarInt, Writer,
};

use super::DATA;
use super::by_hand::take;
use super::pair::{End, Pair, Setup};
use crate::ids::SpaceId;
use crate::{TransportConfig, TransportError};

const CLIENT_BIDI: StreamIdOf = StreamIdOf(Side::Client, Dir::Bi);
const CLIENT_UNI: StreamIdOf = StreamIdOf(Side::Client, Dir::Uni);
const SERVER_BIDI: StreamIdOf = StreamIdOf(Side::Server, Dir::Bi);
const SERVER_UNI: StreamIdOf = StreamIdOf(Side::Server, Dir::Uni);

struct StreamIdOf(Side, Dir);

impl StreamIdOf {
    fn at(self, index: u64) -> StreamId {
        StreamId::new(self.0, self.1, index)
    }
}

pub(super) fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.encoded_len(Dialect::SinglePath)];
    frame.encode(Dialect::SinglePath, &mut Writer::new(&mut bytes));
    bytes
}

pub(super) fn varint(value: u64) -> VarInt {
    VarInt::try_from(value).unwrap()
}

/// Hands the payload of an authentic packet to one end of a connection.
pub(super) fn receive(
    end: &mut End,
    space: SpaceId,
    payload: Vec<u8>,
    now: crate::Instant,
) -> Result<(), TransportError> {
    receive_as(end, space, space.packet_kind(), payload, now)
}

/// As [`receive`], but in a packet of a kind that shares its space with another.
pub(super) fn receive_as(
    end: &mut End,
    space: SpaceId,
    kind: PacketKind,
    payload: Vec<u8>,
    now: crate::Instant,
) -> Result<(), TransportError> {
    take(end.conn(), now, (space, kind), &Bytes::from(payload))
}

/// Sends a payload to a server and expects that it closes with this code because of this frame.
#[track_caller]
pub(super) fn refused_by_server(payload: Vec<u8>, code: Code, frame: Option<FrameType>) {
    let mut pair = Pair::connected();
    let error = receive(&mut pair.server, DATA, payload, pair.now).expect_err("an illegal packet was taken");
    assert_eq!((error.code, error.frame), (code, frame), "{error}");
}

#[track_caller]
fn refused_by_client(payload: Vec<u8>, code: Code, frame: Option<FrameType>) {
    let mut pair = Pair::connected();
    let error = receive(&mut pair.client, DATA, payload, pair.now).expect_err("an illegal packet was taken");
    assert_eq!((error.code, error.frame), (code, frame), "{error}");
}

#[test]
fn resets_that_leave_a_part_of_a_stream() {
    let reset = |id| {
        let (error_code, final_size, reliable_size) =
            (VarInt::ZERO, VarInt::from_u32(9), VarInt::from_u32(3));
        encode(&Frame::ResetStreamAt(ResetStreamAt { id, error_code, final_size, reliable_size }))
    };
    let frame = Some(FrameType::RESET_STREAM_AT);
    refused_by_server(reset(SERVER_UNI.at(0)), Code::STREAM_STATE_ERROR, frame);
    refused_by_server(reset(SERVER_BIDI.at(0)), Code::STREAM_STATE_ERROR, frame);
    refused_by_server(reset(CLIENT_UNI.at(1 << 30)), Code::STREAM_LIMIT_ERROR, frame);
    refused_by_client(reset(CLIENT_UNI.at(0)), Code::STREAM_STATE_ERROR, frame);
    let server = TransportConfig { reset_stream_at: false, ..TransportConfig::default() };
    let mut pair = Setup { server, ..Setup::default() }.connect();
    let error = receive(&mut pair.server, DATA, reset(CLIENT_UNI.at(0)), pair.now).unwrap_err();
    assert_eq!((error.code, error.frame), (Code::FRAME_ENCODING_ERROR, frame), "it might as well be unknown");
}

#[test]
fn addresses_that_nobody_has_asked_for() {
    let told = || {
        let address = "192.0.2.1:443".parse().unwrap();
        encode(&Frame::ObservedAddress(ObservedAddress::new(VarInt::ZERO, address)))
    };
    let frame = Some(FrameType::OBSERVED_ADDRESS_V4);
    refused_by_server(told(), Code::PROTOCOL_VIOLATION, frame);
    refused_by_client(told(), Code::PROTOCOL_VIOLATION, frame);
    let provide = || TransportConfig {
        address_discovery: Some(AddressDiscovery::Provide),
        ..TransportConfig::default()
    };
    let mut pair = Setup { server: provide(), client: provide(), ..Setup::default() }.connect();
    let error = receive(&mut pair.server, DATA, told(), pair.now).unwrap_err();
    assert_eq!((error.code, error.frame), (Code::PROTOCOL_VIOLATION, frame));
}

#[test]
fn timestamps_that_nobody_has_asked_for() {
    let stamp = || encode(&Frame::Timestamp(Timestamp { time: VarInt::from_u32(9) }));
    let frame = Some(FrameType::TIMESTAMP);
    refused_by_server(stamp(), Code::PROTOCOL_VIOLATION, frame);
    refused_by_client(stamp(), Code::PROTOCOL_VIOLATION, frame);
    let send = || TransportConfig { time_stamps: Some(TimeStamps::Send), ..TransportConfig::default() };
    let mut pair = Setup { server: send(), client: send(), ..Setup::default() }.connect();
    let error = receive(&mut pair.server, DATA, stamp(), pair.now).unwrap_err();
    assert_eq!((error.code, error.frame), (Code::PROTOCOL_VIOLATION, frame));
    let mut pair = Pair::new(TransportConfig::default(), TransportConfig::default());
    pair.run_for(super::pair::DELAY * 2);
    let error = receive(&mut pair.server, SpaceId::Handshake, stamp(), pair.now).unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION, "only 1-RTT packets carry them");
}

fn stream(id: StreamId, offset: u64, data: &[u8]) -> Vec<u8> {
    encode(&Frame::Stream(Stream { id, offset: VarInt::saturating(offset), fin: false, data }))
}

#[test]
fn a_packet_without_frames() {
    refused_by_server(Vec::new(), Code::PROTOCOL_VIOLATION, None);
}

#[test]
fn an_unknown_frame() {
    refused_by_server(vec![0x21], Code::FRAME_ENCODING_ERROR, Some(FrameType(0x21)));
}

#[test]
fn a_truncated_frame() {
    refused_by_server(vec![0x11, 0x00], Code::FRAME_ENCODING_ERROR, Some(FrameType::MAX_STREAM_DATA));
}

#[test]
fn data_beyond_the_window_of_the_stream() {
    let payload = stream(CLIENT_BIDI.at(0), 1 << 40, b"x");
    refused_by_server(payload, Code::FLOW_CONTROL_ERROR, Some(FrameType::STREAM));
}

#[test]
fn a_stream_beyond_the_limit() {
    let payload = stream(CLIENT_BIDI.at(1 << 30), 0, b"x");
    refused_by_server(payload, Code::STREAM_LIMIT_ERROR, Some(FrameType::STREAM));
}

#[test]
fn data_on_a_stream_that_the_receiver_never_opened() {
    refused_by_server(stream(SERVER_BIDI.at(0), 0, b"x"), Code::STREAM_STATE_ERROR, Some(FrameType::STREAM));
}

#[test]
fn data_on_a_stream_that_only_the_receiver_sends_on() {
    refused_by_server(stream(SERVER_UNI.at(0), 0, b"x"), Code::STREAM_STATE_ERROR, Some(FrameType::STREAM));
}

#[test]
fn a_reset_of_a_stream_that_only_the_receiver_sends_on() {
    let reset = ResetStream { id: SERVER_UNI.at(0), error_code: VarInt::ZERO, final_size: VarInt::ZERO };
    let frame = Some(FrameType::RESET_STREAM);
    refused_by_server(encode(&Frame::ResetStream(reset)), Code::STREAM_STATE_ERROR, frame);
}

#[test]
fn a_stop_for_a_stream_that_does_not_exist() {
    let stop = StopSending { id: SERVER_BIDI.at(0), error_code: VarInt::ZERO };
    refused_by_server(
        encode(&Frame::StopSending(stop)),
        Code::STREAM_STATE_ERROR,
        Some(FrameType::STOP_SENDING),
    );
}

#[test]
fn credit_for_a_stream_that_does_not_exist_or_only_receives() {
    for id in [SERVER_BIDI.at(0), CLIENT_UNI.at(0)] {
        let max = MaxStreamData { id, maximum: VarInt::MAX };
        let frame = Some(FrameType::MAX_STREAM_DATA);
        refused_by_server(encode(&Frame::MaxStreamData(max)), Code::STREAM_STATE_ERROR, frame);
    }
}

#[test]
fn a_final_size_that_changes() {
    let id = CLIENT_BIDI.at(0);
    let end = encode(&Frame::Stream(Stream { id, offset: VarInt::ZERO, fin: true, data: b"abc" }));
    let payload = [end, stream(id, 3, b"d")].concat();
    refused_by_server(payload, Code::FINAL_SIZE_ERROR, Some(FrameType::STREAM));
}

#[test]
fn stream_limits_of_more_than_two_to_the_sixty() {
    for (frame_type, name) in [(0x12, FrameType::MAX_STREAMS_BIDI), (0x17, FrameType::STREAMS_BLOCKED_UNI)] {
        let payload =
            [&[frame_type][..], &(0xc000_0000_0000_0000u64 | ((1 << 60) + 1)).to_be_bytes()].concat();
        refused_by_server(payload, Code::FRAME_ENCODING_ERROR, Some(name));
    }
}

#[test]
fn frames_that_only_servers_send() {
    refused_by_server(
        encode(&Frame::NewToken(NewToken { token: b"token" })),
        Code::PROTOCOL_VIOLATION,
        Some(FrameType::NEW_TOKEN),
    );
    refused_by_server(
        encode(&Frame::HandshakeDone),
        Code::PROTOCOL_VIOLATION,
        Some(FrameType::HANDSHAKE_DONE),
    );
}

#[test]
fn an_answer_to_a_challenge_that_was_never_sent() {
    let frame = Frame::PathResponse(PathResponse { data: [1; 8] });
    refused_by_server(encode(&frame), Code::PROTOCOL_VIOLATION, Some(FrameType::PATH_RESPONSE));
}

#[test]
fn an_acknowledgement_of_a_packet_that_was_never_sent() {
    // ACK: largest 1,000,000; no delay; no more ranges; this packet only.
    let payload = vec![0x02, 0x80, 0x0f, 0x42, 0x40, 0x00, 0x00, 0x00];
    refused_by_server(payload, Code::PROTOCOL_VIOLATION, Some(FrameType::ACK));
}

fn connection_id(sequence: u32, retire_prior_to: u32) -> Vec<u8> {
    encode(&Frame::NewConnectionId(NewConnectionId {
        path: PathId::ZERO,
        sequence: VarInt::from_u32(sequence),
        retire_prior_to: VarInt::from_u32(retire_prior_to),
        cid: ConnectionId::new(&[0xee, sequence as u8, 1, 2, 3, 4, 5, 6]).unwrap(),
        reset_token: ResetToken([sequence as u8; 16]),
    }))
}

#[test]
fn more_connection_ids_than_were_asked_for() {
    let payload = (10..30).flat_map(|n| connection_id(n, 0)).collect();
    refused_by_client(payload, Code::CONNECTION_ID_LIMIT_ERROR, Some(FrameType::NEW_CONNECTION_ID));
}

#[test]
fn a_retirement_ahead_of_its_own_frame() {
    let mut payload = connection_id(9, 0);
    payload[2] = 10;
    refused_by_client(payload, Code::FRAME_ENCODING_ERROR, Some(FrameType::NEW_CONNECTION_ID));
}

#[test]
fn a_retirement_of_an_id_that_was_never_issued_or_is_in_use() {
    let retire = |sequence| {
        let sequence = VarInt::from_u32(sequence);
        encode(&Frame::RetireConnectionId(RetireConnectionId { path: PathId::ZERO, sequence }))
    };
    let frame = Some(FrameType::RETIRE_CONNECTION_ID);
    refused_by_server(retire(100), Code::PROTOCOL_VIOLATION, frame);
    refused_by_server(retire(0), Code::PROTOCOL_VIOLATION, frame);
}

#[test]
fn frames_in_packets_that_must_not_carry_them() {
    let mut pair = Pair::connected();
    let challenge = encode(&Frame::PathChallenge(PathChallenge { data: [1; 8] }));
    let close = ConnectionClose { code: CloseCode::Application(VarInt::ZERO), reason: &[] };
    let close = encode(&Frame::ConnectionClose(close));
    for (payload, frame) in [
        (challenge, FrameType::PATH_CHALLENGE),
        (close, FrameType::APPLICATION_CLOSE),
        (stream(CLIENT_BIDI.at(0), 0, b"x"), FrameType::STREAM),
    ] {
        for space in [SpaceId::Initial, SpaceId::Handshake] {
            let error = receive(&mut pair.server, space, payload.clone(), pair.now).unwrap_err();
            assert_eq!((error.code, error.frame), (Code::PROTOCOL_VIOLATION, Some(frame)), "{space}");
        }
    }
}

#[test]
fn handshake_data_without_end() {
    let data = vec![0; 1_000];
    let mut pair = Pair::connected();
    let mut offset = 0;
    let error = loop {
        let crypto = Crypto { offset: VarInt::from_u32(10_000 + offset), data: &data };
        match receive(&mut pair.client, DATA, encode(&Frame::Crypto(crypto)), pair.now) {
            Ok(()) => offset += 1_000,
            Err(error) => break error,
        }
        assert!(offset < 1 << 20, "a megabyte was taken");
    };
    assert_eq!((error.code, error.frame), (Code::CRYPTO_BUFFER_EXCEEDED, Some(FrameType::CRYPTO)));
}

#[test]
fn a_key_update_by_tls() {
    // RFC 9001 §6: a KeyUpdate message in CRYPTO is unexpected_message, alert 10.
    let key_update = [24, 0, 0, 1, 0];
    let crypto = Frame::Crypto(Crypto { offset: VarInt::ZERO, data: &key_update });
    refused_by_server(encode(&crypto), Code::crypto(10), Some(FrameType::CRYPTO));
}

#[test]
fn the_peer_is_told_the_code_and_the_frame() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let error = receive(&mut pair.server, DATA, vec![0x21], now).unwrap_err();
    pair.server.conn().close_on_error(now, error);
    pair.run_for(std::time::Duration::from_millis(50));
    let lost = pair.client.events.iter().find_map(|event| match event {
        crate::Event::ConnectionLost { reason } => Some(reason.clone()),
        _ => None,
    });
    match lost {
        Some(crate::ConnectionError::ConnectionClosed { code, frame, .. }) => {
            assert_eq!((code, frame), (Code::FRAME_ENCODING_ERROR, Some(FrameType(0x21))));
        }
        other => panic!("{other:?}"),
    }
}
