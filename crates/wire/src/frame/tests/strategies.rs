//! Frames of all kinds but ACK, whose ranges need a buffer of their own: see the tests of that file.

use super::*;

/// What frames borrow: bytes that differ from their neighbours.
static BYTES: [u8; 600] = {
    let mut bytes = [0; 600];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = (i * 7 + 1) as u8;
        i += 1;
    }
    bytes
};

pub(super) fn any_dialect() -> impl Strategy<Value = Dialect> {
    prop::sample::select(&DIALECTS[..])
}

/// Of all lengths alike.
pub(in crate::frame) fn any_varint() -> impl Strategy<Value = VarInt> {
    (2u32..64, any::<u64>()).prop_map(|(shift, bits)| varint(bits >> shift))
}

pub(in crate::frame) fn any_path(dialect: Dialect) -> BoxedStrategy<PathId> {
    match dialect {
        Dialect::SinglePath => Just(PathId::ZERO).boxed(),
        Dialect::Multipath => {
            (0u32..32, any::<u32>()).prop_map(|(shift, bits)| PathId(bits >> shift)).boxed()
        }
    }
}

fn any_bytes(min: usize) -> impl Strategy<Value = &'static [u8]> {
    (0usize..200, prop_oneof![min..4, 60usize..70, 4usize..400])
        .prop_map(|(from, len)| &BYTES[from..from + len])
}

fn any_id() -> impl Strategy<Value = StreamId> {
    any_varint().prop_map(StreamId::from)
}

fn any_dir() -> impl Strategy<Value = Dir> {
    prop_oneof![Just(Dir::Bi), Just(Dir::Uni)]
}

/// An offset after which there is room for all that [`any_bytes`] yields.
fn any_offset() -> impl Strategy<Value = VarInt> {
    any_varint().prop_map(|offset| offset.min(varint(VarInt::MAX.get() - BYTES.len() as u64)))
}

fn any_stream_count() -> impl Strategy<Value = VarInt> {
    any_varint().prop_map(|count| count.min(varint(1 << 60)))
}

fn any_new_connection_id(dialect: Dialect) -> impl Strategy<Value = NewConnectionId> {
    let cid = prop::collection::vec(any::<u8>(), 1..=20);
    (any_path(dialect), any_varint(), any_varint(), cid, any::<[u8; 16]>()).prop_map(
        |(path, a, b, cid, token)| NewConnectionId {
            path,
            sequence: a.max(b),
            retire_prior_to: a.min(b),
            cid: ConnectionId::new(&cid).unwrap(),
            reset_token: ResetToken(token),
        },
    )
}

fn any_close_code() -> impl Strategy<Value = CloseCode> {
    prop_oneof![
        any_varint().prop_map(CloseCode::Application),
        (any_varint(), any_varint()).prop_map(|(code, frame)| CloseCode::Transport {
            code: TransportErrorCode(code.get()),
            frame: FrameType(frame.get()),
        }),
    ]
}

fn any_ack_frequency() -> impl Strategy<Value = AckFrequency> {
    (any_varint(), any_varint(), any_varint(), any_varint()).prop_map(|(a, b, c, d)| AckFrequency {
        sequence: a,
        ack_eliciting_threshold: b,
        max_ack_delay_micros: c,
        reordering_threshold: d,
    })
}

