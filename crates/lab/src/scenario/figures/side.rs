//! The figures of one side of a run.

use fulmar_proto::FecStats;
use fulmar_sim::Distribution;
use serde::Serialize;

use super::millis;
use crate::SideReport;

/// The figures of one side: sums over its connections, or the extreme where the name says so.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SideFigures {
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets declared lost that have arrived after all.
    pub packets_spurious: u64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Bytes of ACK frames sent.
    pub ack_bytes: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// How often a probe timeout has passed.
    pub pto_count: u64,
    /// The smallest round-trip time in milliseconds; `None` without a measurement.
    pub rtt_min_ms: Option<f64>,
    /// The largest round-trip time in milliseconds.
    pub rtt_max_ms: Option<f64>,
    /// The latest round-trip time, whenever something was sent: what half of these do not exceed, right to some 3 %.
    pub rtt_p50_ms: Option<f64>,
    /// The same of 90 %.
    pub rtt_p90_ms: Option<f64>,
    /// The same of 99 %.
    pub rtt_p99_ms: Option<f64>,
    /// The largest congestion window in bytes.
    pub cwnd_max: u64,
    /// Connections that this side accepted; 0 at the client.
    pub connections_accepted: u64,
    /// What forward erasure correction has done; `None` if no connection had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<FecFigures>,
}

impl SideFigures {
    pub(super) fn of<'a>(
        connections: impl Iterator<Item = &'a SideReport>,
        connections_accepted: u64,
    ) -> Self {
        let mut figures = Self { connections_accepted, ..Self::default() };
        let mut rtts = Distribution::default();
        for side in connections {
            rtts.merge(&side.rtts);
            if let Some(stats) = &side.stats {
                figures.packets_sent += stats.packets_sent;
                figures.packets_lost += stats.packets_lost;
                figures.packets_spurious += stats.packets_spurious;
                figures.bytes_sent += stats.bytes_sent;
                figures.ack_bytes += stats.ack_bytes;
                figures.acks_sent += stats.acks_sent;
                figures.pto_count += stats.pto_count;
                figures.cwnd_max = figures.cwnd_max.max(stats.cwnd_max);
                if let Some(fec) = &stats.fec {
                    figures.fec.get_or_insert_default().add(fec);
                }
                if let Some(rtt_min) = stats.rtt_min.map(millis) {
                    figures.rtt_min_ms = Some(figures.rtt_min_ms.map_or(rtt_min, |other| other.min(rtt_min)));
                    let rtt_max = millis(side.peaks.rtt);
                    figures.rtt_max_ms = Some(figures.rtt_max_ms.map_or(rtt_max, |other| other.max(rtt_max)));
                }
            }
        }
        let rtt = |share| rtts.quantile(share).map(millis);
        Self { rtt_p50_ms: rtt(0.5), rtt_p90_ms: rtt(0.9), rtt_p99_ms: rtt(0.99), ..figures }
    }
}

/// Forward erasure correction, as the sending half of a side counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FecFigures {
    /// Packets that were protected.
    pub symbols_sent: u64,
    /// Those of them that were lost.
    pub symbols_lost: u64,
    /// Repair symbols sent.
    pub repairs_sent: u64,
    /// Their bytes.
    pub repair_bytes_sent: u64,
    /// Protected packets that the peer has recovered.
    pub symbols_recovered: u64,
    /// Those of them whose data was not sent again before.
    pub retransmissions_spared: u64,
}

impl FecFigures {
    fn add(&mut self, stats: &FecStats) {
        self.symbols_sent += stats.symbols_sent;
        self.symbols_lost += stats.symbols_lost;
        self.repairs_sent += stats.repairs_sent;
        self.repair_bytes_sent += stats.repair_bytes_sent;
        self.symbols_recovered += stats.symbols_recovered;
        self.retransmissions_spared += stats.retransmissions_spared;
    }
}
