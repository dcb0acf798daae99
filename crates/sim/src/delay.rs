//! The time that packets travel.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::Instant;

use crate::{Change, Context, DropReason, Element, Jitter, Packet};

/// The most packets that travel at a time in one direction: 6 GB of full packets, more than 20 minutes at 10
/// Mbit/s.
const TRAVELLING_MAX: usize = 1 << 22;

/// Delivers each packet after the delay and its jitter.
///
/// The order is kept: a packet whose own time would be earlier than its predecessor's arrives together with
/// it, unless jitter may reorder. That also holds when the delay gets shorter in mid-flight.
#[derive(Debug)]
pub(crate) struct Delay {
    delay: Duration,
    jitter: Jitter,
    jitter_reorders: bool,
    /// By arrival; packets of the same arrival in the order they came.
    travelling: VecDeque<(Instant, Packet)>,
}

impl Delay {
    pub(crate) const fn new(delay: Duration, jitter: Jitter, jitter_reorders: bool) -> Self {
        Self { delay, jitter, jitter_reorders, travelling: VecDeque::new() }
    }

    fn insert(&mut self, arrival: Instant, packet: Packet) {
        let last = self.travelling.back().map_or(Instant::ZERO, |(last, _)| *last);
        if last <= arrival {
            self.travelling.push_back((arrival, packet));
        } else if self.jitter_reorders {
            let place = self.travelling.partition_point(|(other, _)| *other <= arrival);
            self.travelling.insert(place, (arrival, packet));
        } else {
            self.travelling.push_back((last, packet));
        }
    }
}

impl Element for Delay {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let arrival = cx.now() + self.delay + self.jitter.draw(cx.rng());
        if arrival == cx.now() && self.travelling.is_empty() {
            cx.pass(packet);
        } else if self.travelling.len() >= TRAVELLING_MAX {
            cx.discard(packet, DropReason::Overflow);
        } else {
            self.insert(arrival, packet);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.travelling.front().map(|(arrival, _)| *arrival)
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        while self.next_timeout().is_some_and(|arrival| arrival <= cx.now()) {
            if let Some((_, packet)) = self.travelling.pop_front() {
                cx.pass(packet);
            }
        }
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        match change {
            Change::Delay(delay) => self.delay = *delay,
            Change::Jitter(jitter) => self.jitter = *jitter,
            _ => {}
        }
    }
}