pub(super) fn any_frame(dialect: Dialect) -> impl Strategy<Value = Frame<'static>> {
    use Frame as F;
    prop_oneof![
        prop::sample::select(&[F::Padding, F::Ping, F::HandshakeDone, F::ImmediateAck][..]),
        (any_id(), any_varint(), any_varint()).prop_map(|(id, error_code, final_size)| F::ResetStream(
            ResetStream { id, error_code, final_size }
        )),
        (any_id(), any_varint(), any_varint(), any_varint()).prop_map(|(id, error_code, a, b)| {
            F::ResetStreamAt(ResetStreamAt { id, error_code, final_size: a.max(b), reliable_size: a.min(b) })
        }),
        (any_id(), any_varint()).prop_map(|(id, error_code)| F::StopSending(StopSending { id, error_code })),
        (any_offset(), any_bytes(0)).prop_map(|(offset, data)| F::Crypto(Crypto { offset, data })),
        any_bytes(1).prop_map(|token| F::NewToken(NewToken { token })),
        (any_id(), any_offset(), any::<bool>(), any_bytes(0))
            .prop_map(|(id, offset, fin, data)| F::Stream(Stream { id, offset, fin, data })),
        any_varint().prop_map(|maximum| F::MaxData(MaxData { maximum })),
        (any_id(), any_varint()).prop_map(|(id, maximum)| F::MaxStreamData(MaxStreamData { id, maximum })),
        (any_dir(), any_stream_count()).prop_map(|(dir, maximum)| F::MaxStreams(MaxStreams { dir, maximum })),
        any_varint().prop_map(|limit| F::DataBlocked(DataBlocked { limit })),
        (any_id(), any_varint())
            .prop_map(|(id, limit)| F::StreamDataBlocked(StreamDataBlocked { id, limit })),
        (any_dir(), any_stream_count())
            .prop_map(|(dir, limit)| F::StreamsBlocked(StreamsBlocked { dir, limit })),
        any_new_connection_id(dialect).prop_map(F::NewConnectionId),
        (any_path(dialect), any_varint())
            .prop_map(|(path, sequence)| F::RetireConnectionId(RetireConnectionId { path, sequence })),
        any::<[u8; 8]>().prop_map(|data| F::PathChallenge(PathChallenge { data })),
        any::<[u8; 8]>().prop_map(|data| F::PathResponse(PathResponse { data })),
        (any_close_code(), any_bytes(0))
            .prop_map(|(code, reason)| F::ConnectionClose(ConnectionClose { code, reason })),
        any_bytes(0).prop_map(|data| F::Datagram(Datagram { data })),
        any_ack_frequency().prop_map(F::AckFrequency),
        any::<u16>().prop_map(|id| F::FecSid(FecSid { id })),
        (any::<(u8, u16, u8, u16)>(), any_bytes(2)).prop_map(|((scheme, first, more, key), symbol)| {
            F::FecRepair(FecRepair { scheme, first, more, key, symbol })
        }),
        (0..VarInt::MAX.get() - 255, any::<u8>()).prop_map(|(first, more)| {
            F::FecRecovered(FecRecovered { first: VarInt::saturating(first), more })
        }),
        (any_varint(), any_bytes(0)).prop_map(|(id, frames)| F::SourceSymbol(SourceSymbol { id, frames })),
        (any_varint(), any_varint(), any_bytes(2))
            .prop_map(|(block, parity, symbol)| F::BlockRepair(BlockRepair { block, parity, symbol })),
        (any_varint(), any_varint()).prop_map(|(epoch, size)| F::FecWindow(FecWindow { epoch, size })),
        any_varint().prop_map(|time| F::Timestamp(Timestamp { time })),
        (any_varint(), any::<std::net::IpAddr>(), any::<u16>())
            .prop_map(|(sequence, ip, port)| F::ObservedAddress(ObservedAddress { sequence, ip, port })),
    ]
}

/// The frames that only [`Dialect::Multipath`] has.
pub(super) fn any_path_frame() -> impl Strategy<Value = Frame<'static>> {
    (any_path(Dialect::Multipath), any_varint(), 0..6).prop_map(|(path, number, kind)| match kind {
        0 => Frame::PathAbandon(PathAbandon { path, code: number }),
        1 => Frame::PathStatus(PathStatus { path, sequence: number, available: true }),
        2 => Frame::PathStatus(PathStatus { path, sequence: number, available: false }),
        3 => Frame::MaxPathId(MaxPathId { max: path }),
        4 => Frame::PathsBlocked(PathsBlocked { max: path }),
        _ => Frame::PathCidsBlocked(PathCidsBlocked { path, next_sequence: number }),
    })
}
