//! What a connection can note.

use std::net::{IpAddr, SocketAddr};

use fulmar_base::Instant;
use fulmar_wire::{CloseCode, EcnCounts, Frame, FrameType, StreamId, VarInt};

use crate::connection::SpaceId;
use crate::datagram::Ecn;

/// An entry of the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogEntry {
    /// When it happened.
    pub at: Instant,
    /// What happened.
    pub event: LogEvent,
}

/// Whoever changes the events keeps them small: a ring of a million entries is to fit in 32 MiB.
const _: () = assert!(size_of::<LogEntry>() <= 32);

/// Something that happened in a connection.
///
/// The frames of a packet, and what is said about them, come before the packet itself, because the packet is complete
/// only after them: [`LogEvent::Stream`] to [`LogEvent::Close`] belong to the next [`LogEvent::PacketSent`] or
/// [`LogEvent::PacketReceived`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum LogEvent {
    /// A packet was sealed and handed to the caller.
    PacketSent {
        /// Its packet number space.
        space: SpaceId,
        /// Its number.
        number: u64,
        /// Bytes on the wire, header and tag included.
        size: u16,
        /// Whether the peer must acknowledge it.
        ack_eliciting: bool,
        /// Whether it probes for a larger datagram.
        mtu_probe: bool,
        /// The ECN codepoint that it left with.
        ecn: Ecn,
    },
    /// A packet was opened, and its frames were taken.
    PacketReceived {
        /// Its packet number space.
        space: SpaceId,
        /// Its number.
        number: u64,
        /// Bytes on the wire, header and tag included.
        size: u16,
        /// The ECN codepoint that it arrived with.
        ecn: Ecn,
    },
    /// A STREAM frame.
    Stream {
        /// The stream.
        id: StreamId,
        /// Of the first byte.
        offset: u64,
        /// Bytes.
        len: u16,
        /// Whether the stream ends with it.
        fin: bool,
    },
    /// A CRYPTO frame.
    Crypto {
        /// Of the first byte.
        offset: u64,
        /// Bytes.
        len: u16,
    },
    /// An ACK frame; its ranges follow.
    Ack {
        /// The delay field as it is on the wire, scaled down by the sender's exponent.
        delay: u64,
        /// Packets with CE, if the frame counts marks.
        ce: Option<u32>,
    },
    /// A range of the last ACK frame. Of a frame with more than [`ACK_RANGES_MAX`] the newest are noted.
    AckRange {
        /// The smallest packet number.
        first: u64,
        /// The largest packet number.
        last: u64,
    },
    /// Another frame.
    Frame {
        /// Its type.
        kind: FrameType,
        /// What it says in one number: a limit, an offset, a sequence, the length of a datagram; 0 where it has none.
        value: u64,
    },
    /// A frame about a stream.
    StreamFrame {
        /// Its type, of which all are below 256.
        kind: u8,
        /// The stream.
        id: StreamId,
        /// What it says in one number: a limit, a final size, an error code.
        value: u64,
    },
    /// A NEW_CONNECTION_ID frame.
    NewConnectionId {
        /// The sequence number of the connection ID.
        sequence: u64,
        /// All with smaller numbers are to be retired.
        retire_prior_to: u64,
    },
    /// A CONNECTION_CLOSE frame.
    Close {
        /// Whether the application closes, and not the transport.
        application: bool,
        /// The error code.
        code: u64,
    },
    /// A packet could not be opened, or was not wanted.
    PacketDropped {
        /// Whether its protection was broken.
        unauthenticated: bool,
        /// Bytes on the wire.
        size: u16,
    },
    /// A packet was declared lost.
    PacketLost {
        /// Its packet number space.
        space: SpaceId,
        /// Its number.
        number: u64,
        /// Bytes on the wire.
        size: u16,
        /// Whether it was a probe for a larger datagram, whose loss is no loss of data.
        mtu_probe: bool,
    },
    /// A packet that was declared lost has arrived after all.
    PacketSpurious {
        /// Its packet number space.
        space: SpaceId,
        /// Its number.
        number: u64,
        /// Bytes on the wire.
        size: u16,
    },
    /// Acknowledgements are overdue, and probes are sent.
    ProbeTimeout {
        /// The space that is probed.
        space: SpaceId,
        /// How often in a row.
        count: u32,
    },
    /// The loss timer has rung.
    LossTimeout,
    /// The congestion window or the bytes in flight are different.
    Window {
        /// The congestion window in bytes.
        window: u64,
        /// Bytes in flight.
        in_flight: u64,
    },
    /// The slow start threshold in bytes is different; `None`: it is not set.
    SlowStartThreshold(Option<u64>),
    /// Rates are different, in bytes per second.
    Rates {
        /// The rate at which packets leave.
        pacing: u64,
        /// The rate at which they were acknowledged, by the last sample; 0 before it.
        delivery: u64,
    },
    /// The round-trip time was measured, in nanoseconds.
    Rtt {
        /// The sample.
        latest: u64,
        /// The smoothed time.
        smoothed: u64,
    },
    /// The statistics of the round-trip time are different, in nanoseconds.
    RttBounds {
        /// The smallest.
        min: u64,
        /// The mean deviation.
        variance: u64,
    },
    /// The time in the queues of the two directions was measured, in nanoseconds.
    Queues {
        /// To the peer.
        forward: u64,
        /// From the peer.
        back: u64,
    },
    /// The congestion controller is in another state.
    Phase(&'static str),
    /// The size of a full datagram is different, in bytes of UDP payload.
    Mtu(u16),
    /// What is known about ECN on the path is different.
    EcnState(EcnState),
    /// The number of updates of the 1-RTT keys.
    KeyGeneration(u64),
    /// The connection goes by another network path: the peer's IP address, IPv4 addresses mapped, and port.
    PeerAddress {
        /// The address.
        ip: [u8; 16],
        /// The port.
        port: u16,
    },
    /// The peer has told this end's address, as it sees it: the IP address, IPv4 addresses mapped, and the port.
    ObservedAddress {
        /// The address.
        ip: [u8; 16],
        /// The port.
        port: u16,
    },
    /// Unreliable datagrams were dropped before they were sent; how many so far.
    DatagramsDropped {
        /// Because their deadlines had passed.
        late: u64,
        /// For other reasons.
        other: u64,
    },
    /// Why no more datagrams are sent for now is different.
    Blocked(BlockedReason),
    /// The connection is in another state.
    State(ConnectionState),
}

