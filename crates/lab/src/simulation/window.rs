//! The part of a run that its rates are about: from the beginning of the connections that are no preparation until the
//! measured ones have read all.

use super::Simulation;
use crate::Application;
use crate::lab::Role;
use crate::report::{Progress, Window};

/// What was moved before that part, and until its end as far as it is known.
#[derive(Debug, Default)]
pub(super) struct WindowWatch {
    start: Option<Progress>,
    end: Option<Progress>,
}

impl WindowWatch {
    /// The part, if it has come to an end.
    pub(super) fn finish(&self) -> Option<Window> {
        Some(Window { start: self.start.clone()?, end: self.end.clone()? })
    }
}

impl Simulation {
    /// The planned connection with this number is about to begin.
    pub(super) fn open_window(&mut self, number: usize) {
        if self.window.start.is_none() && self.planned[number].connecting.role != Role::Preparation {
            self.window.start = Some(self.progress());
        }
    }

    /// All that happens at this instant has happened. What has been moved is what counts, unless something is read later.
    pub(super) fn watch_window(&mut self) {
        if self.is_read_now() {
            self.window.end = Some(self.progress());
        }
    }

    /// Whether a measured connection has read something at this instant.
    fn is_read_now(&self) -> bool {
        let now = Some(self.now());
        let measured = self.planned.iter().filter(|planned| planned.connecting.role == Role::Measured);
        let clients = measured.filter_map(|planned| self.client().sessions().get(planned.session?));
        let mut clients = clients.map(|session| session.application());
        let servers = self.server().sessions().iter().map(|session| session.application());
        let keys: Vec<u64> =
            servers.filter(|server| server.last_read() == now).filter_map(|server| server.key()).collect();
        let is_read_by_server = |client: &Application| client.key().is_some_and(|key| keys.contains(&key));
        clients.any(|client| client.last_read() == now || is_read_by_server(client))
    }

    fn progress(&self) -> Progress {
        let sessions = [self.client(), self.server()].into_iter().flat_map(|host| host.sessions());
        Progress {
            bytes_read: sessions.map(|session| session.application().bytes_read()).sum(),
            links: self.network.moved(&self.world).collect(),
            hops: self.network.moved_by_hops(&self.world).collect(),
        }
    }
}
