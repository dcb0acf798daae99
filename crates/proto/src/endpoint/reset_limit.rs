//! How many stateless resets an endpoint sends.

use std::time::Duration;

use fulmar_base::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Counts the stateless resets of each second. A flood of packets that belong to no connection, whoever's address
/// they carry, costs no more than so many answers (RFC 9000 §21.11).
#[derive(Debug)]
pub(super) struct ResetLimit {
    per_second: u32,
    start: Instant,
    sent: u32,
}

impl ResetLimit {
    pub(super) fn new(per_second: u32) -> Self {
        Self { per_second, start: Instant::ZERO, sent: 0 }
    }

    /// Whether one more may be sent now; it is counted then.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.start) >= SECOND {
            (self.start, self.sent) = (now, 0);
        }
        let allowed = self.sent < self.per_second;
        self.sent += u32::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_the_limit() {
        let mut limit = ResetLimit::new(3);
        let sent =
            |limit: &mut ResetLimit, at| (0..10).filter(|_| limit.take(Instant::from_millis(at))).count();
        assert_eq!(sent(&mut limit, 5_000), 3);
        assert_eq!(sent(&mut limit, 5_999), 0);
        assert_eq!(sent(&mut limit, 6_000), 3);
        assert_eq!(sent(&mut ResetLimit::new(0), 5_000), 0);
    }
}
