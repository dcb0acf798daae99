//! The connections that a run makes: when each begins, and when it is to end.

use std::net::SocketAddr;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_proto::{ClientConfig, ConfigError, FourTuple, Side, VarInt};

use super::{CLOSE_CODE, CLOSE_REASON, SERVER_PORT, Simulation, index};
use crate::lab::{Close, Connecting, Role};

/// A connection that the client makes, and how far it is.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) connecting: Connecting,
    config: ClientConfig,
    pub(super) session: Option<usize>,
    closed: bool,
}

/// The connections of a lab with their configurations, `default` where they have none of their own.
pub(super) fn plan(
    connections: Vec<Connecting>,
    default: &ClientConfig,
) -> Result<Vec<Planned>, ConfigError> {
    let planned = connections.into_iter().map(|connecting| {
        let config = match &connecting.transport {
            Some(transport) => default.clone().with_transport(transport.clone())?,
            None => default.clone(),
        };
        Ok(Planned { connecting, config, session: None, closed: false })
    });
    planned.collect()
}

impl Simulation {
    pub(super) fn start_connections(&mut self) -> Result<(), String> {
        let now = self.now();
        for number in 0..self.planned.len() {
            if self.start_time(number).is_some_and(|start| start <= now) {
                self.open_window(number);
                let wanted = self.planned[number].connecting.path;
                let addrs = self.network.addresses(wanted).map_or_else(
                    || FourTuple::new(self.server().address(), None),
                    |(client, server)| FourTuple::new(SocketAddr::new(server, SERVER_PORT), Some(client)),
                );
                let Planned { connecting, config, session, .. } = &mut self.planned[number];
                let workload = connecting.workload.clone();
                *session = Some(self.ends[0].host.connect(now, config, addrs, workload)?);
            }
        }
        Ok(())
    }

    /// When a planned connection starts; `None` if it has, or if that depends on the one before it.
    pub(super) fn start_time(&self, number: usize) -> Option<Instant> {
        let Planned { connecting, session: None, .. } = &self.planned[number] else { return None };
        if connecting.after_previous && number > 0 {
            let previous = self.planned[number - 1].session?;
            self.client().sessions()[previous].application().lost()?;
        }
        Some(Instant::ZERO + connecting.start)
    }

    /// When a connection is to be cut short.
    pub(super) fn cut_time(&self, planned: &Planned) -> Option<Instant> {
        let (Close::After(_, delay) | Close::AtLatest(_, delay)) = planned.connecting.close else {
            return None;
        };
        let session = &self.client().sessions()[planned.session?];
        let duration = session.handshake_duration()?;
        (!planned.closed && session.application().lost().is_none())
            .then(|| session.started() + duration + delay)
    }

    pub(super) fn close_connections(&mut self) {
        for number in 0..self.planned.len() {
            if let Some((side, session)) = self.due_to_close(&self.planned[number]) {
                self.note_first_end(number);
                let now = self.now();
                let connection = self.ends[index(side)].host.connection_mut(session);
                connection.close(now, VarInt::from_u32(CLOSE_CODE), Bytes::from_static(CLOSE_REASON));
                self.planned[number].closed = true;
            }
        }
    }

    /// The connection with this number is about to be closed. If it is the first that has done its work, what all have read is noted.
    fn note_first_end(&mut self, number: usize) {
        let planned = &self.planned[number];
        let is_preparation = planned.connecting.role == Role::Preparation;
        if self.first_end.is_some() || is_preparation || self.is_time_over(planned) {
            return;
        }
        let clients = self.client().sessions().iter().enumerate();
        let read = clients.map(|(client, session)| {
            let server = self.peer_of(client).map(|server| &self.server().sessions()[server]);
            let both = [Some(session), server].into_iter().flatten();
            both.map(|session| session.application().bytes_read()).sum()
        });
        self.first_end = Some(read.collect());
    }

    /// Which side has to close the connection now, and the number of its session there.
    fn due_to_close(&self, planned: &Planned) -> Option<(Side, usize)> {
        if planned.closed {
            return None;
        }
        let client = planned.session?;
        let server = self.peer_of(client);
        let (side, due) = match planned.connecting.close {
            Close::Never => return None,
            Close::After(side, _) => (side, self.is_time_over(planned)),
            Close::AtLatest(side, _) => (side, self.is_time_over(planned) || self.are_done(client, server)),
            Close::WhenDone(side) => (side, self.are_done(client, server)),
        };
        let session = if side.is_client() { client } else { server? };
        due.then_some((side, session))
    }

    fn is_time_over(&self, planned: &Planned) -> bool {
        self.cut_time(planned).is_some_and(|cut| cut <= self.now())
    }

    /// Whether both sides have done their workload, and no stream is left.
    fn are_done(&self, client: usize, server: Option<usize>) -> bool {
        let settled = self.client().sessions()[client].is_settled();
        settled && server.is_some_and(|server| self.server().sessions()[server].is_settled())
    }
}
