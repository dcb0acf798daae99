//! When which connection wants to be called, and the alarm of the runtime.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;

use fulmar_base::Instant;
use tokio::time::Sleep;

use crate::clock;
use crate::shared::Inner;

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

/// One timer of the runtime, set as seldom as possible. It rings late by up to a millisecond, never early.
pub(crate) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    set_for: Option<Instant>,
}

impl Alarm {
    /// An alarm that is not set.
    pub(crate) fn new() -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(clock::alarm_time(Instant::FAR_FUTURE))),
            set_for: None,
        }
    }

    /// Makes sure that the task of `cx` is called at `deadline` or before. Returns whether it is due already.
    pub(crate) fn is_due(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = deadline else { return false };
        if self.set_for.is_none_or(|set| deadline < set) {
            self.sleep.as_mut().reset(clock::alarm_time(deadline));
            self.set_for = Some(deadline);
        }
        let rings = self.sleep.as_mut().poll(cx).is_ready();
        if rings {
            self.set_for = None;
        }
        rings
    }
}
