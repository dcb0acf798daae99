//! The clock by which a client tells the age of its tickets (RFC 8446 §4.2.11.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// TLS counts whole seconds, and tells the age of a ticket in milliseconds.
const RESOLUTION: Duration = Duration::from_secs(1);

/// A clock that is a second ahead once the ClientHello is made.
///
/// Without it, a ticket that was received a moment before a full second and used a moment after it would seem to be a
/// second old. GnuTLS for one refuses early data with a ticket that claims to be older than it can be. With it, a ticket
/// claims to be younger than it is, by less than two seconds, which servers have to put up with: the claim is younger by a
/// round trip anyway (RFC 8446 §8.3).
#[derive(Debug)]
pub(crate) struct TicketClock {
    inner: Arc<dyn TimeProvider>,
    has_sent_hello: AtomicBool,
}

impl TicketClock {
    pub(crate) fn new(inner: Arc<dyn TimeProvider>) -> Self {
        Self { inner, has_sent_hello: AtomicBool::new(false) }
    }

    /// The ClientHello is made. Tickets that come from now on get a later date.
    pub(crate) fn on_client_hello(&self) {
        self.has_sent_hello.store(true, Ordering::Relaxed);
    }
}

impl TimeProvider for TicketClock {
    fn current_time(&self) -> Option<UnixTime> {
        let now = self.inner.current_time()?;
        match self.has_sent_hello.load(Ordering::Relaxed) {
            true => Some(UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + RESOLUTION)),
            false => Some(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u64);

    impl TimeProvider for Fixed {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_millis(self.0)))
        }
    }

    #[test]
    fn no_ticket_claims_to_be_older_than_it_is() {
        let seconds = |millis, has_sent_hello: bool| {
            let clock = TicketClock::new(Arc::new(Fixed(millis)));
            if has_sent_hello {
                clock.on_client_hello();
            }
            clock.current_time().map_or(0, |time| time.as_secs())
        };
        for received in [10_000, 10_001, 10_500, 10_999] {
            for age in [0, 1, 350, 999, 1_000, 1_001, 5_432] {
                let claimed = seconds(received + age, false).saturating_sub(seconds(received, true)) * 1_000;
                assert!(claimed <= age && age < claimed + 2_000, "{claimed} ms of {age} ms");
            }
        }
    }
}
