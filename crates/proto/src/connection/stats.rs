//! Figures about a connection.

use std::time::Duration;

use fulmar_wire::{PathId, Version};

use super::Connection;
use crate::crypto::CipherSuite;
use crate::datagram::FourTuple;
use crate::datagrams::DatagramStats;
use crate::ext::{FecStats, OneWayDelays};
use crate::path::Path;
use crate::streams::StreamStats;

/// What is counted while the connection runs.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) datagrams_sent: u64,
    pub(super) datagrams_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) packets_sent: u64,
    pub(super) packets_received: u64,
    pub(super) packets_dropped: u64,
    pub(super) packets_unauthenticated: u64,
    pub(super) packets_lost: u64,
    pub(super) packets_spurious: u64,
    pub(super) bytes_lost: u64,
    pub(super) acks_sent: u64,
    pub(super) ack_bytes: u64,
    pub(super) ack_only_bytes: u64,
    pub(super) pto_count: u64,
    pub(super) black_holes: u64,
    pub(super) cid_changes: u64,
    pub(super) migrations: u64,
    pub(super) paths_validated: u64,
    pub(super) paths_failed: u64,
}

/// A snapshot of the figures of a connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// UDP datagrams sent.
    pub datagrams_sent: u64,
    /// UDP datagrams received.
    pub datagrams_received: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Bytes of UDP payload received.
    pub bytes_received: u64,
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// QUIC packets received and opened.
    pub packets_received: u64,
    /// QUIC packets dropped: duplicates, packets without keys, packets from unknown addresses.
    pub packets_dropped: u64,
    /// QUIC packets dropped because their protection was broken.
    pub packets_unauthenticated: u64,
    /// Packets declared lost, probes for the datagram size not included.
    pub packets_lost: u64,
    /// Packets declared lost that have arrived after all.
    pub packets_spurious: u64,
    /// Bytes of the packets declared lost.
    pub bytes_lost: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// Bytes of ACK frames sent.
    pub ack_bytes: u64,
    /// Bytes of packets that carried nothing but an ACK.
    pub ack_only_bytes: u64,
    /// How often a probe timeout has passed.
    pub pto_count: u64,
    /// How often the path stopped carrying datagrams of the size in use.
    pub black_holes: u64,
    /// How often this end went over to another of the peer's connection IDs after a long silence.
    pub cid_changes: u64,
    /// How often the connection went over to other addresses, because one of the ends has moved.
    pub migrations: u64,
    /// How many addresses have proven themselves, that of the handshake not included.
    pub paths_validated: u64,
    /// How many addresses have not.
    pub paths_failed: u64,
    /// The name of the congestion controller.
    pub controller: &'static str,
    /// The state of the congestion controller.
    pub controller_state: &'static str,
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// The largest congestion window so far in bytes, of all addresses that were in use.
    pub cwnd_max: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// The pacing rate in bytes per second.
    pub pacing_rate: u64,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time; `None` before the first measurement.
    pub rtt_min: Option<Duration>,
    /// The latest round-trip time.
    pub rtt_latest: Duration,
    /// The mean deviation of the round-trip time.
    pub rtt_variance: Duration,
    /// The delays of the two directions, if the peer says when it sends (`TransportConfig::time_stamps`), and once they were
    /// measured on the path in use.
    pub one_way: Option<OneWayDelays>,
    /// After how many packets this end acknowledges, as the peer has asked.
    pub ack_gap: u32,
    /// How long this end may delay an acknowledgement, as the peer has asked.
    pub ack_delay: Duration,
    /// The size of a full datagram, in bytes of UDP payload.
    pub mtu: u16,
    /// How long the handshake took, once it is complete.
    pub handshake_duration: Option<Duration>,
    /// The cipher suite, once it is negotiated.
    pub cipher_suite: Option<CipherSuite>,
    /// The key exchange group, once it is negotiated.
    pub key_exchange: Option<String>,
    /// How often the keys of application data were changed, by either end.
    pub key_updates: u64,
    /// Whether TLS has resumed an earlier session.
    pub resumed: bool,
    /// Whether the handshake was begun again with a token, because the server had asked for proof of the client's address (a Retry,
    /// RFC 9000 §8.1.2).
    pub retried: bool,
    /// The QUIC version.
    pub version: Version,
    /// Figures of the streams.
    pub streams: StreamStats,
    /// Figures of unreliable datagrams.
    pub datagrams: DatagramStats,
    /// Figures of forward erasure correction, if it was negotiated.
    pub fec: Option<FecStats>,
}