/// What is known about ECN on a network path (RFC 9000 §13.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnState {
    /// The first packets are marked.
    Testing,
    /// The answers to the first packets are awaited.
    Unknown,
    /// The marks arrive.
    Capable,
    /// Marks are not kept, or not wanted.
    Failed,
}

/// Why no more datagrams are sent for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedReason {
    /// There is nothing to send.
    NothingToSend,
    /// The congestion window is full.
    Window,
    /// The pacer wants to be asked later.
    Pacer,
    /// The peer's address is not validated, and its credit is used up.
    Credit,
}

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The handshake is complete.
    Established,
    /// The handshake is confirmed.
    Confirmed,
    /// This end closes.
    Closing,
    /// The peer has closed, or has forgotten the connection.
    Draining,
    /// The connection has ended without a word: nothing was heard for too long.
    TimedOut,
    /// Nothing is left to be done.
    Drained,
}

/// So many ranges of an ACK frame are noted, the newest first.
pub const ACK_RANGES_MAX: usize = 32;

impl LogEvent {
    /// An ACK frame.
    pub(crate) fn ack(delay: VarInt, ecn: Option<EcnCounts>) -> Self {
        Self::Ack { delay: delay.get(), ce: ecn.map(|ecn| u32::try_from(ecn.ce).unwrap_or(u32::MAX)) }
    }

    /// An address that the peer has told.
    pub(crate) fn observed_address(address: SocketAddr) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        Self::ObservedAddress { ip: ip.octets(), port: address.port() }
    }

    /// What is noted of a frame, but for the ranges of an ACK; `None` for padding.
    pub(crate) fn of_frame(frame: &Frame<'_>) -> Option<Self> {
        let kind = frame.frame_type();
        let about_stream = |id, value| Self::StreamFrame { kind: kind.0 as u8, id, value };
        let plain = |value| Self::Frame { kind, value };
        Some(match frame {
            Frame::Padding => return None,
            Frame::Ack(ack) => Self::ack(ack.delay, ack.ecn),
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
            Frame::ResetStreamAt(reset) => about_stream(reset.id, reset.reliable_size.get()),
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
            },
            Frame::RetireConnectionId(retire) => plain(retire.sequence.get()),
            Frame::Datagram(datagram) => plain(datagram.data.len() as u64),
            Frame::Timestamp(stamp) => plain(stamp.time.get()),
            Frame::ObservedAddress(observed) => plain(observed.sequence.get()),
            Frame::AckFrequency(request) => plain(request.sequence.get()),
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

/// A length within a datagram, which is below 2^16.
fn short(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}
