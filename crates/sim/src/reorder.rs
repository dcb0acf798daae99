//! Packets that later ones overtake.

use std::time::Duration;

use fulmar_base::{Instant, Rng};

use crate::{Change, Context, Element, Packet};

/// The most packets held back at a time; when as many are held, the next ones are not.
const HELD_MAX: usize = 1_024;

/// Which packets are held back, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Reorder {
    /// None.
    #[default]
    None,
    /// For a time. Whether another packet overtakes depends on the traffic.
    ByTime {
        /// The probability that a packet is held back.
        probability: f64,
        /// The longest time; each packet's own is drawn from `1 ns..=delay_max`.
        delay_max: Duration,
    },
    /// Until some packets have passed.
    ByDepth {
        /// The probability that a packet is held back.
        probability: f64,
        /// The most packets that pass; each packet's own number is drawn from `1..=depth_max`, and 0 counts
        /// as 1.
        depth_max: u32,
        /// How long the packet waits for them at most, so that the last one of a conversation gets through.
        hold_max: Duration,
    },
}

/// Holds packets back as a [`Reorder`] says.
#[derive(Debug)]
pub(crate) struct Reordering {
    setting: Reorder,
    held: Vec<Held>,
    /// The earliest release in `held`.
    next_release: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    packet: Packet,
    release: Instant,
    /// How many packets have yet to pass; `None` if only the time counts.
    to_pass: Option<u32>,
}

impl Held {
    fn is_due(&self, now: Instant) -> bool {
        self.release <= now || self.to_pass == Some(0)
    }
}

impl Reordering {
    pub(crate) const fn new(setting: Reorder) -> Self {
        Self { setting, held: Vec::new(), next_release: None }
    }

    /// Until when a packet that comes now is held back, and how many must pass; `None` if it is not held.
    fn draw(&self, now: Instant, rng: &mut Rng) -> Option<(Instant, Option<u32>)> {
        match self.setting {
            Reorder::None => None,
            Reorder::ByTime { probability, delay_max } => {
                let longest = u64::try_from(delay_max.as_nanos()).unwrap_or(u64::MAX).max(1);
                let chosen = rng.chance(probability);
                chosen.then(|| (now + Duration::from_nanos(1 + rng.below(longest)), None))
            }
            Reorder::ByDepth { probability, depth_max, hold_max } => {
                let chosen = rng.chance(probability);
                let mut to_pass = || 1 + rng.below(u64::from(depth_max.max(1))) as u32;
                chosen.then(|| (now + hold_max, Some(to_pass())))
            }
        }
    }

    fn release_due(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        while let Some(place) = self.held.iter().position(|held| held.is_due(now)) {
            cx.pass(self.held.remove(place).packet);
            // It overtakes those that were sent before it and are still held.
            count_down(&mut self.held[..place]);
        }
        self.next_release = self.held.iter().map(|held| held.release).min();
    }
}

/// A packet has passed those.
fn count_down(held: &mut [Held]) {
    for to_pass in held.iter_mut().filter_map(|held| held.to_pass.as_mut()) {
        *to_pass = to_pass.saturating_sub(1);
    }
}

impl Element for Reordering {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let now = cx.now();
        match self.draw(now, cx.rng()) {
            Some((release, to_pass)) if self.held.len() < HELD_MAX => {
                self.next_release = Some(self.next_release.map_or(release, |next| next.min(release)));
                self.held.push(Held { packet, release, to_pass });
            }
            _ => {
                cx.pass(packet);
                count_down(&mut self.held);
                if !self.held.is_empty() {
                    self.release_due(cx);
                }
            }
        }
    }

    fn is_transparent(&self) -> bool {
        self.setting == Reorder::None && self.held.is_empty()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.next_release
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        self.release_due(cx);
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        if let Change::Reorder(setting) = change {
            self.setting = *setting;
        }
    }
}
