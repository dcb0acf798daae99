//! The configuration of connections, on either side.

use std::sync::Arc;
use std::time::Duration;

use fulmar_wire::{AddressDiscovery, TimeStamps, VarInt};
use thiserror::Error;

use super::multipath::{MultipathConfig, PATHS_MAX};
use crate::congestion::CongestionControl;
use crate::crypto::KeyUpdatePolicy;
use crate::ext::{FecConfig, MIN_ACK_DELAY};
use crate::rtt::{INITIAL_RTT, TimerStyle};
use crate::streams::{CONCURRENT_MAX, ReceiveCredit, StreamsConfig};

/// A configuration that makes no sense.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("{field} is {problem}")]
pub struct ConfigError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with its value.
    pub problem: &'static str,
}

/// Whether observers may measure the round-trip time by the spin bit (RFC 9000 §17.4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SpinBit {
    /// No path spins: the bit has a random value on each.
    Off,
    /// One path in sixteen, drawn at random, does not spin, so that those who switch it off do not stand out.
    #[default]
    MostPaths,
    /// Every path spins.
    EveryPath,
}

/// The smallest UDP payload that every QUIC path carries (RFC 9000 §14).
pub(crate) const MTU_MIN: u16 = 1_200;

/// The most connection IDs of a peer that are kept.
const CONNECTION_IDS_MAX: u64 = 8;

/// The largest log of a connection: 2 GiB.
const LOG_ENTRIES_MAX: usize = 1 << 26;

/// How a connection behaves, on either side.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// The connection ends silently after this long without traffic; `None`: never. The smaller of both
    /// ends' values counts (RFC 9000 §10.1). Default 30 s.
    pub max_idle_timeout: Option<Duration>,
    /// The connection ends if the handshake takes longer. The idle timeout does not count before the handshake
    /// is complete. Default 30 s.
    pub handshake_timeout: Duration,
    /// Send a PING after this long without traffic, to keep the connection and NATs alive, and after half of the idle timeout
    /// at the latest, as both ends have agreed on it. Default: never.
    pub keep_alive_interval: Option<Duration>,
    /// How many bidirectional streams the peer may have open at a time. Default 128.
    pub max_concurrent_bidi_streams: u64,
    /// How many unidirectional streams the peer may have open at a time. Default 128.
    pub max_concurrent_uni_streams: u64,
    /// Bytes that the peer may send on a stream before it must wait; the window grows from here as the
    /// bandwidth-delay product asks for. Default 1 MiB.
    pub stream_receive_window: u64,
    /// The largest window of a stream. Default 96 MiB: what 1 Gbit/s brings in 600 ms, and a third more.
    pub stream_receive_window_max: u64,
    /// Bytes that the peer may send on all streams together; grows likewise. Default 1.5 MiB.
    pub receive_window: u64,
    /// The largest window of a connection: a bound of the memory that a peer can use. Default 128 MiB.
    pub receive_window_max: u64,
    /// Bytes that the application may have buffered for sending at most, sent and not acknowledged included. It begins with
    /// 64 KiB and follows the congestion windows of the paths, three times as large as these. It is less while other
    /// connections use up [`EndpointConfig::send_memory`](crate::EndpointConfig::send_memory). Default 128 MiB.
    pub send_window: u64,
    /// Whether streams can be reset with a part of their data still delivered
    /// (draft-ietf-quic-reliable-stream-reset), where the peer can, too. Default true.
    pub reset_stream_at: bool,
    /// The round-trip time that is assumed before the first measurement; the first packet is repeated after two
    /// and a half times as long. Ends that know each other to be far away should say so here. Default 100 ms, see
    /// [`INITIAL_RTT`].
    pub initial_rtt: Duration,
    /// How timers are derived from the round-trip time. Default [`TimerStyle::OncePerRtt`].
    pub timers: TimerStyle,
    /// Whether data that was lost leaves twice when it is sent again, where nothing else waits to be sent, and up to four times on a long
    /// and fast path that loses much. Default true.
    pub preemptive_repeat: bool,
    /// Whether everything leaves twice where nothing else waits to be sent and the congestion window has room: each packet with
    /// stream data once more, before anything is known of it. This doubles the bytes of short transfers; it is there to be
    /// compared with forward erasure correction, which needs fewer, and with which it is without effect. Default false.
    pub idle_duplicates: bool,
    /// How long this end may delay an acknowledgement. Default 25 ms, less than 2^14 ms (RFC 9000 §18.2).
    pub max_ack_delay: Duration,
    /// Whether the ends may agree on how often to acknowledge (draft-ietf-quic-ack-frequency). Default true.
    pub ack_frequency: bool,
    /// The congestion controller. Default BBR (version 3).
    pub congestion: CongestionControl,
    /// The UDP payload that is sent before larger ones have been tried. Default 1200 bytes, the minimum.
    pub initial_mtu: u16,
    /// The largest UDP payload that is tried. Default 1452 bytes: an Ethernet frame with IPv6.
    pub mtu_max: u16,
    /// Whether larger datagrams are searched for (RFC 8899). Default true.
    pub mtu_discovery: bool,
    /// Bytes of received unreliable datagrams that wait for the application, oldest dropped first;
    /// `None` refuses datagrams. Default 1 MiB.
    pub datagram_receive_buffer: Option<usize>,
    /// Bytes of outgoing unreliable datagrams that wait for the network. Default 1 MiB.
    pub datagram_send_buffer: usize,
    /// When keys are updated (RFC 9001 §6). Default: only before the limit of the AEAD.
    pub key_update: KeyUpdatePolicy,
    /// Whether the peer may move to another address by its own choice. What a NAT does to its address is followed
    /// in any case. Default true.
    pub migration: bool,
    /// How many connection IDs of the peer are kept at a time, 2 to 8: each further address in use takes one
    /// (RFC 9000 §5.1.1, `active_connection_id_limit`). Default 4.
    pub connection_ids: u64,
    /// Whether a client moves to the address that its server prefers (RFC 9000 §9.6). Default true.
    pub follow_preferred_address: bool,
    /// Whether packets tell observers the round-trip time. Default [`SpinBit::MostPaths`].
    pub spin_bit: SpinBit,
    /// Whether the QUIC bit, the second of each packet, has random values towards peers that take any, and this end
    /// takes any (RFC 9287). To be switched off where QUIC shares its port with other protocols, which the bit tells
    /// apart. Default true.
    pub grease_quic_bit: bool,
    /// Whether this end tells its peer from which address the peer's packets come, and wants to be told so itself
    /// (draft-ietf-quic-address-discovery). Who is told believes what the peer says: to be used with peers that are
    /// trusted, or with several of them. Default `None`: neither.
    pub address_discovery: Option<AddressDiscovery>,
    /// Whether this end says in its acknowledgements when they were sent, and wants to be told so
    /// (draft-huitema-quic-ts), to tell the delays of the two directions apart: `ConnectionStats::one_way`. Each
    /// acknowledgement grows by about six bytes. Default `None`: neither.
    pub time_stamps: Option<TimeStamps>,
    /// Forward erasure correction, where the peer has it, too: repair symbols replace lost packets without a retransmission.
    /// Default `None`: off, in both directions.
    pub fec: Option<FecConfig>,
    /// Several paths at a time, where the peer has them, too (RFC 10069). Needs connection IDs. Default `None`: one path.
    pub multipath: Option<MultipathConfig>,
    /// Whether packets carry an ECN codepoint, as long as the path proves to preserve it (RFC 9000 §13.4): ECT(0), or
    /// the one that the congestion controller asks for. Default true.
    pub ecn: bool,
    /// How many entries of 32 bytes the log of the connection keeps, see
    /// [`Connection::log`](crate::Connection::log); the memory is taken when the connection begins. Default 0: no log.
    pub log_entries: usize,
}

