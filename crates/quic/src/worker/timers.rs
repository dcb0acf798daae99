//! When which connection wants to be called, and the alarm that says so.

mod fine;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use fulmar_base::Instant;
use tokio::time::Sleep;

use crate::clock;
use crate::shared::Inner;

use fine::FineTimer;

/// The deadlines of all connections: at most one for each.
///
/// A deadline that moves to a later time, as idle and loss timers do with every packet, stays where it is until it is
/// reached; only then is the connection asked again. So a packet seldom costs a change of the map.
#[derive(Default)]
pub(crate) struct Timers(BTreeMap<(Instant, u64), Arc<Inner>>);

impl Timers {
    /// Notes that `connection` wants to be called at `deadline` or before. `armed` is the connection's entry.
    pub(crate) fn arm(
        &mut self,
        connection: &Arc<Inner>,
        armed: &mut Option<Instant>,
        deadline: Option<Instant>,
    ) {
        let Some(deadline) = deadline else { return };
        match *armed {
            Some(earlier) if earlier <= deadline => return,
            Some(later) => self.disarm(connection, later),
            None => {}
        }
        *armed = Some(deadline);
        self.0.insert((deadline, connection.id()), connection.clone());
    }

    /// Forgets the entry of a connection.
    pub(crate) fn disarm(&mut self, connection: &Inner, armed: Instant) {
        self.0.remove(&(armed, connection.id()));
    }

    /// A connection whose deadline is not after `now`. Its entry is gone.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<Arc<Inner>> {
        let entry = self.0.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first_key_value().map(|(key, _)| key.0)
    }
}

/// The timer of the runtime is up to two milliseconds late: it counts in milliseconds, from the end of the one that has begun, and
/// the system is asked to wait in whole ones, too. Farther ahead than this it is precise to a tenth, which is enough there, and costs
/// no system call. Pacing waits a millisecond at most rates, and twice as long where it is late.
const NEAR: Duration = Duration::from_millis(20);

/// The alarm of a worker. It never rings early, and is set as seldom as possible.
pub(crate) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    sleeps_until: Option<Instant>,
    /// For what is near, if the system has such a timer.
    fine: Option<FineTimer>,
}

impl Alarm {
    /// An alarm that is not set, of the runtime of the context.
    pub(crate) fn new() -> Self {
        Self::with(FineTimer::new())
    }

    fn with(fine: Option<FineTimer>) -> Self {
        let sleep = Box::pin(tokio::time::sleep_until(clock::alarm_time(Instant::FAR_FUTURE)));
        Self { sleep, sleeps_until: None, fine }
    }

    /// Makes sure that the task of `cx` is called at `deadline`, or before, or as late as its timers are. Returns whether it is due already.
    pub(crate) fn is_due(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = deadline else { return false };
        let now = clock::now();
        if deadline <= now {
            return true;
        }
        let is_near = deadline.saturating_since(now) <= NEAR;
        if is_near && let Some(fine) = &mut self.fine {
            if fine.set(deadline, now, cx).is_ok() {
                return false;
            }
            self.fine = None;
        }
        self.is_sleep_over(deadline, now, cx)
    }

    /// The same with the timer of the runtime.
    fn is_sleep_over(&mut self, deadline: Instant, now: Instant, cx: &mut Context<'_>) -> bool {
        if self.sleeps_until.is_none_or(|until| deadline < until || until <= now) {
            self.sleep.as_mut().reset(clock::alarm_time(deadline));
            self.sleeps_until = Some(deadline);
        }
        let is_over = self.sleep.as_mut().poll(cx).is_ready();
        if is_over {
            self.sleeps_until = None;
        }
        is_over
    }
}

#[cfg(test)]
mod tests;
