//! The figures of a connection that the program prints.

use std::net::SocketAddr;
use std::time::Duration;

use fulmar::{CipherSuite, Connection, ConnectionMetrics, ConnectionStats, FecStats};
use serde::Serialize;

/// What transfers and bars tell of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) rtt: Duration,
    pub(crate) rtt_min: Duration,
    pub(crate) window_bytes: u64,
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    /// The name that TLS has for the cipher suite, once there is one.
    pub(crate) cipher_suite: Option<&'static str>,
    pub(crate) fec: Option<FecFigures>,
}

impl Figures {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self::from(&connection.stats())
    }
}

impl From<&ConnectionStats> for Figures {
    fn from(stats: &ConnectionStats) -> Self {
        Self {
            rtt: stats.rtt,
            rtt_min: stats.rtt_min.unwrap_or_default(),
            window_bytes: stats.cwnd,
            packets_sent: stats.packets_sent,
            packets_lost: stats.packets_lost,
            cipher_suite: stats.cipher_suite.map(tls_name),
            fec: stats.fec.map(FecFigures::from),
        }
    }
}

/// A QUIC connection, for `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct ConnectionFigures {
    remote: SocketAddr,
    /// Of QUIC: `v1` or `v2`.
    version: String,
    cipher_suite: Option<&'static str>,
    key_exchange: Option<String>,
    /// Whether the handshake resumed a session.
    resumed: bool,
    /// Whether the server first asked for a proof of the address.
    retried: bool,
    handshake_ms: Option<f64>,
    rtt_ms: f64,
    rtt_min_us: Option<u128>,
    window_bytes: u64,
    /// The largest datagram, in bytes of UDP payload.
    mtu: u16,
    packets_sent: u64,
    packets_received: u64,
    packets_lost: u64,
    bytes_sent: u64,
    bytes_received: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fec: Option<FecFigures>,
}

impl ConnectionFigures {
    pub(crate) fn of(connection: &ConnectionMetrics) -> Self {
        let stats = &connection.stats;
        let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
        Self {
            remote: connection.remote,
            version: stats.version.to_string(),
            cipher_suite: stats.cipher_suite.map(tls_name),
            key_exchange: stats.key_exchange.clone(),
            resumed: stats.resumed,
            retried: stats.retried,
            handshake_ms: stats.handshake_duration.map(millis),
            rtt_ms: millis(stats.rtt),
            rtt_min_us: stats.rtt_min.map(|rtt| rtt.as_micros()),
            window_bytes: stats.cwnd,
            mtu: stats.mtu,
            packets_sent: stats.packets_sent,
            packets_received: stats.packets_received,
            packets_lost: stats.packets_lost,
            bytes_sent: stats.bytes_sent,
            bytes_received: stats.bytes_received,
            fec: stats.fec.map(FecFigures::from),
        }
    }
}

/// What forward erasure correction did, where both ends have it. The fields are those of [`FecStats`].
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct FecFigures {
    symbols_sent: u64,
    symbols_lost: u64,
    symbols_recovered: u64,
    repairs_sent: u64,
    repair_bytes_sent: u64,
    retransmissions_spared: u64,
    repairs_received: u64,
    recovered: u64,
    decoder_off: bool,
}

impl From<FecStats> for FecFigures {
    fn from(stats: FecStats) -> Self {
        Self {
            symbols_sent: stats.symbols_sent,
            symbols_lost: stats.symbols_lost,
            symbols_recovered: stats.symbols_recovered,
            repairs_sent: stats.repairs_sent,
            repair_bytes_sent: stats.repair_bytes_sent,
            retransmissions_spared: stats.retransmissions_spared,
            repairs_received: stats.repairs_received,
            recovered: stats.recovered,
            decoder_off: stats.decoder_off,
        }
    }
}

/// The name that TLS has for a cipher suite.
fn tls_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
        CipherSuite::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
        CipherSuite::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
    }
}
