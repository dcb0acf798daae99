//! The settings of one direction of a link.

use std::time::Duration;

use fulmar_base::Instant;

use crate::{Aqm, Corrupt, CrossTraffic, EcnPath, Jitter, Loss, Policer, QueueLimit, Reorder, Suspension};

/// One direction of a link. The default is a perfect one: unlimited, immediate, nothing is lost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkConfig {
    /// Payload bits per second; `None` for no limit, `Some(0)` for a transmitter that stands still.
    pub rate_bps: Option<u64>,
    /// What may wait for the transmitter.
    pub queue: QueueLimit,
    /// How that queue drops and marks before it is full.
    pub aqm: Aqm,
    /// What is dropped ahead of the queue for exceeding a rate.
    pub policer: Option<Policer>,
    /// Packets of others that compete for the queue and the rate.
    pub cross_traffic: Option<CrossTraffic>,
    /// The time a packet travels after its last bit was sent.
    pub delay: Duration,
    /// What is added to the delay of each packet.
    pub jitter: Jitter,
    /// Whether jitter may change the order of packets. Without, a packet waits for the one before it.
    pub jitter_reorders: bool,
    /// Which packets are lost.
    pub loss: Loss,
    /// The probability that a packet is followed by a copy of itself.
    pub duplicate: f64,
    /// Which packets are changed on the way.
    pub corrupt: Corrupt,
    /// Which packets are held back while later ones pass.
    pub reorder: Reorder,
    /// What becomes of ECN codepoints.
    pub ecn_path: EcnPath,
    /// The largest payload in bytes that fits the link; `None` for no limit.
    pub mtu: Option<usize>,
    /// New values at later times, in any order. Of those with the same time, the last one holds.
    pub schedule: Vec<Scheduled>,
}

impl LinkConfig {
    /// A link with a rate in bits per second, a one-way delay, and a queue of `queue` in time.
    pub fn with_rate(rate_bps: u64, delay: Duration, queue: Duration) -> Self {
        Self {
            rate_bps: Some(rate_bps),
            delay,
            queue: QueueLimit { time: Some(queue), bytes: None },
            ..Self::default()
        }
    }

    /// Adds a new value that holds from `at` on.
    #[must_use]
    pub fn then(mut self, at: Instant, change: Change) -> Self {
        self.schedule.push(Scheduled { at, change });
        self
    }

    /// Adds `count` suspensions, the first at `first` and one `every` so often.
    #[must_use]
    pub fn suspended(self, first: Instant, every: Duration, count: u32, suspension: Suspension) -> Self {
        (0..count).fold(self, |link, n| link.then(first + every * n, Change::Suspend(suspension)))
    }

    /// Loses everything from `from` until `until`, and then what was lost before again.
    #[must_use]
    pub fn black_hole(self, from: Instant, until: Instant) -> Self {
        let loss = self.loss.clone();
        self.then(from, Change::Loss(Loss::Everything)).then(until, Change::Loss(loss))
    }
}

/// A new value of a setting, at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheduled {
    /// When the value becomes valid: for packets that reach the element at this time or later.
    pub at: Instant,
    /// The value.
    pub change: Change,
}

/// A new value for a field of [`LinkConfig`], named like the field, or something that happens once.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// [`LinkConfig::rate_bps`]. The packet in transmission goes on at the new rate.
    Rate(Option<u64>),
    /// [`LinkConfig::queue`]. What already waits stays.
    Queue(QueueLimit),
    /// [`LinkConfig::delay`]. What already travels arrives as it would have.
    Delay(Duration),
    /// [`LinkConfig::jitter`].
    Jitter(Jitter),
    /// [`LinkConfig::loss`]. The new model begins in its initial state.
    Loss(Loss),
    /// [`LinkConfig::duplicate`].
    Duplicate(f64),
    /// [`LinkConfig::corrupt`].
    Corrupt(Corrupt),
    /// [`LinkConfig::reorder`]. What is already held back is released as it would have been.
    Reorder(Reorder),
    /// [`LinkConfig::ecn_path`]. What travels already is treated when it arrives.
    EcnPath(EcnPath),
    /// [`LinkConfig::mtu`]. Packets that already passed the entry of the link are not affected.
    Mtu(Option<usize>),
    /// [`LinkConfig::aqm`]. What waits goes over to the new discipline, which begins in its initial state.
    Aqm(Aqm),
    /// [`LinkConfig::policer`]. The bucket of the new one is full.
    Policer(Option<Policer>),
    /// [`LinkConfig::cross_traffic`]. The first packet leaves at once.
    CrossTraffic(Option<CrossTraffic>),
    /// The direction stops now, for a while.
    Suspend(Suspension),
}
