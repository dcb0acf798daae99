//! What a hostile peer may try.

use fulmar_wire::{
    FrameType, MaxStreamData, ResetStream, StopSending, Stream, StreamDataBlocked, TransportErrorCode,
};

use super::*;

fn server() -> End {
    let config =
        StreamsConfig { max_concurrent_bidi: 10, max_concurrent_uni: 10, ..StreamsConfig::default() };
    pair(&config, &config).1
}

fn send(end: &mut End, id: StreamId, offset: u64, len: usize, fin: bool) -> Result<(), TransportError> {
    let payload = Bytes::from(vec![0; len]);
    let frame = Stream { id, offset: VarInt::saturating(offset), fin, data: &payload };
    end.receive_frame(&Frame::Stream(frame), &payload)
}

/// All frames that name a stream, for this one.
fn all_frames(id: StreamId) -> Vec<(FrameType, Frame<'static>)> {
    let zero = VarInt::from_u32(0);
    vec![
        (FrameType::STREAM, Frame::Stream(Stream { id, offset: zero, fin: false, data: &[] })),
        (FrameType::RESET_STREAM, Frame::ResetStream(ResetStream { id, error_code: zero, final_size: zero })),
        (FrameType::STOP_SENDING, Frame::StopSending(StopSending { id, error_code: zero })),
        (FrameType::MAX_STREAM_DATA, Frame::MaxStreamData(MaxStreamData { id, maximum: zero })),
        (FrameType::STREAM_DATA_BLOCKED, Frame::StreamDataBlocked(StreamDataBlocked { id, limit: zero })),
    ]
}

fn assert_refused(id: StreamId, types: &[FrameType], code: TransportErrorCode) {
    for (frame_type, frame) in all_frames(id) {
        if !types.contains(&frame_type) {
            continue;
        }
        let error = server().receive_frame(&frame, &Bytes::new()).unwrap_err();
        assert_eq!((error.code, error.frame), (code, Some(frame_type)), "{id:?}");
    }
}

const TO_RECEIVER: [FrameType; 3] =
    [FrameType::STREAM, FrameType::RESET_STREAM, FrameType::STREAM_DATA_BLOCKED];
const TO_SENDER: [FrameType; 2] = [FrameType::STOP_SENDING, FrameType::MAX_STREAM_DATA];

#[test]
fn frames_for_the_wrong_half_are_refused() {
    let theirs = StreamId::new(Side::Client, Dir::Uni, 0);
    assert_refused(theirs, &TO_SENDER, TransportErrorCode::STREAM_STATE_ERROR);
    let ours = StreamId::new(Side::Server, Dir::Uni, 0);
    assert_refused(ours, &TO_RECEIVER, TransportErrorCode::STREAM_STATE_ERROR);
}

#[test]
fn frames_for_streams_of_ours_that_do_not_exist_are_refused() {
    let every = [TO_RECEIVER.as_slice(), &TO_SENDER].concat();
    let bi = StreamId::new(Side::Server, Dir::Bi, 0);
    assert_refused(bi, &every, TransportErrorCode::STREAM_STATE_ERROR);
    let uni = StreamId::new(Side::Server, Dir::Uni, 0);
    assert_refused(uni, &TO_SENDER, TransportErrorCode::STREAM_STATE_ERROR);
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let every = [TO_RECEIVER.as_slice(), &TO_SENDER].concat();
    for index in [10, StreamId::INDEX_MAX] {
        let bi = StreamId::new(Side::Client, Dir::Bi, index);
        assert_refused(bi, &every, TransportErrorCode::STREAM_LIMIT_ERROR);
        let uni = StreamId::new(Side::Client, Dir::Uni, index);
        assert_refused(uni, &TO_RECEIVER, TransportErrorCode::STREAM_LIMIT_ERROR);
    }
}

