//! The counters of connections, summed up.

use std::ops::AddAssign;

use fulmar_proto::ConnectionStats;

/// Counters of many connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Connections.
    pub connections: u64,
    /// Those whose handshake was completed.
    pub handshakes: u64,
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
    /// QUIC packets dropped, those included whose protection was broken.
    pub packets_dropped: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets declared lost that have arrived after all.
    pub packets_spurious: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// Unreliable datagrams written into packets.
    pub unreliable_sent: u64,
    /// Unreliable datagrams dropped because their deadlines had passed before they could be sent.
    pub unreliable_late: u64,
    /// Unreliable datagrams dropped before they were sent for other reasons.
    pub unreliable_displaced: u64,
    /// Packets sent whose contents forward erasure correction protects.
    pub symbols_sent: u64,
    /// Repair symbols sent.
    pub repairs_sent: u64,
    /// Bytes of the repair symbols sent.
    pub repair_bytes_sent: u64,
    /// Repair symbols received.
    pub repairs_received: u64,
    /// Packets that peers have recovered.
    pub symbols_recovered: u64,
    /// Those of them that were not sent again before.
    pub retransmissions_spared: u64,
    /// Packets of peers that were recovered.
    pub recovered: u64,
}

impl Totals {
    /// Adds the figures of a connection.
    pub(crate) fn add(&mut self, stats: &ConnectionStats) {
        self.connections += 1;
        self.handshakes += u64::from(stats.handshake_duration.is_some());
        self.datagrams_sent += stats.datagrams_sent;
        self.datagrams_received += stats.datagrams_received;
        self.bytes_sent += stats.bytes_sent;
        self.bytes_received += stats.bytes_received;
        self.packets_sent += stats.packets_sent;
        self.packets_received += stats.packets_received;
        self.packets_dropped += stats.packets_dropped + stats.packets_unauthenticated;
        self.packets_lost += stats.packets_lost;
        self.packets_spurious += stats.packets_spurious;
        self.probe_timeouts += stats.pto_count;
        self.acks_sent += stats.acks_sent;
        self.unreliable_sent += stats.datagrams.sent;
        self.unreliable_late += stats.datagrams.late;
        self.unreliable_displaced += stats.datagrams.dropped_outgoing;
        if let Some(fec) = &stats.fec {
            self.symbols_sent += fec.symbols_sent;
            self.repairs_sent += fec.repairs_sent;
            self.repair_bytes_sent += fec.repair_bytes_sent;
            self.repairs_received += fec.repairs_received;
            self.symbols_recovered += fec.symbols_recovered;
            self.retransmissions_spared += fec.retransmissions_spared;
            self.recovered += fec.recovered;
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.handshakes += other.handshakes;
        self.datagrams_sent += other.datagrams_sent;
        self.datagrams_received += other.datagrams_received;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.packets_sent += other.packets_sent;
        self.packets_received += other.packets_received;
        self.packets_dropped += other.packets_dropped;
        self.packets_lost += other.packets_lost;
        self.packets_spurious += other.packets_spurious;
        self.probe_timeouts += other.probe_timeouts;
        self.acks_sent += other.acks_sent;
        self.unreliable_sent += other.unreliable_sent;
        self.unreliable_late += other.unreliable_late;
        self.unreliable_displaced += other.unreliable_displaced;
        self.symbols_sent += other.symbols_sent;
        self.repairs_sent += other.repairs_sent;
        self.repair_bytes_sent += other.repair_bytes_sent;
        self.repairs_received += other.repairs_received;
        self.symbols_recovered += other.symbols_recovered;
        self.retransmissions_spared += other.retransmissions_spared;
        self.recovered += other.recovered;
    }
}
