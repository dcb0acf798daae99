//! A download, watched until its last byte has arrived.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_lab::{Close, Connecting, Lab, Session, Simulation, Workload};
use fulmar_proto::congestion::{BbrConfig, CongestionControl, CubicConfig, NewRenoConfig};
use fulmar_proto::{ConnectionStats, Side, TimerStyle, TransportConfig};
use fulmar_sim::{Change, LinkConfig};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub(crate) fn controllers() -> [CongestionControl; 3] {
    [
        CongestionControl::Bbr(BbrConfig::default()),
        CongestionControl::Cubic(CubicConfig::default()),
        CongestionControl::NewReno(NewRenoConfig::default()),
    ]
}

pub(crate) fn with(congestion: &CongestionControl, timers: TimerStyle) -> TransportConfig {
    TransportConfig { congestion: congestion.clone(), timers, ..TransportConfig::default() }
}

/// A radio that stops for a while: what was sent meanwhile arrives together at the end.
pub(crate) fn stopping(mut link: LinkConfig, start: u64, length: u64) -> LinkConfig {
    let delay = link.delay;
    for millis in 0..=length {
        link = link.then(at(start + millis), Change::Delay(delay + ms(length - millis)));
    }
    link
}

/// A server with an answer of `bytes` for the one request of its client, over a link that is the same in both
/// directions.
pub(crate) fn download(link: LinkConfig, config: TransportConfig, bytes: u64) -> Download {
    download_of(1, link, config, bytes)
}

/// The same, with the chance of this seed.
pub(crate) fn download_of(seed: u64, link: LinkConfig, config: TransportConfig, bytes: u64) -> Download {
    Download { simulation: exchange(seed, link, config, 100, bytes), bytes }
}

/// How long it takes until a server has read a request of `bytes`.
pub(crate) fn upload(link: LinkConfig, config: TransportConfig, bytes: u64) -> Duration {
    let mut simulation = exchange(1, link, config, bytes, 100);
    let is_over = |simulation: &Simulation| {
        let session = simulation.server().sessions().first();
        session.is_some_and(|s| s.application().receiving().values().map(|r| r.bytes()).sum::<u64>() >= bytes)
    };
    simulation.run_until(Duration::from_secs(60), is_over).expect("nothing goes wrong");
    simulation.now().saturating_since(Instant::ZERO)
}

fn exchange(seed: u64, link: LinkConfig, config: TransportConfig, request: u64, reply: u64) -> Simulation {
    let connecting = Connecting::new(Workload::requests(1, request)).close(Close::Never);
    let lab = Lab::new(seed).link(link.clone(), link).both(config);
    let lab = lab.server_workload(Workload::replies(reply)).connection(connecting);
    lab.start().expect("the configuration is valid")
}

pub(crate) struct Download {
    pub(crate) simulation: Simulation,
    pub(crate) bytes: u64,
}

/// The state when the last byte has arrived.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) time: Duration,
    pub(crate) client: ConnectionStats,
    pub(crate) server: ConnectionStats,
    /// Packets of the server that the link has dropped.
    pub(crate) dropped: u64,
}

impl Download {
    /// Bytes that the client has read.
    pub(crate) fn read(simulation: &Simulation) -> u64 {
        let sessions = simulation.client().sessions().first();
        sessions.map_or(0, |session| session.application().receiving().values().map(|r| r.bytes()).sum())
    }

    pub(crate) fn run_until(&mut self, instant: Instant) {
        let duration = instant.saturating_since(self.simulation.now());
        self.simulation.run_for(duration).expect("nothing goes wrong");
    }

    pub(crate) fn server(&self) -> ConnectionStats {
        stats(self.simulation.server().sessions())
    }

    /// Runs to the last byte, for `limit` at most.
    pub(crate) fn finish(mut self, limit: Duration) -> Finished {
        let bytes = self.bytes;
        self.simulation.run_until(limit, |simulation| Self::read(simulation) == bytes).expect("it arrives");
        Finished {
            time: self.simulation.now() - Instant::ZERO,
            client: stats(self.simulation.client().sessions()),
            server: self.server(),
            dropped: self.simulation.link_stats(Side::Server).packets_dropped_in_all(),
        }
    }
}

fn stats(sessions: &[Session]) -> ConnectionStats {
    sessions.first().expect("there is a connection").connection().stats()
}
