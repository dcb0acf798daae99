//! What is told of a run when it is over.

use std::net::Ipv6Addr;

use fulmar_base::Instant;
use fulmar_proto::log::{LogEntry, LogEvent};
use fulmar_proto::{PathId, Side};

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
        let [(client, lost), (server, lost_too)]: [(Vec<LogEntry>, u64); 2] =
            [client, server].map(|session| {
                let log = session.and_then(|session| session.connection().log());
                log.map_or_else(Default::default, |log| (log.iter().copied().collect(), log.overwritten()))
            });
        let links = self.links_of(&server);
        ConnectionLogs { client, server, links, overwritten: lost + lost_too }
    }

    /// The links of the paths of a connection: the server knows them by the addresses of the client.
    fn links_of(&self, server: &[LogEntry]) -> Vec<(PathId, usize)> {
        let mut links: Vec<(PathId, usize)> = Vec::new();
        for entry in server {
            let (path, ip) = match entry.event {
                LogEvent::Started { ip, .. } => (PathId::ZERO, ip),
                LogEvent::PeerAddress { path, ip, .. } => (path, ip),
                _ => continue,
            };
            if let Some(link) = self.network.path_of(Ipv6Addr::from(ip).to_canonical())
                && links.iter().all(|(known, _)| *known != path)
            {
                links.push((path, link));
            }
        }
        links
    }
}
