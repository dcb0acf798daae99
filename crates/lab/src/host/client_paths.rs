//! Who opens and abandons the paths of a connection of the client: the manager of pairs of addresses, and what a scenario wants
//! beyond that.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::{
    AddressPairs, Connection, FourTuple, OpenPathError, PathEvent, PathId, PathManager, PathUse,
    TransportErrorCode,
};

use crate::lab::Churn;

/// What a client wants of the paths over a pair of addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientPath {
    pub(crate) addrs: FourTuple,
    pub(crate) is_backup: bool,
    pub(crate) abandoned_at: Option<Instant>,
}

/// Keeps paths open as [`AddressPairs`] does, and follows the scenario.
#[derive(Debug)]
pub(super) struct ClientPaths {
    keeper: AddressPairs,
    /// Of the pairs that a scenario wants something of.
    wanted: Vec<ClientPath>,
    /// Pairs whose paths are to be abandoned as soon as that is possible.
    unwanted: Vec<FourTuple>,
    churning: Option<Churning>,
    /// What it was made of.
    paths: Vec<ClientPath>,
    churn: Option<Churn>,
    validated: u64,
}

/// Paths that are opened and abandoned, one after another.
#[derive(Debug)]
struct Churning {
    over: Vec<FourTuple>,
    each: Duration,
    left: u32,
    open: Option<PathId>,
    /// When the open one is abandoned, or the next one is tried.
    next: Instant,
}

impl ClientPaths {
    /// `own` is the pair of addresses on which the connection begins.
    pub(super) fn new(paths: &[ClientPath], churn: Option<Churn>, own: Option<FourTuple>) -> Self {
        let is_kept = |path: &&ClientPath| churn.is_none() || Some(path.addrs) == own;
        let keeper = AddressPairs::new(paths.iter().filter(is_kept).map(|path| path.addrs));
        let over = paths.iter().map(|path| path.addrs).filter(|addrs| Some(*addrs) != own).collect();
        let churning = churn.map(|Churn { paths: left, each }| Churning {
            over,
            each,
            left,
            open: None,
            next: Instant::ZERO,
        });
        let is_special = |path: &&ClientPath| path.is_backup || path.abandoned_at.is_some();
        let wanted = paths.iter().filter(is_special).copied().collect();
        Self { keeper, wanted, unwanted: Vec::new(), churning, paths: paths.to_vec(), churn, validated: 0 }
    }

    /// The same for another attempt at the connection, which began on `own`: the paths of the one that has lost are none of it.
    pub(super) fn anew(&self, own: Option<FourTuple>) -> Self {
        Self::new(&self.paths, self.churn, own)
    }

    /// How many paths beyond the first the peer has answered on.
    pub(super) fn validated(&self) -> u64 {
        self.validated
    }

    /// Whether nothing more is to be opened and abandoned.
    pub(super) fn is_done(&self) -> bool {
        self.churning.as_ref().is_none_or(Churning::is_done)
    }

    fn follow_scenario(&mut self, now: Instant, connection: &mut Connection) {
        for wanted in &mut self.wanted {
            if wanted.abandoned_at.is_some_and(|at| at <= now) {
                self.unwanted.push(wanted.addrs);
                wanted.abandoned_at = None;
            }
            let path = connection.paths().find(|path| path.addrs == wanted.addrs);
            let Some(path) = path.filter(|path| path.validated) else { continue };
            if wanted.is_backup && path.local_use != PathUse::Backup {
                // It is open.
                let _ = connection.set_path_use(path.id, PathUse::Backup);
            }
        }
        self.unwanted.retain(|addrs| {
            // The last path stays until there is another one: each answer of the peer leads here again.
            let validated: Vec<_> = connection.paths().filter(|path| path.validated).collect();
            let path = validated.iter().find(|path| path.addrs == *addrs).filter(|_| validated.len() > 1);
            let code = TransportErrorCode::APPLICATION_ABANDON_PATH;
            path.is_none_or(|path| connection.abandon_path(now, path.id, code).is_err())
        });
    }
}

impl PathManager for ClientPaths {
    fn on_event(&mut self, now: Instant, event: &PathEvent) {
        self.validated += u64::from(matches!(event, PathEvent::Validated { .. }));
        self.keeper.on_event(now, event);
    }

    fn manage(&mut self, now: Instant, connection: &mut Connection) {
        self.keeper.manage(now, connection);
        if connection.is_closed() {
            // Nothing more is due.
            self.wanted.clear();
            self.churning = None;
            return;
        }
        if !self.wanted.is_empty() {
            self.follow_scenario(now, connection);
        }
        if let Some(churning) = &mut self.churning {
            churning.go_on(now, connection);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let churning = self.churning.as_ref().filter(|churning| !churning.is_done());
        let abandonings = self.wanted.iter().filter_map(|path| path.abandoned_at);
        let own = churning.map(|churning| churning.next).filter(|at| *at > Instant::ZERO);
        self.keeper.next_timeout().into_iter().chain(own).chain(abandonings).min()
    }
}

impl Churning {
    fn is_done(&self) -> bool {
        (self.left == 0 || self.over.is_empty()) && self.open.is_none()
    }

    fn go_on(&mut self, now: Instant, connection: &mut Connection) {
        if self.is_done() || self.next > now {
            return;
        }
        if let Some(id) = self.open.take() {
            // It may have been given up meanwhile.
            let _ = connection.abandon_path(now, id, TransportErrorCode::APPLICATION_ABANDON_PATH);
        }
        if self.left == 0 {
            return;
        }
        let addrs = self.over[self.left as usize % self.over.len()];
        match connection.open_path(now, addrs) {
            Ok(id) => {
                self.open = Some(id);
                self.left -= 1;
                self.next = now + self.each;
            }
            // The end of the handshake wakes the connection.
            Err(OpenPathError::NotConfirmed) => {}
            Err(OpenPathError::Limit | OpenPathError::NoConnectionId) => self.next = now + self.each,
            Err(_) => self.left = 0,
        }
    }
}
