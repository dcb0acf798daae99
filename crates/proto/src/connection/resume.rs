//! What a connection knows of its path, for a later one, and takes over from an earlier one (RFC 9959).

use fulmar_base::Instant;

use super::Connection;
use crate::congestion::{SAVED_PATH_LIFETIME, SavedPath};

impl Connection {
    /// What this connection has learned of its path, for [`ClientConfig::with_saved_path`](crate::ClientConfig) or
    /// [`Connection::resume_congestion`] of a later connection to the same peer. `None` as long as nothing is known
    /// that is worth remembering: that takes some round trips with more to send than four initial windows.
    pub fn congestion_parameters(&self) -> Option<SavedPath> {
        self.known_path().filter(|saved| saved.window > 0)
    }

    /// The same, or the round-trip time alone, which a few packets show.
    fn known_path(&self) -> Option<SavedPath> {
        let tuple = &self.paths.primary().tuple;
        tuple.rtt.has_sample().then(|| SavedPath {
            remote: tuple.addrs.remote.ip(),
            local: tuple.addrs.local_ip,
            window: tuple.congestion.capacity().unwrap_or(0),
            full: tuple.congestion.is_full(),
            rtt: tuple.rtt.min(),
            lifetime: SAVED_PATH_LIFETIME,
        })
    }

    /// Starts with what an earlier connection to the same peer knew, as carefully as RFC 9959 asks: half of the saved
    /// window is tried once the path has proved to be the same, and given up if congestion shows. Best called before
    /// anything is sent: then the handshake counts as reconnaissance, and its timers go by the round-trip time of the earlier
    /// connection (RFC 9002 §6.2.2). Of another path, or after losses, the parameters are not used.
    ///
    /// Only one connection may use a set of parameters (RFC 9959 §3.2), so it is taken by value.
    pub fn resume_congestion(&mut self, saved: SavedPath) {
        let tuple = &mut self.paths.primary_mut().tuple;
        if saved.is_about(tuple.addrs.remote.ip(), tuple.addrs.local_ip) {
            tuple.rtt.assume(saved.rtt);
            if saved.window > 0 {
                tuple.congestion.resume(saved);
                self.streams.set_flight(self.paths.flight());
            }
        }
    }

    /// A client that has a session store takes from it what an earlier connection to the server left, unless it was given
    /// parameters.
    pub(crate) fn resume_remembered(&mut self, now: Instant) {
        if let Some(saved) = self.sessions.as_ref().and_then(|sessions| sessions.take_path(now)) {
            self.resume_congestion(saved);
        }
    }

    /// Leaves for a later connection what this one has learned, if there is a session store.
    pub(super) fn remember_path(&self, now: Instant) {
        if let Some((sessions, saved)) = self.sessions.as_ref().zip(self.known_path()) {
            sessions.keep_path(now, saved);
        }
    }

    /// The phase of careful resume; `None` where it is not used or over.
    pub fn resume_state(&self) -> Option<&'static str> {
        self.paths.primary().tuple.congestion.resume_state()
    }
}