/// A snapshot of the figures of one path.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PathStats {
    /// The path.
    pub path: PathId,
    /// The addresses in use.
    pub addrs: FourTuple,
    /// Whether the peer was seen to receive there.
    pub validated: bool,
    /// Bytes of UDP payload sent over the addresses in use.
    pub bytes_sent: u64,
    /// Bytes of UDP payload received over them.
    pub bytes_received: u64,
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// The pacing rate in bytes per second.
    pub pacing_rate: u64,
    /// The smoothed round-trip time, or the assumed one before the first measurement.
    pub rtt: Duration,
    /// The size of a full datagram, in bytes of UDP payload.
    pub mtu: u16,
    /// Probe timeouts in a row.
    pub pto_count: u32,
}

impl PathStats {
    fn of(path: &Path) -> Self {
        let Path { id, tuple, pto, .. } = path;
        Self {
            path: *id,
            addrs: tuple.addrs,
            validated: tuple.validated,
            bytes_sent: tuple.amplification.sent(),
            bytes_received: tuple.amplification.received(),
            cwnd: tuple.congestion.window(),
            bytes_in_flight: tuple.congestion.bytes_in_flight(),
            pacing_rate: tuple.congestion.pacing_rate(),
            rtt: tuple.rtt.smoothed(),
            mtu: tuple.mtu(),
            pto_count: pto.backoff.count(),
        }
    }
}

impl Connection {
    /// The figures of each path as they are now, in the order of their IDs.
    pub fn path_stats(&self) -> impl Iterator<Item = PathStats> {
        self.paths.iter().map(PathStats::of)
    }

    /// The figures as they are now.
    pub fn stats(&self) -> ConnectionStats {
        let counters = &self.telemetry.stats;
        let tuple = &self.paths.primary().tuple;
        let session = self.handshake.session();
        ConnectionStats {
            datagrams_sent: counters.datagrams_sent,
            datagrams_received: counters.datagrams_received,
            bytes_sent: counters.bytes_sent,
            bytes_received: counters.bytes_received,
            packets_sent: counters.packets_sent,
            packets_received: counters.packets_received,
            packets_dropped: counters.packets_dropped,
            packets_unauthenticated: counters.packets_unauthenticated,
            packets_lost: counters.packets_lost,
            packets_spurious: counters.packets_spurious,
            bytes_lost: counters.bytes_lost,
            acks_sent: counters.acks_sent,
            ack_bytes: counters.ack_bytes,
            ack_only_bytes: counters.ack_only_bytes,
            pto_count: counters.pto_count,
            black_holes: counters.black_holes,
            cid_changes: counters.cid_changes,
            migrations: counters.migrations,
            paths_validated: counters.paths_validated,
            paths_failed: counters.paths_failed,
            controller: tuple.congestion.controller().name(),
            controller_state: tuple.congestion.controller().state(),
            cwnd: tuple.congestion.window(),
            cwnd_max: self.paths.primary().window_max(),
            bytes_in_flight: tuple.congestion.bytes_in_flight(),
            pacing_rate: tuple.congestion.pacing_rate(),
            rtt: tuple.rtt.smoothed(),
            rtt_min: tuple.rtt.has_sample().then(|| tuple.rtt.min()),
            rtt_latest: tuple.rtt.latest(),
            rtt_variance: tuple.rtt.variance(),
            one_way: self.extensions.timestamps.as_ref().and_then(|extension| extension.delays(tuple.id)),
            ack_gap: self.paths.primary().space.ack_policy().ack_eliciting_threshold,
            ack_delay: self.paths.primary().space.ack_policy().max_ack_delay,
            mtu: tuple.mtu(),
            handshake_duration: self.handshake.tls.duration(),
            cipher_suite: session.suite(),
            key_exchange: session.key_exchange().map(|group| format!("{group:?}")),
            key_updates: self.handshake.keys.generation(),
            resumed: session.is_resumed(),
            retried: self.handshake.tls.cids.retry_scid.is_some(),
            version: self.handshake.versions.current,
            streams: self.streams.stats(),
            datagrams: self.datagrams.stats(),
            fec: self.extensions.fec.as_ref().map(|fec| fec.stats()),
        }
    }
}