impl Default for TransportConfig {
    fn default() -> Self {
        let streams = StreamsConfig::default();
        Self {
            max_idle_timeout: Some(Duration::from_secs(30)),
            handshake_timeout: Duration::from_secs(30),
            keep_alive_interval: None,
            max_concurrent_bidi_streams: streams.max_concurrent_bidi,
            max_concurrent_uni_streams: streams.max_concurrent_uni,
            stream_receive_window: streams.stream_receive_window,
            stream_receive_window_max: streams.stream_receive_window_max,
            receive_window: streams.receive_window,
            receive_window_max: streams.receive_window_max,
            send_window: streams.send_window,
            reset_stream_at: streams.reset_stream_at,
            initial_rtt: INITIAL_RTT,
            timers: TimerStyle::default(),
            preemptive_repeat: true,
            idle_duplicates: false,
            max_ack_delay: Duration::from_millis(25),
            ack_frequency: true,
            congestion: CongestionControl::default(),
            initial_mtu: MTU_MIN,
            mtu_max: 1_452,
            mtu_discovery: true,
            datagram_receive_buffer: Some(1 << 20),
            datagram_send_buffer: 1 << 20,
            key_update: KeyUpdatePolicy::default(),
            migration: true,
            connection_ids: 4,
            follow_preferred_address: true,
            spin_bit: SpinBit::default(),
            grease_quic_bit: true,
            address_discovery: None,
            time_stamps: None,
            fec: None,
            multipath: None,
            ecn: true,
            log_entries: 0,
        }
    }
}

impl TransportConfig {
    /// What concerns the streams.
    pub(crate) fn streams(&self) -> StreamsConfig {
        StreamsConfig {
            max_concurrent_bidi: self.max_concurrent_bidi_streams,
            max_concurrent_uni: self.max_concurrent_uni_streams,
            stream_receive_window: self.stream_receive_window,
            stream_receive_window_max: self.stream_receive_window_max,
            receive_window: self.receive_window,
            receive_window_max: self.receive_window_max,
            send_window: self.send_window,
            reset_stream_at: self.reset_stream_at,
        }
    }

