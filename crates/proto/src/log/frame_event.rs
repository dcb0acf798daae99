//! What a log keeps of frames.

use std::net::{IpAddr, SocketAddr};

use fulmar_wire::{CloseCode, EcnCounts, Frame, FrameType, VarInt};

use super::LogEvent;

impl LogEvent {
    /// An ACK frame whose delay was scaled down by 2 to the power of `exponent`.
    pub(crate) fn ack(delay: VarInt, exponent: u8, ecn: Option<EcnCounts>) -> Self {
        let cut = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let marks = ecn.map(|ecn| [cut(ecn.ect0), cut(ecn.ect1), cut(ecn.ce)]);
        Self::Ack { delay: cut(delay.get().saturating_mul(1 << exponent.min(20))), marks }
    }

    /// An address that the peer has told.
    pub(crate) fn observed_address(address: SocketAddr) -> Self {
        Self::ObservedAddress { ip: octets(address.ip()), port: address.port() }
    }

    /// The padding of a packet that has no other frame.
    pub(crate) const PADDING: Self = Self::Frame { kind: FrameType::PADDING, value: 0 };

    /// The event of a frame; `None` for padding. The ranges of an ACK and the code of a reset have events of their own.
    /// `exponent` is that of the delay in ACK frames.
    pub(crate) fn of_frame(frame: &Frame<'_>, exponent: u8) -> Option<Self> {
        let kind = frame.frame_type();
        let about_stream = |id, value| Self::StreamFrame { kind: kind.0 as u8, id, value };
        let plain = |value| Self::Frame { kind, value };
        Some(match frame {
            Frame::Padding => return None,
            Frame::Ack(ack) => Self::ack(ack.delay, exponent, ack.ecn),
            Frame::Stream(stream) => Self::Stream {
                id: stream.id,
                offset: stream.offset.get(),
                len: short(stream.data.len()),
                fin: stream.fin,
            },
            Frame::Crypto(crypto) => {
                Self::Crypto { offset: crypto.offset.get(), len: short(crypto.data.len()) }
            }
            Frame::ResetStream(reset) => about_stream(reset.id, reset.final_size.get()),
            Frame::ResetStreamAt(reset) => about_stream(reset.id, reset.final_size.get()),
            Frame::StopSending(stop) => about_stream(stop.id, stop.error_code.get()),
            Frame::MaxStreamData(max) => about_stream(max.id, max.maximum.get()),
            Frame::StreamDataBlocked(blocked) => about_stream(blocked.id, blocked.limit.get()),
            Frame::MaxData(max) => plain(max.maximum.get()),
            Frame::MaxStreams(max) => plain(max.maximum.get()),
            Frame::DataBlocked(blocked) => plain(blocked.limit.get()),
            Frame::StreamsBlocked(blocked) => plain(blocked.limit.get()),
            Frame::NewConnectionId(new) => Self::NewConnectionId {
                sequence: new.sequence.get(),
                retire_prior_to: new.retire_prior_to.get(),
                len: new.cid.len() as u8,
            },
            Frame::RetireConnectionId(retire) => plain(retire.sequence.get()),
            Frame::Datagram(datagram) => plain(datagram.data.len() as u64),
            Frame::FecSid(sid) => plain(sid.id.into()),
            Frame::FecRepair(repair) => plain(repair.first.into()),
            Frame::FecRecovered(recovered) => plain(recovered.first.get()),
            Frame::SourceSymbol(symbol) => plain(symbol.id.get()),
            Frame::BlockRepair(repair) => plain(repair.block.get()),
            Frame::SymbolAck(ack) => plain(ack.largest().get()),
            Frame::FecWindow(window) => plain(window.size.get()),
            Frame::Timestamp(stamp) => plain(stamp.time.get()),
            Frame::ObservedAddress(observed) => plain(observed.sequence.get()),
            Frame::AckFrequency(request) => plain(request.sequence.get()),
            Frame::PathAbandon(abandon) => plain(abandon.path.0.into()),
            Frame::PathStatus(status) => plain(status.path.0.into()),
            Frame::MaxPathId(max) => plain(max.max.0.into()),
            Frame::PathsBlocked(blocked) => plain(blocked.max.0.into()),
            Frame::PathCidsBlocked(blocked) => plain(blocked.path.0.into()),
            Frame::ConnectionClose(close) => match close.code {
                CloseCode::Application(code) => Self::Close { application: true, code: code.get() },
                CloseCode::Transport { code, .. } => Self::Close { application: false, code: code.0 },
            },
            Frame::Ping
            | Frame::NewToken(_)
            | Frame::PathChallenge(_)
            | Frame::PathResponse(_)
            | Frame::HandshakeDone
            | Frame::ImmediateAck => plain(0),
        })
    }
}

/// The bytes of an address; IPv4 addresses mapped.
pub(crate) fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// A length within a datagram, which is below 2^16.
fn short(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}
