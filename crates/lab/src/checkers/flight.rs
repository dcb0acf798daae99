//! No more is in flight than the congestion window and the probes allow (RFC 9002 §7, §7.5), and the window never
//! closes.

use fulmar_proto::ConnectionStats;

/// Datagrams that may leave beyond the window for each probe timeout (RFC 9002 §6.2.4).
const PROBES: u64 = 2;

/// Probes that may be due and not yet sent, because there are no keys or no credit for them: those of all three
/// packet number spaces.
const PROBES_DUE_MAX: u64 = 3 * PROBES;

/// The smallest window: two of the smallest datagrams that a path must carry (RFC 9002 §7.2). With less, the
/// acknowledgement of one packet would not let the next two go.
const WINDOW_MIN: u64 = 2 * 1_200;

/// Watches what one connection has in flight, each time that it sends.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// What may be in flight in this round of sending, probes aside.
    limit: u64,
    pto_count: u64,
    /// Bytes that probes may still add.
    probes: u64,
}

impl Flight {
    /// The figures before the connection sends, after something was received or a timer rang.
    pub(crate) fn before_sending(&mut self, stats: &ConnectionStats) {
        // A window that shrinks leaves more in flight than fits, but nothing may be added then.
        self.limit = stats.cwnd.max(stats.bytes_in_flight);
        let mtu = u64::from(stats.mtu);
        let due = self.probes + (stats.pto_count - self.pto_count) * PROBES * mtu;
        self.probes = due.min(PROBES_DUE_MAX * mtu);
        self.pto_count = stats.pto_count;
    }

    /// The connection has sent a train.
    pub(crate) fn after_sending(&mut self, stats: &ConnectionStats) -> Result<(), String> {
        self.limit = self.limit.max(stats.cwnd);
        if stats.cwnd < WINDOW_MIN {
            return Err(format!("a window of {} bytes ({})", stats.cwnd, stats.controller));
        }
        let excess = stats.bytes_in_flight.saturating_sub(self.limit);
        // An acknowledgement needs no room, and in a handshake that of an Initial packet is padded to a full datagram,
        // which counts (RFC 9000 §14.1, RFC 9002 §2). Early data may have used up the window by then.
        let padded = if stats.handshake_duration.is_none() { u64::from(stats.mtu) } else { 0 };
        if excess > self.probes + padded {
            return Err(format!(
                "{} bytes in flight, {excess} too many, with a window of {} and probes of {} ({} {})",
                stats.bytes_in_flight, stats.cwnd, self.probes, stats.controller, stats.controller_state,
            ));
        }
        self.limit += excess;
        self.probes = self.probes.saturating_sub(excess);
        Ok(())
    }
}
