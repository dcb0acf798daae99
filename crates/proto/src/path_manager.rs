//! Who opens the paths of a client: the trait, and the manager that opens one for each pair of addresses.
//!
//! A manager is a user of the [`Connection`] like the application: it sees the events of paths, says when it wants to be called,
//! and opens and abandons paths by the connection's own functions.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{PathId, TransportErrorCode, VarInt};

use crate::connection::{Connection, OpenPathError};
use crate::datagram::FourTuple;
use crate::events::PathEvent;

/// How long a pair of addresses that has failed rests before it is tried again. A link that has come back should be in use
/// within two seconds, and a datagram a second costs little.
const REST: Duration = Duration::from_secs(1);
/// The longest rest: it doubles with each attempt in a row that fails.
const REST_MAX: Duration = Duration::from_secs(16);
/// When to ask again after the peer has allowed no further path, or has given no connection ID for it. Its answer takes a round
/// trip.
const LACK_REST: Duration = Duration::from_millis(100);

/// Opens and abandons the paths of a connection (RFC 10069 §3).
///
/// Whoever drives the connection hands it all path events, calls [`manage`](Self::manage) after each call into the connection
/// and when [`next_timeout`](Self::next_timeout) has come.
pub trait PathManager: std::fmt::Debug + Send {
    /// Something happened to the addresses of the connection.
    fn on_event(&mut self, now: Instant, event: &PathEvent);

    /// Does what is due.
    fn manage(&mut self, now: Instant, connection: &mut Connection);

    /// When there is something to do again, whatever happens until then.
    fn next_timeout(&self) -> Option<Instant>;
}

/// Keeps a path open over each of some pairs of addresses: the manager of clients that do not bring their own.
///
/// A path that fails, or that the peer abandons because it is poor, is opened again after a second; the time doubles up to
/// 16 s as long as nothing answers. One that an application abandons, at either end, stays closed.
///
/// Limit: as many pairs as the caller names; those beyond the paths that both ends allow wait until there is room.
#[derive(Debug, Default)]
pub struct AddressPairs {
    pairs: Vec<Pair>,
    /// One of the ends has no multipath, or this one is no client.
    is_hopeless: bool,
    next: Option<Instant>,
}

#[derive(Debug)]
struct Pair {
    addrs: FourTuple,
    path: Option<PathId>,
    /// Not before this time.
    rests_until: Instant,
    /// Attempts in a row that failed.
    failures: u32,
}

impl AddressPairs {
    /// Keeps a path open over each of these pairs. Those that the connection has already count as open, if they are named as
    /// there: without an address of this end where the kernel chooses it.
    pub fn new(pairs: impl IntoIterator<Item = FourTuple>) -> Self {
        let mut new = Self::default();
        pairs.into_iter().for_each(|addrs| new.add(addrs));
        new
    }

    /// One more pair: an interface has come up.
    pub fn add(&mut self, addrs: FourTuple) {
        if self.pairs.iter().all(|pair| pair.addrs != addrs) {
            self.pairs.push(Pair { addrs, path: None, rests_until: Instant::ZERO, failures: 0 });
        }
    }

    /// A pair that is not to be opened again: an interface is gone. Its path, if it has one, is not touched.
    pub fn remove(&mut self, addrs: &FourTuple) {
        self.pairs.retain(|pair| pair.addrs != *addrs);
    }

    /// All pairs may be tried again at once: the network has changed.
    pub fn retry(&mut self) {
        for pair in &mut self.pairs {
            (pair.rests_until, pair.failures) = (Instant::ZERO, 0);
        }
    }

    fn of_path(&mut self, id: PathId) -> Option<&mut Pair> {
        self.pairs.iter_mut().find(|pair| pair.path == Some(id))
    }

    /// Whether a path was closed for good.
    fn is_wish_of_application(code: VarInt) -> bool {
        code.get() == TransportErrorCode::APPLICATION_ABANDON_PATH.0
    }
}

impl PathManager for AddressPairs {
    fn on_event(&mut self, now: Instant, event: &PathEvent) {
        match *event {
            PathEvent::Validated { path, .. } => {
                if let Some(pair) = self.of_path(path) {
                    pair.failures = 0;
                }
            }
            PathEvent::Abandoned { path, code, .. } if Self::is_wish_of_application(code) => {
                self.pairs.retain(|pair| pair.path != Some(path));
            }
            PathEvent::Abandoned { path, .. } => {
                if let Some(pair) = self.of_path(path) {
                    pair.path = None;
                    pair.rests_until =
                        now + REST.saturating_mul(1 << pair.failures.min(REST_MAX.as_secs().ilog2()));
                    pair.failures += 1;
                }
            }
            PathEvent::Moved { path, from, to } => {
                // Another pair is open in place of that one.
                if let Some(pair) = self.pairs.iter_mut().find(|pair| pair.addrs == from) {
                    pair.path = None;
                }
                if let Some(pair) = self.pairs.iter_mut().find(|pair| pair.addrs == to) {
                    pair.path = Some(path);
                }
            }
            PathEvent::Opened { .. }
            | PathEvent::Status { .. }
            | PathEvent::Failed { .. }
            | PathEvent::Observed { .. } => {}
        }
    }

    fn manage(&mut self, now: Instant, connection: &mut Connection) {
        self.next = None;
        if self.is_hopeless || connection.is_closed() {
            return;
        }
        for pair in &mut self.pairs {
            if pair.path.is_none() {
                pair.path = connection.paths().find(|path| path.addrs == pair.addrs).map(|path| path.id);
            }
            if pair.path.is_some() {
                continue;
            }
            if pair.rests_until <= now {
                match connection.open_path(now, pair.addrs) {
                    Ok(id) => {
                        pair.path = Some(id);
                        continue;
                    }
                    Err(OpenPathError::Limit | OpenPathError::NoConnectionId) => {
                        pair.rests_until = now + LACK_REST;
                    }
                    // The end of the handshake wakes the connection.
                    Err(OpenPathError::NotConfirmed) => return,
                    Err(OpenPathError::Disabled) => pair.rests_until = Instant::FAR_FUTURE,
                    Err(_) => {
                        self.is_hopeless = true;
                        return;
                    }
                }
            }
            self.next = Some(self.next.map_or(pair.rests_until, |next| next.min(pair.rests_until)));
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.next
    }
}