    /// The credit with which a connection begins.
    pub(crate) fn first_credit(&self) -> ReceiveCredit {
        ReceiveCredit { stream: self.stream_receive_window, connection: self.receive_window }
    }

    /// The same, but for windows that begin with at least this credit, as far as they may grow.
    pub(crate) fn beginning_with(self: &Arc<Self>, credit: &ReceiveCredit) -> Arc<Self> {
        let before = self.first_credit();
        let windows = before.max(ReceiveCredit {
            stream: credit.stream.min(self.stream_receive_window_max),
            connection: credit.connection.min(self.receive_window_max),
        });
        if windows == before {
            return self.clone();
        }
        Arc::new(Self {
            stream_receive_window: windows.stream,
            receive_window: windows.connection,
            ..Self::clone(self)
        })
    }

    /// The shortest delay of acknowledgements that a peer may ask for; `None` without the extension.
    pub(crate) fn min_ack_delay(&self) -> Option<Duration> {
        self.ack_frequency.then(|| MIN_ACK_DELAY.min(self.max_ack_delay))
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let windows = [
            ("stream_receive_window", self.stream_receive_window, self.stream_receive_window_max),
            ("receive_window", self.receive_window, self.receive_window_max),
            ("send_window", self.send_window, VarInt::MAX.get()),
        ];
        for (field, initial, max) in windows {
            check(initial > 0, field, "zero: nothing could be sent")?;
            check(initial <= max, field, "larger than its maximum")?;
            check(max <= VarInt::MAX.get(), field, "more than 2^62 - 1")?;
        }
        let streams = self.max_concurrent_bidi_streams.max(self.max_concurrent_uni_streams);
        check(streams <= CONCURRENT_MAX, "max_concurrent_streams", "more than 2^20")?;
        check(self.initial_mtu >= MTU_MIN, "initial_mtu", "under 1200 bytes")?;
        check(self.mtu_max >= self.initial_mtu, "mtu_max", "under initial_mtu")?;
        check(self.mtu_max <= 65_000, "mtu_max", "over 65,000 bytes")?;
        check(self.connection_ids >= 2, "connection_ids", "under 2")?;
        check(self.connection_ids <= CONNECTION_IDS_MAX, "connection_ids", "more than 8")?;
        check(self.max_ack_delay < Duration::from_millis(1 << 14), "max_ack_delay", "2^14 ms or more")?;
        if let Some(problem) = self.fec.as_ref().and_then(FecConfig::problem) {
            return Err(ConfigError { field: "fec", problem });
        }
        let paths_max = self.multipath.as_ref().map_or(1, |multipath| multipath.paths_max);
        check((1..=PATHS_MAX).contains(&paths_max), "multipath", "not 1 to 16 paths")?;
        let KeyUpdatePolicy { packets, bytes } = self.key_update;
        check(packets != Some(0) && bytes != Some(0), "key_update", "zero; use None for never")?;
        check(self.log_entries <= LOG_ENTRIES_MAX, "log_entries", "more than 2^26")?;
        check(!self.initial_rtt.is_zero(), "initial_rtt", "zero")?;
        check(!self.handshake_timeout.is_zero(), "handshake_timeout", "zero")?;
        check(self.max_idle_timeout != Some(Duration::ZERO), "max_idle_timeout", "zero; use None for never")?;
        check(self.keep_alive_interval != Some(Duration::ZERO), "keep_alive_interval", "zero")
    }
}

fn check(holds: bool, field: &'static str, problem: &'static str) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError { field, problem }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_nonsense_is_named() {
        assert_eq!(TransportConfig::default().validate(), Ok(()));
        let config = TransportConfig { initial_mtu: 500, ..TransportConfig::default() };
        assert_eq!(config.validate().unwrap_err().to_string(), "initial_mtu is under 1200 bytes");
    }

    #[test]
    fn keys_that_are_changed_after_nothing_are_refused() {
        for (packets, bytes) in [(Some(0), None), (None, Some(0))] {
            let config = TransportConfig {
                key_update: KeyUpdatePolicy { packets, bytes },
                ..TransportConfig::default()
            };
            assert_eq!(config.validate().unwrap_err().field, "key_update");
        }
    }

    #[test]
    fn streams_have_one_default() {
        let (of_transport, own) = (TransportConfig::default().streams(), StreamsConfig::default());
        assert_eq!(format!("{of_transport:?}"), format!("{own:?}"));
        assert_eq!(own.send_window, 128 << 20);
    }

    #[test]
    fn windows_begin_with_remembered_credit_between_the_configured_bounds() {
        let config = Arc::new(TransportConfig::default());
        let windows = |stream, connection| {
            let config = config.beginning_with(&ReceiveCredit { stream, connection });
            (config.stream_receive_window, config.receive_window, config.validate())
        };
        assert_eq!(windows(0, 0), (1 << 20, 3 << 19, Ok(())));
        assert_eq!(windows(5 << 20, 2 << 20), (5 << 20, 2 << 20, Ok(())));
        assert_eq!(windows(u64::MAX, u64::MAX), (96 << 20, 128 << 20, Ok(())));
    }
}
