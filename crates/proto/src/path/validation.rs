//! The proof that the peer receives at an address: challenges, and when to give up (RFC 9000 §8.2).

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::{Instant, Rng, Timer};
use fulmar_wire::{Frame, PathChallenge};

use crate::packet::FrameWriter;

/// How many challenges of one validation can be answered; when full, the oldest is forgotten. A new path of multipath sends
/// about 20 until it is given up, as their distance doubles until it is a sixteenth of that time.
const CHALLENGES_MAX: usize = 24;

/// A challenge that was sent.
#[derive(Debug, Clone, Copy)]
struct Challenge {
    data: [u8; 8],
    sent: Instant,
    /// Whether it was in a datagram of the size that every path must carry.
    full: bool,
}

/// What the answer to a challenge has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// From the challenge to its answer.
    pub(crate) rtt: Duration,
    /// Whether the datagram of the challenge had full size: only then is it known that the path carries such
    /// datagrams (RFC 9000 §8.2.3).
    pub(crate) full: bool,
}

/// The validation of one tuple.
#[derive(Debug)]
pub(crate) struct Validation {
    challenges: VecDeque<Challenge>,
    /// A challenge has to be sent now.
    pending: bool,
    /// How long the next challenge waits for its answer; the first one did so for `interval_min`.
    interval: Duration,
    interval_min: Duration,
    /// That time at most.
    interval_max: Duration,
    repeat: Timer,
    patience: Duration,
    deadline: Instant,
}

impl Validation {
    /// A validation whose first challenge is sent at once. The second one follows after `interval`, and each
    /// further one after twice the time of the one before, `interval_max` at most. It fails after `patience`.
    pub(crate) fn new(now: Instant, interval: Duration, interval_max: Duration, patience: Duration) -> Self {
        Self {
            challenges: VecDeque::new(),
            pending: true,
            interval,
            interval_min: interval,
            interval_max,
            repeat: Timer::new(),
            patience,
            deadline: now + patience,
        }
    }

    /// Whether a challenge has to be sent.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Writes the challenge that is due. Each has data of its own, so that its answer tells the round-trip time.
    /// `full` says whether the datagram will have full size.
    pub(crate) fn write(&mut self, now: Instant, full: bool, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        if !self.pending {
            return;
        }
        let data = rng.bytes();
        if !out.write_untracked(&Frame::PathChallenge(PathChallenge { data })) {
            return;
        }
        if self.challenges.len() == CHALLENGES_MAX {
            self.challenges.pop_front();
        }
        self.challenges.push_back(Challenge { data, sent: now, full });
        self.pending = false;
        self.repeat.set(now + self.interval);
        self.interval = self.interval.saturating_mul(2).min(self.interval_max);
    }

    /// The peer has received here what left at `left`. That is no proof of the address, as anybody can say so (RFC 9000 §8.2.3). But if
    /// it left after the last challenge, this or its answer was lost, and the next one has every chance: the validation begins anew.
    pub(crate) fn on_acked(&mut self, now: Instant, left: Instant) {
        if self.challenges.back().is_some_and(|last| last.sent < left) {
            self.pending = true;
            self.interval = self.interval_min;
            self.deadline = now + self.patience;
        }
    }

    /// An answer came; `None` if it is not one to these challenges.
    pub(crate) fn on_response(&self, now: Instant, data: [u8; 8]) -> Option<Answer> {
        let challenge = self.challenges.iter().find(|challenge| challenge.data == data)?;
        Some(Answer { rtt: now.saturating_since(challenge.sent), full: challenge.full })
    }

    /// When [`Validation::on_timeout`] wants to be called.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.repeat.deadline().map_or(self.deadline, |at| at.min(self.deadline))
    }

    /// Returns true if the validation has failed. It may also be time for another challenge.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        self.pending |= self.repeat.take_expired(now);
        self.deadline <= now
    }
}

#[cfg(test)]
mod tests {
    use fulmar_wire::Dialect;

    use super::*;

    fn write(validation: &mut Validation, now: Instant, full: bool) -> Option<[u8; 8]> {
        let mut payload = [0; 100];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        validation.write(now, full, &mut Rng::from_u64(now.as_nanos()), &mut out);
        let len = out.finish().len;
        (len > 0).then(|| *payload[1..len].first_chunk().unwrap())
    }

    #[test]
    fn challenges_get_rarer_until_the_validation_fails() {
        let ms = Duration::from_millis;
        let at = Instant::from_millis;
        let mut validation = Validation::new(at(0), ms(10), ms(40), ms(200));
        let mut sent = Vec::new();
        let mut now = at(0);
        loop {
            if write(&mut validation, now, true).is_some() {
                sent.push(now);
            }
            now = validation.next_timeout();
            if validation.on_timeout(now) {
                break;
            }
        }
        assert_eq!(sent, [at(0), at(10), at(30), at(70), at(110), at(150), at(190)]);
        assert_eq!(now, at(200));
    }

    #[test]
    fn what_is_acknowledged_that_left_after_the_last_challenge_begins_anew() {
        let ms = Duration::from_millis;
        let at = Instant::from_millis;
        let mut validation = Validation::new(at(0), ms(10), ms(40), ms(200));
        let first = write(&mut validation, at(0), true).unwrap();
        assert!(!validation.on_timeout(at(10)));
        write(&mut validation, at(10), true).unwrap();
        validation.on_acked(at(15), at(10));
        assert!(!validation.is_pending(), "what left with the challenge may bring its answer");
        assert_eq!(validation.next_timeout(), at(30));
        validation.on_acked(at(180), at(11));
        assert!(write(&mut validation, at(180), true).is_some());
        assert_eq!(validation.next_timeout(), at(190), "as at first");
        assert!(!validation.on_timeout(at(379)) && validation.on_timeout(at(380)));
        assert!(validation.on_response(at(190), first).is_some());
    }

    #[test]
    fn every_challenge_can_be_answered_and_nothing_else_is_an_answer() {
        let at = Instant::from_millis;
        let mut validation =
            Validation::new(at(0), Duration::from_millis(10), Duration::MAX, Duration::from_secs(1));
        let first = write(&mut validation, at(0), false).unwrap();
        assert!(!validation.on_timeout(at(10)));
        let second = write(&mut validation, at(10), true).unwrap();
        assert_ne!(first, second);
        let answer = |rtt, full| Some(Answer { rtt: Duration::from_millis(rtt), full });
        assert_eq!(validation.on_response(at(25), first), answer(25, false));
        assert_eq!(validation.on_response(at(25), second), answer(15, true));
        assert_eq!(validation.on_response(at(25), [9; 8]), None);
    }
}
