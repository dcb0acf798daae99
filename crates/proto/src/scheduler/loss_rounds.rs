//! What the losses of a path cost: how often something has to be sent there again until it has arrived.

use std::time::Duration;

/// What remains of a round trip when no further one is counted.
const NEGLIGIBLE: f64 = 0.01;

/// The most round trips that are counted: with this many, nine packets in ten may be lost.
const ROUNDS_MAX: u32 = 64;

/// The part of the packets of a path that are lost, from 0 to 1.
pub(crate) fn loss_chance(delivered: u64, lost: u64) -> f64 {
    lost as f64 / (delivered + lost).max(1) as f64
}

/// After what time a lost packet is sent again on a path with this round-trip time (RFC 9002 §6.1.2, kTimeThreshold).
pub(crate) fn until_resent(rtt: Duration) -> Duration {
    rtt + rtt / 8
}

/// How many times on average the last of so many packets has to be sent again, where each is lost with this chance every time: after
/// `k` times one of them is still missing with a chance of `1 - (1 - chance^k)^packets`.
pub(crate) fn resends(chance: f64, packets: u64) -> f64 {
    let packets = i32::try_from(packets).unwrap_or(i32::MAX);
    let (mut rounds, mut lost) = (0.0, chance);
    for _ in 0..ROUNDS_MAX {
        let missing = 1.0 - (1.0 - lost).powi(packets);
        rounds += missing;
        if missing < NEGLIGIBLE {
            break;
        }
        lost *= chance;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_packets_and_more_losses_take_more_rounds() {
        let near =
            |value: f64, expected: f64| assert!((value - expected).abs() < 0.02, "{value}, {expected}");
        near(resends(0.0, 1_000), 0.0);
        near(resends(0.5, 0), 0.0);
        // Of one packet it is the mean of a geometric distribution, chance / (1 - chance).
        near(resends(0.01, 1), 0.01);
        near(resends(0.5, 1), 1.0);
        // Of two: one more than that where either is lost.
        near(resends(0.5, 2), 5.0 / 3.0);
        // The maximum of many grows by one each time that they are 1 / chance times as many.
        near(resends(0.1, 100_000) - resends(0.1, 10_000), 1.0);
        assert!(resends(1.0, 1) <= f64::from(ROUNDS_MAX));
        assert!(resends(0.9, u64::MAX) <= f64::from(ROUNDS_MAX));
    }

    #[test]
    fn the_chance_is_that_of_what_has_a_verdict() {
        assert_eq!(loss_chance(0, 0), 0.0);
        assert_eq!(loss_chance(300, 100), 0.25);
        assert_eq!(loss_chance(0, 100), 1.0);
    }
}
