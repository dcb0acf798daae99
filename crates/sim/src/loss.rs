//! Packets that never arrive.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use fulmar_base::{Instant, Rng};

use crate::weather::Weather;
use crate::{Change, Context, DropReason, Element, Packet};

/// Which packets are lost. Probabilities are in `0.0..=1.0`; a model counts the packets that reach it, which
/// are those that the queue let through.
///
/// A lost packet has used the rate of the link. Losses happen before copies are made: a lost packet has no
/// copy, and a copy is never lost.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each packet on its own.
    Uniform {
        /// The share of packets lost.
        probability: f64,
    },
    /// Each packet on its own, but never more than `run_max` one after another.
    Capped {
        /// The probability of each loss that the cap allows; the share of packets lost is lower.
        probability: f64,
        /// The most packets lost one after another.
        run_max: u32,
    },
    /// Several packets one after another.
    Burst {
        /// The probability that a packet that is not in a burst begins one.
        probability: f64,
        /// How many packets a burst takes, each number as likely as the others; an empty range counts as 1.
        length: RangeInclusive<u32>,
    },
    /// Gilbert-Elliott: a chain of two states that moves once per packet, before the packet's fate is drawn.
    /// It begins in the good state and is in the bad one for `to_bad / (to_bad + to_good)` of the packets.
    GilbertElliott {
        /// The probability of going from the good state to the bad one.
        to_bad: f64,
        /// The probability of going from the bad state to the good one.
        to_good: f64,
        /// The share of packets lost in the good state.
        loss_good: f64,
        /// The share of packets lost in the bad state.
        loss_bad: f64,
    },
    /// Gilbert-Elliott in the time of the link: the state lasts for a time, whatever is sent. Each stay is drawn
    /// from an exponential distribution; the first one is good and begins with the first packet. The link is bad for
    /// `bad_mean / (good_mean + bad_mean)` of the time. A mean of zero counts as 1 ns.
    GilbertElliottTimed {
        /// The mean length of a good time.
        good_mean: Duration,
        /// The mean length of a bad time.
        bad_mean: Duration,
        /// The share of packets lost in a good time.
        loss_good: f64,
        /// The share of packets lost in a bad time.
        loss_bad: f64,
    },
    /// Of each `period` packets, the first `lost` after the first `offset`. A period of 0 loses none.
    Pattern {
        /// The length of the pattern in packets.
        period: u64,
        /// Packets of a period that come through before the losses.
        offset: u64,
        /// Packets of a period that are lost.
        lost: u64,
    },
    /// The packets with these positions, counted from 0.
    Listed(BTreeSet<u64>),
    /// All.
    Everything,
}

impl Loss {
    /// The probability with which a [`Loss::Burst`] begins bursts of so many packets in the mean, so that this share (0 to 1) of all
    /// packets is lost. A burst begins with a packet that would come through, or with the one behind another burst: between two there are
    /// (1 - begins) / begins packets, in the mean, for each `packets` that are lost.
    pub fn burst_probability(share: f64, packets: f64) -> f64 {
        share / (packets * (1.0 - share) + share)
    }
}

/// Loses packets as a [`Loss`] model says.
#[derive(Debug)]
pub(crate) struct Lossy {
    model: Loss,
    /// Packets that reached this model.
    count: u64,
    /// [`Loss::Capped`]: packets lost since one came through. [`Loss::Burst`]: packets the burst will still
    /// take.
    run: u32,
    /// [`Loss::GilbertElliott`]: whether the chain is in the bad state.
    bad: bool,
    /// [`Loss::GilbertElliottTimed`]: the state, once a packet has asked for it.
    weather: Option<Weather>,
}

impl Lossy {
    pub(crate) const fn new(model: Loss) -> Self {
        Self { model, count: 0, run: 0, bad: false, weather: None }
    }

    fn takes_next(&mut self, now: Instant, rng: &mut Rng) -> bool {
        let position = self.count;
        self.count += 1;
        match &self.model {
            Loss::None => false,
            Loss::Everything => true,
            Loss::Uniform { probability } => rng.chance(*probability),
            Loss::Capped { probability, run_max } => {
                let lost = rng.chance(*probability) && self.run < *run_max;
                self.run = if lost { self.run + 1 } else { 0 };
                lost
            }
            Loss::Burst { probability, length } => {
                if self.run == 0 && rng.chance(*probability) {
                    self.run = draw_length(length, rng);
                }
                let lost = self.run > 0;
                self.run = self.run.saturating_sub(1);
                lost
            }
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let leaves = rng.chance(if self.bad { *to_good } else { *to_bad });
                self.bad ^= leaves;
                rng.chance(if self.bad { *loss_bad } else { *loss_good })
            }
            Loss::GilbertElliottTimed { good_mean, bad_mean, loss_good, loss_bad } => {
                let weather =
                    self.weather.get_or_insert_with(|| Weather::new(*good_mean, *bad_mean, now, rng));
                let bad = weather.is_bad(now, rng);
                rng.chance(if bad { *loss_bad } else { *loss_good })
            }
            Loss::Pattern { period, offset, lost } => position
                .checked_rem(*period)
                .and_then(|at| at.checked_sub(*offset))
                .is_some_and(|at| at < *lost),
            Loss::Listed(positions) => positions.contains(&position),
        }
    }
}

fn draw_length(length: &RangeInclusive<u32>, rng: &mut Rng) -> u32 {
    let shortest = (*length.start()).max(1);
    let spread = u64::from(length.end().saturating_sub(shortest));
    shortest + rng.below(spread + 1) as u32
}

impl Element for Lossy {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        if self.takes_next(cx.now(), cx.rng()) {
            cx.discard(packet, DropReason::Lost);
        } else {
            cx.pass(packet);
        }
    }

    fn is_transparent(&self) -> bool {
        self.model == Loss::None
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        if let Change::Loss(model) = change {
            *self = Self::new(model.clone());
        }
    }
}
