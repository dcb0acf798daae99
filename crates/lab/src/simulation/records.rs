//! What is told of a run when it is over.

use fulmar_base::Instant;
use fulmar_proto::Side;

use super::Simulation;
use crate::RunReport;
use crate::report::{ConnectionLogs, ConnectionReport, Recording};

impl Simulation {
    pub(super) fn report(&self) -> RunReport {
        let connections = self.client().sessions().iter().enumerate().map(|(number, session)| {
            let server = self.peer_of(number).map(|peer| &self.server().sessions()[peer]);
            let bytes_at_first_end = self.first_end.as_ref().and_then(|bytes| bytes.get(number).copied());
            ConnectionReport { bytes_at_first_end, ..ConnectionReport::of(session, server) }
        });
        RunReport {
            seed: self.seed,
            trace: self.trace.clone().finish(),
            duration: self.now() - Instant::ZERO,
            steps: self.steps,
            arrivals: self.arrivals.clone(),
            capture: None,
            first_watched: self.first_watched,
            connections: connections.collect(),
            server_sessions: self.server().sessions().len(),
            up: self.link_stats(Side::Client),
            down: self.link_stats(Side::Server),
            paths: self.network.path_reports(&self.world),
            hops: self.network.hop_reports(&self.world),
            window: self.window.finish(),
            recording: self.recording(),
        }
    }

    fn recording(&self) -> Option<Recording> {
        let (up, down, paths) = self.network.traces(&self.world)?;
        let numbers = 0..self.client().sessions().len();
        Some(Recording { connections: numbers.map(|number| self.logs(number)).collect(), up, down, paths })
    }

    /// What both ends of a connection noted.
    fn logs(&self, client: usize) -> ConnectionLogs {
        let server = self.peer_of(client).map(|peer| &self.server().sessions()[peer]);
        let client = Some(&self.client().sessions()[client]);
        let [(client, lost), (server, lost_too)] = [client, server].map(|session| {
            let log = session.and_then(|session| session.connection().log());
            log.map_or_else(Default::default, |log| (log.iter().copied().collect(), log.overwritten()))
        });
        ConnectionLogs { client, server, overwritten: lost + lost_too }
    }
}
