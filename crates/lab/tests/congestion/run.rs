//! Controllers, links and transfers that several of the tests use.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, RunReport, Workload};
use fulmar_proto::TransportConfig;
use fulmar_proto::congestion::{BbrConfig, CongestionControl, CubicConfig, NewRenoConfig, PragueConfig};
use fulmar_sim::LinkConfig;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn bbr() -> CongestionControl {
    CongestionControl::Bbr(BbrConfig::default())
}

pub(crate) fn cubic() -> CongestionControl {
    CongestionControl::Cubic(CubicConfig::default())
}

pub(crate) fn newreno() -> CongestionControl {
    CongestionControl::NewReno(NewRenoConfig::default())
}

pub(crate) fn prague() -> CongestionControl {
    CongestionControl::Prague(PragueConfig::default())
}

pub(crate) fn with(congestion: CongestionControl) -> TransportConfig {
    TransportConfig { congestion, ..TransportConfig::default() }
}

/// 10 Mbit/s, 10 ms each way, with a long queue.
pub(crate) fn link() -> LinkConfig {
    LinkConfig::with_rate(10_000_000, ms(10), ms(200))
}

pub(crate) fn upload(link: &LinkConfig, congestion: CongestionControl, bytes: u64) -> RunReport {
    Lab::new(3)
        .link(link.clone(), link.clone())
        .both(with(congestion))
        .connection(Connecting::new(Workload::upload(bytes)))
        .run()
        .unwrap()
}
