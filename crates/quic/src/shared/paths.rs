//! The paths of a connection as its handles and the worker see them: who manages them, and what happened to them.

use std::collections::VecDeque;

use fulmar_base::Instant;
use fulmar_proto::{PathEvent, PathManager};

use super::connection::State;

/// Events that wait for [`Connection::path_event`](crate::Connection::path_event). When full, the oldest is lost: what is so
/// can be asked for.
const EVENTS_MAX: usize = 64;

/// What only connections with several paths have.
#[derive(Default)]
pub(crate) struct Paths {
    manager: Option<Box<dyn PathManager>>,
    events: VecDeque<PathEvent>,
    /// Something happened since the manager was called last.
    is_changed: bool,
}

impl State {
    /// Has somebody open the paths of this connection from now on.
    pub(crate) fn set_path_manager(&mut self, manager: Box<dyn PathManager>) {
        let paths = self.paths.get_or_insert_default();
        (paths.manager, paths.is_changed) = (Some(manager), true);
    }

    /// Notes what happened to a path.
    pub(crate) fn on_path_event(&mut self, now: Instant, event: PathEvent) {
        if !self.proto.is_multipath() {
            return;
        }
        let paths = self.paths.get_or_insert_default();
        if let Some(manager) = &mut paths.manager {
            manager.on_event(now, &event);
            paths.is_changed = true;
        }
        if paths.events.len() == EVENTS_MAX {
            paths.events.pop_front();
        }
        paths.events.push_back(event);
    }

    /// Takes the oldest event.
    pub(crate) fn next_path_event(&mut self) -> Option<PathEvent> {
        self.paths.as_mut()?.events.pop_front()
    }

    /// Has the manager do what is due.
    pub(crate) fn manage_paths(&mut self, now: Instant) {
        let Some(paths) = &mut self.paths else { return };
        paths.is_changed = false;
        if let Some(manager) = &mut paths.manager {
            manager.manage(now, &mut self.proto);
        }
    }

    /// Whether the manager has to be called soon.
    pub(crate) fn awaits_manager(&self) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.is_changed && paths.manager.is_some())
    }

    /// When the connection or the manager of its paths wants to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let timer = self.proto.poll_timeout().map(|(deadline, _)| deadline);
        let manager = self.paths.as_ref().and_then(|paths| paths.manager.as_ref()?.next_timeout());
        timer.into_iter().chain(manager).min()
    }
}