#[test]
fn implicit_streams_take_no_memory_until_they_are_touched() {
    let config = StreamsConfig { max_concurrent_bidi: 1 << 20, ..StreamsConfig::default() };
    let mut server = pair(&config, &config).1;
    let last = StreamId::new(Side::Client, Dir::Bi, (1 << 20) - 1);
    send(&mut server, last, 0, 1, false).unwrap();
    assert_eq!(server.streams.count(), 1);
    assert_eq!(server.events().len(), 2);
    for index in 0..1_000 {
        assert_eq!(server.streams.accept(Dir::Bi), Some(StreamId::new(Side::Client, Dir::Bi, index)));
    }
    assert_eq!(server.streams.count(), 1_001);
    // The unaccepted ones can be used as well.
    send(&mut server, StreamId::new(Side::Client, Dir::Bi, 5_000), 0, 1, false).unwrap();
    assert_eq!(server.streams.count(), 1_002);
}

#[test]
fn ended_streams_stay_ended() {
    let mut server = server();
    let id = StreamId::new(Side::Client, Dir::Uni, 3);
    send(&mut server, id, 0, 10, true).unwrap();
    assert_eq!(read_all(&mut server, id).0.len(), 10);
    assert_eq!(server.streams.count(), 0);
    server.events();
    for (frame_type, frame) in all_frames(id) {
        if TO_RECEIVER.contains(&frame_type) {
            server.receive_frame(&frame, &Bytes::new()).unwrap();
        }
    }
    assert_eq!((server.streams.count(), server.events()), (0, vec![]));
}

#[test]
fn flow_control_holds_over_many_streams() {
    let config = StreamsConfig {
        stream_receive_window: 1_000,
        stream_receive_window_max: 1_000,
        receive_window: 2_500,
        receive_window_max: 2_500,
        ..StreamsConfig::default()
    };
    let mut server = pair(&config, &config).1;
    let id = |index| StreamId::new(Side::Client, Dir::Uni, index);
    // One byte at the very end of the window counts like all bytes before it.
    send(&mut server, id(0), 999, 1, false).unwrap();
    send(&mut server, id(1), 999, 1, false).unwrap();
    let error = send(&mut server, id(2), 500, 1, false).unwrap_err();
    assert_eq!((error.code, error.frame), (TransportErrorCode::FLOW_CONTROL_ERROR, Some(FrameType::STREAM)));
    let final_size = VarInt::from_u32(501);
    let reset = Frame::ResetStream(ResetStream { id: id(2), error_code: final_size, final_size });
    let error = server.receive_frame(&reset, &Bytes::new()).unwrap_err();
    assert_eq!(error.frame, Some(FrameType::RESET_STREAM));
    assert_eq!(error.code, TransportErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn resets_return_the_credit_that_they_take() {
    let mut server = server();
    let window = server.streams.window.window();
    for index in 0..1_000 {
        let id = StreamId::new(Side::Client, Dir::Uni, index);
        let final_size = VarInt::from_u32(1 << 20);
        let reset = Frame::ResetStream(ResetStream { id, error_code: final_size, final_size });
        server.receive_frame(&reset, &Bytes::new()).unwrap();
        assert_eq!(server.streams.accept(Dir::Uni), Some(id));
        assert!(matches!(read_all(&mut server, id), (_, Err(ReadError::Reset(_)))));
        while server.packet(1_200).is_some() {}
    }
    assert_eq!(server.streams.window.limit(), (1_000 << 20) + window);
    server.assert_idle();
}

#[test]
fn events_do_not_pile_up() {
    let mut server = server();
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    for offset in 0..1_000 {
        send(&mut server, id, offset, 1, false).unwrap();
        let stop = Frame::StopSending(StopSending { id, error_code: VarInt::from_u32(1) });
        server.receive_frame(&stop, &Bytes::new()).unwrap();
        // Reading without polling makes the stream readable again and again.
        assert_eq!(read_all(&mut server, id), (vec![0], Err(ReadError::Blocked)));
    }
    assert_eq!(server.events().len(), 3, "opened, readable, stopped");
}
