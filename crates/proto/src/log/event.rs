//! What a connection can log.

use fulmar_base::Instant;
use fulmar_wire::{FrameType, PacketKind, PathId, StreamId, Version};

use super::fec_event::FecEvent;
use super::words::{
    BarePacket, BlockedReason, CloseCause, ConnectionState, EcnState, LogText, MigrationState,
    PacketDropReason,
};
use crate::crypto::CipherSuite;
use crate::datagram::Ecn;
use crate::ids::SpaceId;

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
/// [`LogEvent::PacketReceived`], unless a [`LogEvent::FramesEnd`] tells otherwise.
///
/// What is measured on a path has its number. A connection without multipath has the path 0 alone (RFC 10069).
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
        /// Whether it is a 0-RTT packet.
        early: bool,
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
        /// Whether it is a 0-RTT packet.
        early: bool,
        /// Whether it has waited for its keys.
        waited: bool,
        /// Whether it was sealed with the keys before the last update.
        old_keys: bool,
        /// The ECN codepoint that it arrived with.
        ecn: Ecn,
    },
    /// A packet without a number came.
    BareReceived {
        /// What it is.
        packet: BarePacket,
        /// Bytes on the wire.
        size: u16,
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
        /// The delay in microseconds; what is above 2^32 is cut, here and below.
        delay: u32,
        /// How many packets came with ECT(0), ECT(1) and CE, if the frame counts marks.
        marks: Option<[u32; 3]>,
    },
    /// A range of the last ACK frame. Of a frame with more than [`ACK_RANGES_MAX`] the newest are logged.
    AckRange {
        /// The path of the packets, which may be another than that of the frame.
        path: PathId,
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
        /// What it says in one number: a limit, a final size, and the error code of STOP_SENDING.
        value: u64,
    },
    /// More of the RESET_STREAM or RESET_STREAM_AT frame that follows.
    Reset {
        /// The error code.
        code: u64,
        /// The bytes that are delivered all the same; 0 for RESET_STREAM.
        reliable_size: u64,
    },
    /// A NEW_CONNECTION_ID frame.
    NewConnectionId {
        /// The sequence number of the connection ID.
        sequence: u64,
        /// All with smaller numbers are to be retired.
        retire_prior_to: u64,
        /// Bytes of the connection ID.
        len: u8,
    },
    /// A CONNECTION_CLOSE frame.
    Close {
        /// Whether the application closes, and not the transport.
        application: bool,
        /// The error code.
        code: u64,
    },
    /// The frames before this are those of one packet, those after it of another in the same datagram. The packets follow, in
    /// the same order, when the datagram is complete.
    FramesEnd,
    /// A packet could not be opened, or was not wanted.
    PacketDropped {
        /// Why.
        reason: PacketDropReason,
        /// What it looked like, if it could be told.
        kind: Option<PacketKind>,
        /// Bytes on the wire.
        size: u16,
    },
    /// A packet came before its keys, and is kept until they come.
    PacketBuffered {
        /// What it is.
        kind: PacketKind,
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
        /// The path.
        path: PathId,
        /// The congestion window in bytes.
        window: u64,
        /// Bytes in flight.
        in_flight: u64,
    },
    /// The slow start threshold is different.
    SlowStartThreshold {
        /// The path.
        path: PathId,
        /// In bytes; `None`: it is not set.
        bytes: Option<u64>,
    },
    /// Rates are different, in bytes per second.
    Rates {
        /// The path.
        path: PathId,
        /// The rate at which packets leave.
        pacing: u64,
        /// The rate at which they were acknowledged, by the last sample; 0 before it.
        delivery: u64,
    },
    /// The round-trip time was measured, in nanoseconds.
    Rtt {
        /// The path.
        path: PathId,
        /// The sample.
        latest: u64,
        /// The smoothed time.
        smoothed: u64,
    },
    /// The statistics of the round-trip time are different, in nanoseconds.
    RttBounds {
        /// The path.
        path: PathId,
        /// The smallest.
        min: u64,
        /// The mean deviation.
        variance: u64,
    },
    /// The time in the queues of the two directions was measured, in nanoseconds.
    Queues {
        /// The path.
        path: PathId,
        /// To the peer.
        forward: u64,
        /// From the peer.
        back: u64,
    },
    /// The congestion controller is in another state.
    Phase {
        /// The path.
        path: PathId,
        /// The state.
        name: &'static str,
    },
    /// The size of a full datagram is different.
    Mtu {
        /// The path.
        path: PathId,
        /// In bytes of UDP payload.
        bytes: u16,
    },
    /// What is known about ECN is different.
    EcnState {
        /// The path.
        path: PathId,
        /// What is known.
        state: EcnState,
    },
    /// The number of updates of the 1-RTT keys.
    KeyGeneration(u64),
    /// TLS has given the keys for packets of a kind.
    KeysInstalled(PacketKind),
    /// The keys for packets of a kind were discarded.
    KeysDiscarded(PacketKind),
    /// The address of this end on the network path that the next event is about, where it is known; IPv4 addresses mapped.
    LocalAddress {
        /// The address.
        ip: [u8; 16],
    },
    /// The connection begins: the peer's IP address, IPv4 addresses mapped, and port.
    Started {
        /// The address.
        ip: [u8; 16],
        /// The port.
        port: u16,
    },
    /// A path is new, or goes by other addresses: the peer's IP address, IPv4 addresses mapped, and port.
    PeerAddress {
        /// The path.
        path: PathId,
        /// The address.
        ip: [u8; 16],
        /// The port.
        port: u16,
    },
    /// Another network path than the first is tried, or used.
    Migration {
        /// What becomes of it.
        state: MigrationState,
        /// The peer's address, IPv4 addresses mapped.
        ip: [u8; 16],
        /// The port.
        port: u16,
    },
    /// An end knows a version. A [`LogEvent::VersionChosen`] ends the list.
    VersionKnown {
        /// Whether the server does, and not the client.
        server: bool,
        /// The version.
        version: Version,
    },
    /// The version that is spoken from now on; `None`: the ends have none in common.
    VersionChosen(Option<Version>),
    /// A transport parameter. A [`LogEvent::ParametersEnd`] ends the list.
    Parameter {
        /// Its registered number.
        id: u64,
        /// A number, in the unit of the wire, or 1 for a flag that is set.
        value: u64,
    },
    /// The end of the transport parameters of an end that are numbers or flags.
    ParametersEnd {
        /// Whether they are the peer's.
        remote: bool,
    },
    /// What loss recovery and congestion control begin with.
    RecoveryParameters {
        /// The assumed round-trip time in nanoseconds.
        initial_rtt: u64,
        /// Packets that may overtake another before it counts as lost.
        packet_threshold: u8,
        /// Eighths of the round-trip time after which a packet counts as lost.
        time_threshold: u8,
        /// Intervals without an acknowledgement that make congestion persistent, in probe timeouts.
        persistent_threshold: u8,
        /// The size of a full datagram in bytes.
        datagram: u16,
        /// The congestion window in bytes.
        window: u32,
    },
    /// The TLS handshake is complete.
    Tls {
        /// The suite that was negotiated.
        suite: CipherSuite,
        /// Whether an earlier session was resumed.
        resumed: bool,
        /// Whether there is early data.
        early: bool,
    },
    /// Words, or a part of them.
    Text(LogText),
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
    /// Forward erasure correction has sent, received or recovered something.
    Fec(FecEvent),
    /// Why no more datagrams are sent for now is different.
    Blocked {
        /// The path.
        path: PathId,
        /// Why.
        reason: BlockedReason,
    },
    /// The connection is in another state.
    State(ConnectionState),
    /// The connection is over.
    Closed {
        /// Whether this end has ended it, and not the peer.
        local: bool,
        /// How.
        cause: CloseCause,
        /// The error code of CONNECTION_CLOSE, or 0.
        code: u64,
    },
}

/// The ranges of an ACK frame that are logged, the newest first.
pub const ACK_RANGES_MAX: usize = 32;
