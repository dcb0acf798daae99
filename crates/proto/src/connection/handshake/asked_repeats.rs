//! How often, and how soon, a flight is repeated because the peer seems to lack it, and no timeout has passed.

use std::time::Duration;

use fulmar_base::Instant;

/// A flight is repeated so often at most: the evidence may be wrong, and a peer that asks without end is not to be answered without end
/// (RFC 9002 §6.2.3 wants a limit).
const REPEATS_MAX: u8 = 3;

/// What was repeated so far.
#[derive(Debug)]
pub(in crate::connection) struct AskedRepeats {
    count: u8,
    last: Instant,
    /// How long the handshake had gone on when the first repeat was asked for, within a bound that was given then. Where something
    /// that had arrived was the reason to ask, a round trip is no longer than that, and what was repeated had time to be answered
    /// when as much has passed again. Where it was a guess, the wait keeps two datagrams of one probe from asking twice.
    patience: Duration,
}

impl AskedRepeats {
    pub(in crate::connection) fn new(begun: Instant) -> Self {
        Self { count: 0, last: begun, patience: Duration::ZERO }
    }

    /// Whether asking again would be in vain.
    pub(in crate::connection) fn are_over(&self) -> bool {
        self.count >= REPEATS_MAX
    }

    /// Whether a flight that is asked for may be repeated now; it is taken for repeated. Who asks again has to wait for
    /// `patience_max` at most, as it is when the first repeat is asked for.
    pub(in crate::connection) fn take(&mut self, now: Instant, patience_max: Duration) -> bool {
        let waited = now.saturating_since(self.last);
        if self.are_over() || waited < self.patience {
            return false;
        }
        if self.count == 0 {
            self.patience = waited.min(patience_max);
        }
        self.count += 1;
        self.last = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn who_asks_again_has_waited_as_long_as_before_it_asked_first() {
        let mut repeats = AskedRepeats::new(at(1_000));
        assert!(repeats.take(at(1_050), Duration::MAX));
        assert!(!repeats.take(at(1_050), Duration::MAX), "two datagrams of one flight ask for the same");
        assert!(!repeats.take(at(1_099), Duration::MAX));
        assert!(repeats.take(at(1_100), Duration::MAX));
        assert!(!repeats.take(at(1_149), Duration::MAX));
        assert!(repeats.take(at(1_150), Duration::MAX));
        assert!(repeats.are_over());
        assert!(!repeats.take(at(9_000), Duration::MAX), "three are enough");
    }

    #[test]
    fn who_was_asked_by_a_timeout_waits_no_longer_than_it_is_told() {
        let mut repeats = AskedRepeats::new(at(1_000));
        let half = Duration::from_millis(125);
        assert!(repeats.take(at(1_250), half));
        assert!(!repeats.take(at(1_374), half));
        assert!(repeats.take(at(1_375), half));
    }
}
