//! Validations of the tuples of a path: how often they ask, and how long they wait (RFC 9000 §8.2).

use std::time::Duration;

use fulmar_base::Instant;

use crate::config::TransportConfig;
use crate::path::{Path, Tuple, Validation};
use crate::rtt::Rtt;
use crate::space::probe_interval_max;

/// A tuple has failed when no challenge was answered for so many probe timeouts (RFC 9000 §8.2.4).
const PATIENCE_PTOS: u32 = 3;

/// The probe timeout of a path of which nothing is known, with kInitialRtt (RFC 9002 §6.2.2) and half of it as variance. A new
/// tuple has as long as RFC 9000 §8.2.4 recommends, however short the guess is with which this end repeats its first packets.
const UNKNOWN_PTO: Duration = Duration::from_millis(999);

/// The patience doubles so many times at most.
const PATIENCE_EXPONENT_MAX: u32 = 12;

impl Path {
    /// The path is new: its tuple has to prove itself.
    pub(super) fn begin_validation(&mut self, now: Instant, config: &TransportConfig) {
        self.has_challenged = true;
        self.tuple.validation = Some(self.validation_of(now, &self.tuple, config));
    }

    /// A validation of a tuple of this path.
    pub(super) fn validation_of(
        &self,
        now: Instant,
        tuple: &Tuple,
        config: &TransportConfig,
    ) -> Box<Validation> {
        self.new_validation(now, &self.tuple.rtt, tuple, config)
    }

    /// A validation of a tuple, where `known` is what is known of the tuple in use.
    ///
    /// RFC 9000 §8.2.1 wants challenges no more often than a handshake would send its first packet. The second one
    /// leaves when the answer to the first is late: a challenge that meets the full queue of the old address is lost
    /// easily, and the connection waits for nothing else.
    ///
    /// RFC 9000 §8.2.4 recommends to wait for three probe timeouts. Each failure doubles that: where answers are
    /// later than the timeouts expect, because of a queue, this end would follow its peer with each packet, give up
    /// before the answer comes, and add to the queue for ever. A new path beside others holds nothing up: it is given as long as
    /// a handshake over it would be.
    pub(super) fn new_validation(
        &self,
        now: Instant,
        known: &Rtt,
        tuple: &Tuple,
        config: &TransportConfig,
    ) -> Box<Validation> {
        let pto = known.pto_base().max(tuple.rtt.pto_base());
        let backoff = 1 << self.failures.min(PATIENCE_EXPONENT_MAX);
        let mut patience = pto.max(UNKNOWN_PTO).saturating_mul(PATIENCE_PTOS * backoff);
        if self.is_unproven {
            patience = patience.max(config.handshake_timeout);
        }
        let interval = known.pto_base().min(known.smoothed() + known.smoothed() / 8);
        let interval_max = probe_interval_max(config.handshake_timeout, pto);
        Box::new(Validation::new(now, interval, interval_max, patience))
    }

    /// When a validation needs attention.
    pub(super) fn validation_deadline(&self) -> Option<Instant> {
        let active = self.tuple.validation.as_ref();
        let off_path = self.off_path().iter().filter_map(|tuple| tuple.validation.as_ref());
        active.into_iter().chain(off_path).map(|validation| validation.next_timeout()).min()
    }
}
