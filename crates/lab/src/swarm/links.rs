//! What a seed stands for: the links.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_sim::{
    Aqm, Change, CoDel, Corrupt, DualQ, Jitter, LinkConfig, Loss, Policer, QueueLimit, Red, Reorder,
    Scheduled, SuspendedSide, Suspension,
};

use super::scenario::{Dice, MTU};

/// The slowest link, in bits per second, that a policer can stand in front of.
const POLICED_MIN: u64 = 4_000_000;

impl Dice {
    /// One direction of the link; the way back has the same delay as the way there, more or less.
    pub(super) fn link(&mut self, there: Option<&LinkConfig>) -> LinkConfig {
        let delay = match there {
            Some(there) => there.delay.mul_f64(0.5 + self.0.unit()),
            None => Duration::from_micros(self.magnitude(10, 300_000)),
        };
        let mut link = LinkConfig {
            rate_bps: self.0.chance(0.8).then(|| self.magnitude(250_000, 1_000_000_000)),
            delay,
            jitter: self.jitter(delay),
            jitter_reorders: self.0.chance(0.5),
            loss: self.loss(),
            duplicate: self.rare(0.1),
            corrupt: Corrupt {
                probability: self.rare(0.05),
                bytes_max: self.between(1, 4) as u32,
                replace: self.0.chance(0.5),
            },
            reorder: self.reorder(),
            mtu: self.0.chance(0.7).then(|| self.between(MTU.0, MTU.1) as usize),
            ..LinkConfig::default()
        };
        link.queue = self.queue();
        link.aqm = self.aqm();
        link.policer = self.policer(link.rate_bps);
        if self.0.chance(0.1) {
            let start = Instant::ZERO + self.millis(0, 3_000);
            let end = start + self.millis(50, 3_000);
            let loss = link.loss.clone();
            link = link.then(start, Change::Loss(Loss::Everything)).then(end, Change::Loss(loss));
        }
        link
    }

    fn jitter(&mut self, delay: Duration) -> Jitter {
        match self.0.below(3) {
            0 => Jitter::None,
            1 => Jitter::Uniform { max: delay.mul_f64(self.0.unit()) },
            _ => Jitter::Normal { mean: delay.mul_f64(0.3), deviation: delay.mul_f64(0.3 * self.0.unit()) },
        }
    }

    fn loss(&mut self) -> Loss {
        match self.0.below(6) {
            0 | 1 => Loss::None,
            2 => Loss::Uniform { probability: self.0.unit() * 0.1 },
            3 => Loss::Capped { probability: self.0.unit() * 0.2, run_max: self.between(1, 4) as u32 },
            4 => Loss::Burst { probability: self.0.unit() * 0.02, length: 1..=self.between(1, 9) as u32 },
            _ => Loss::GilbertElliott {
                to_bad: 0.001 + self.0.unit() * 0.03,
                to_good: 0.2 + self.0.unit() * 0.5,
                loss_good: self.0.unit() * 0.01,
                loss_bad: 0.3 + self.0.unit() * 0.5,
            },
        }
    }

    fn reorder(&mut self) -> Reorder {
        match self.0.below(4) {
            0 | 1 => Reorder::None,
            2 => Reorder::ByTime { probability: self.0.unit() * 0.2, delay_max: self.millis(1, 100) },
            _ => Reorder::ByDepth {
                probability: self.0.unit() * 0.2,
                depth_max: self.between(1, 10) as u32,
                hold_max: self.millis(1, 200),
            },
        }
    }

    /// At least two packets fit, of whatever size.
    fn queue(&mut self) -> QueueLimit {
        match self.0.below(3) {
            0 => QueueLimit { time: None, bytes: Some(self.magnitude(2 * MTU.1, 4_000_000)) },
            1 => QueueLimit { time: Some(self.millis(100, 1_000)), bytes: None },
            _ => QueueLimit::default(),
        }
    }

    fn aqm(&mut self) -> Aqm {
        match self.0.below(12) {
            0 => Aqm::CoDel(CoDel::default()),
            1 => Aqm::DualQ(DualQ::default()),
            2 => {
                let min_bytes = self.magnitude(4 * MTU.1, 200_000);
                Aqm::Red(Red::between(min_bytes, min_bytes * self.between(2, 4)))
            }
            _ => Aqm::DropTail,
        }
    }

    /// A bucket that lets at least half of the rate through, and the first flights of some handshakes. On a slow link it
    /// would starve one of several connections until it is given up.
    fn policer(&mut self, rate_bps: Option<u64>) -> Option<Policer> {
        let rate = rate_bps.unwrap_or(1_000_000_000);
        let policer = Policer::packets(self.between(rate / 2, rate), self.between(16, 64));
        self.0.chance(0.1).then_some(policer).filter(|_| rate >= POLICED_MIN)
    }

    /// Some stops of a radio, one after another.
    pub(super) fn stops(&mut self) -> Vec<Scheduled> {
        let side = match self.0.below(3) {
            0 => SuspendedSide::Send,
            1 => SuspendedSide::Receive,
            _ => SuspendedSide::Both,
        };
        let suspension = Suspension { duration: self.millis(10, 400), side };
        let (first, every) = (self.millis(0, 2_000), suspension.duration + self.millis(0, 1_000));
        let times = (0..self.between(1, 6) as u32).map(|number| Instant::ZERO + first + every * number);
        times.map(|at| Scheduled { at, change: Change::Suspend(suspension) }).collect()
    }
}
