use super::super::test_path::{SIZE, ack, rtt};
use super::*;

const RTT: Duration = Duration::from_millis(600);

/// Acknowledges so many packets, one by one and 5 ms apart, with a round-trip time longer than the smallest by `extra`.
fn acknowledge(random: &mut RandomLoss, min_rtt: Duration, extra: Duration, packets: u32) {
    let rtt = rtt(min_rtt);
    for packet in 0..packets {
        let now = Instant::ZERO + Duration::from_millis(5) * packet;
        let ack = AckEvent { rtt_sample: Some(min_rtt + extra), ..ack(u64::from(SIZE), now, &rtt) };
        random.on_ack(now, &ack);
    }
}

#[test]
fn a_loss_now_and_then_is_chance() {
    let mut random = RandomLoss::default();
    for _ in 0..50 {
        acknowledge(&mut random, RTT, Duration::ZERO, 63);
        assert!(random.tolerates(1, false));
    }
    for _ in 0..50 {
        acknowledge(&mut random, RTT, Duration::ZERO, 62);
        assert!(random.tolerates(2, false));
    }
}

#[test]
fn many_losses_are_congestion() {
    let mut random = RandomLoss::default();
    acknowledge(&mut random, RTT, Duration::ZERO, 200);
    assert!(random.tolerates(6, false) && !random.tolerates(1, false));
    // The past is forgotten.
    acknowledge(&mut random, RTT, Duration::ZERO, 200);
    assert!(random.tolerates(1, false));
}

#[test]
fn a_loss_with_a_queue_is_congestion() {
    let mut random = RandomLoss::default();
    acknowledge(&mut random, RTT, Duration::from_millis(26), 200);
    assert!(!random.tolerates(1, false));
}

#[test]
fn a_loss_with_a_queue_of_the_senders_own_is_not() {
    let mut random = RandomLoss::default();
    acknowledge(&mut random, RTT, Duration::from_millis(26), 200);
    assert!(random.tolerates(6, true) && !random.tolerates(1, true));
}

#[test]
fn a_loss_on_a_usual_path_is_congestion() {
    let mut random = RandomLoss::default();
    acknowledge(&mut random, Duration::from_millis(79), Duration::ZERO, 200);
    assert!(!random.tolerates(1, false));
}
