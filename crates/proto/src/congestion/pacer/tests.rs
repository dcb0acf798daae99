use fulmar_base::Rng;

use super::*;

const SIZE: u16 = 1_200;
const PACKET: u64 = 1_200;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Sends as much as the pacer allows for a second, in whole packets, and returns the bytes. A timer rings
/// at the next whole tick, plus up to `lateness` of delay.
fn send_for_a_second(rate: u64, tick: Duration, lateness: Duration) -> u64 {
    let mut rng = Rng::from_u64(rate);
    let start = Instant::from_micros(777);
    let mut pacer = Pacer::new(start, rate, SIZE);
    let (mut now, mut sent) = (start, 0);
    while now < start + Duration::from_secs(1) {
        while pacer.budget(now) >= PACKET {
            pacer.on_sent(now, PACKET);
            sent += PACKET;
        }
        let wanted = pacer.next_time(now, PACKET);
        assert!(wanted > now);
        let ticks = wanted.as_nanos().div_ceil(tick.as_nanos() as u64);
        now = Instant::from_nanos(ticks * tick.as_nanos() as u64);
        now += Duration::from_nanos(rng.below(lateness.as_nanos() as u64 + 1));
    }
    sent
}

fn assert_rate(sent: u64, rate: u64) {
    // The train at the start is extra, and the last wait may reach beyond the second.
    let train = (BURST_PACKETS * PACKET).max(rate / 500);
    let low = rate - rate / 50;
    let high = rate + rate / 50 + train;
    assert!((low..=high).contains(&sent), "{sent} sent at {rate}");
}

#[test]
fn a_timer_of_a_millisecond_keeps_every_rate_within_two_percent() {
    for rate in [125_000, 1_250_000, 12_500_000, 125_000_000, 1_250_000_000] {
        assert_rate(send_for_a_second(rate, Duration::from_millis(1), Duration::ZERO), rate);
    }
}

#[test]
fn late_timers_cost_no_rate() {
    for rate in [1_250_000, 125_000_000] {
        assert_rate(send_for_a_second(rate, Duration::from_millis(1), Duration::from_millis(4)), rate);
    }
}

#[test]
fn after_silence_only_a_train_leaves_at_once() {
    let mut pacer = Pacer::new(at(0), 100_000, SIZE);
    assert_eq!(pacer.budget(at(10_000)), 10 * PACKET);
    let mut fast = Pacer::new(at(0), 1_000_000_000, SIZE);
    assert_eq!(fast.budget(at(10_000)), 2_000_000, "two milliseconds");
}

#[test]
fn while_acknowledgements_are_awaited_little_is_saved_up_and_after_them_a_train() {
    for (rate, saved) in [(100_000, 2 * PACKET), (12_500_000, 12_500), (1_000_000_000, 1_000_000)] {
        let mut pacer = Pacer::new(at(0), rate, SIZE);
        let train = pacer.budget(at(0));
        pacer.on_sent(at(0), train);
        pacer.set_busy(at(0), true);
        assert_eq!(pacer.budget(at(1_000)), saved, "{rate}");
        // The last packet is acknowledged: from then on the rate fills the whole bucket.
        pacer.set_busy(at(1_000), false);
        assert_eq!(pacer.budget(at(1_000)), saved, "{rate}");
        assert_eq!(pacer.budget(at(2_000)), train, "{rate}");
        // What is there already may leave.
        pacer.set_busy(at(2_000), true);
        assert_eq!(pacer.budget(at(2_000)), train, "{rate}");
    }
}

#[test]
fn who_waits_for_the_pacer_is_owed_the_rate_while_acknowledgements_are_awaited_too() {
    let mut pacer = Pacer::new(at(0), 1_250_000, SIZE);
    pacer.set_busy(at(0), true);
    pacer.on_sent(at(0), pacer.clone().budget(at(0)));
    pacer.next_time(at(0), PACKET);
    assert_eq!(pacer.budget(at(100)), 10_000, "eight milliseconds");
}

#[test]
fn wake_ups_are_a_millisecond_apart_at_high_rates() {
    let mut pacer = Pacer::new(at(0), 1_000_000_000, SIZE);
    pacer.on_sent(at(0), pacer.tokens as u64 / NANOS);
    assert_eq!(pacer.next_time(at(0), PACKET), at(1));
    // A slow sender waits for its packet: 1,200 bytes at 100 kB/s.
    let mut pacer = Pacer::new(at(0), 100_000, SIZE);
    pacer.on_sent(at(0), 10 * PACKET);
    assert_eq!(pacer.next_time(at(0), PACKET), at(12));
    assert!(pacer.budget(at(12)) >= PACKET);
}

#[test]
fn a_new_rate_holds_from_its_time_on() {
    let mut pacer = Pacer::new(at(0), 100_000, SIZE);
    pacer.on_sent(at(0), 10 * PACKET);
    pacer.set_rate(at(20), 1_000_000);
    assert_eq!(pacer.budget(at(20)), 2_000);
    assert_eq!(pacer.budget(at(23)), 5_000);
}

#[test]
fn small_steps_lose_no_fraction() {
    let mut pacer = Pacer::new(at(0), 100_001, SIZE);
    pacer.on_sent(at(0), 10 * PACKET);
    let mut now = at(0);
    for _ in 0..10_000 {
        now += Duration::from_micros(7);
        pacer.budget(now);
    }
    assert_eq!(pacer.budget(now), 7_000);
}

#[test]
fn probes_take_a_debt_that_is_paid_back() {
    let mut pacer = Pacer::new(at(0), 120_000, SIZE);
    pacer.on_sent(at(0), 12 * PACKET);
    assert_eq!(pacer.budget(at(20)), 0);
    assert_eq!(pacer.next_time(at(20), PACKET), at(30));
}

#[test]
fn a_window_per_round_trip_and_a_quarter_more() {
    assert_eq!(Pacer::rate_for(100_000, Duration::from_millis(100)), 1_250_000);
    // A loopback link: nothing overflows, and a whole window may leave at once.
    let rate = Pacer::rate_for(10_000_000, Duration::from_micros(20));
    assert_eq!(rate, 625_000_000_000);
    assert!(Pacer::new(at(0), rate, SIZE).budget(at(0)) >= 10_000_000);
    assert!(Pacer::new(at(0), u64::MAX, SIZE).budget(Instant::FAR_FUTURE) >= 10_000_000);
    assert_eq!(Pacer::new(at(0), 0, SIZE).budget(at(1)), 10 * PACKET);
}

#[test]
fn a_controller_may_ask_for_shorter_trains_after_silence() {
    let rate = 12_500_000;
    let mut pacer = Pacer::new(at(1), rate, SIZE);
    pacer.set_burst(at(1), Some(5 * PACKET));
    assert_eq!(pacer.budget(at(1)), 5 * PACKET);
    assert_eq!(pacer.budget(at(1_000)), 5 * PACKET);
    pacer.set_burst(at(1_000), Some(0));
    assert_eq!(pacer.budget(at(1_000)), 2 * PACKET, "two packets are one acknowledgement");
    let sent = (0..100).map(|_| PACKET).sum::<u64>();
    pacer.on_sent(at(1_000), sent);
    // Who waits for the pacer is owed what came together meanwhile.
    pacer.next_time(at(1_000), PACKET);
    assert!(pacer.budget(at(1_014)) > 2 * PACKET);
}

#[test]
fn a_train_leaves_at_once_and_is_paid_for_by_a_pause() {
    let mut pacer = Pacer::new(Instant::ZERO, 1_000_000, 1_000);
    let now = Instant::from_millis(1_000);
    pacer.on_sent(now, pacer.clone().budget(now));
    pacer.lend(now, 100_000, Duration::from_millis(50));
    for _ in 0..100 {
        assert!(pacer.budget(now) >= 1_000);
        pacer.on_sent(now, 1_000);
    }
    // 100 kB at 1 MB/s are a tenth of a second, and the packet that comes next takes a millisecond more.
    assert_eq!(pacer.budget(now), 0);
    assert_eq!(pacer.next_time(now, 1_000), now + Duration::from_millis(101));
    assert_eq!(pacer.budget(now + Duration::from_millis(101)), 1_000);
}

#[test]
fn a_train_that_does_not_leave_in_time_is_no_burst_later() {
    let mut pacer = Pacer::new(Instant::ZERO, 1_000_000, 1_000);
    let now = Instant::from_millis(1_000);
    let burst = pacer.budget(now);
    pacer.lend(now, 100_000, Duration::from_millis(50));
    assert_eq!(pacer.budget(now + Duration::from_millis(49)), burst + 100_000);
    assert_eq!(pacer.budget(now + Duration::from_millis(50)), burst);
    assert_eq!(pacer.budget(now + Duration::from_secs(5)), burst);
}

#[test]
fn what_a_high_rate_has_saved_up_does_not_leave_at_a_low_one() {
    let mut pacer = Pacer::new(Instant::ZERO, 100_000_000, 1_000);
    assert_eq!(pacer.budget(Instant::ZERO), 200_000);
    pacer.set_rate(Instant::ZERO, 10_000);
    assert_eq!(pacer.budget(Instant::ZERO), 10_000);
}

#[test]
fn probes_that_ignore_the_pacer_do_not_silence_it_for_long() {
    let mut pacer = Pacer::new(Instant::ZERO, 24_000, 1_200);
    // Two probes in 40 ms are 60,000 bytes a second.
    for number in 0..1_000 {
        pacer.on_sent(at(number * 40), 2_400);
    }
    let last = at(999 * 40);
    assert_eq!(pacer.budget(last), 0, "they are paid for");
    assert!(pacer.next_time(last, 1_200) <= last + Duration::from_millis(150));
}

/// The packets that leave together each time that a sender is woken in a second, after the first train: the smallest
/// number and the largest.
fn trains(rate: u64) -> (u64, u64) {
    let mut now = at(1);
    let mut pacer = Pacer::new(now, rate, SIZE);
    let mut lengths = Vec::new();
    while now < at(1_001) {
        let length = pacer.budget(now) / PACKET;
        pacer.on_sent(now, length * PACKET);
        lengths.push(length);
        now = pacer.next_time(now, PACKET);
    }
    let steady = &lengths[1..];
    (steady.iter().copied().min().unwrap(), steady.iter().copied().max().unwrap())
}

#[test]
fn trains_are_single_packets_on_slow_links_and_fill_a_send_on_fast_ones() {
    assert_eq!(trains(125_000), (1, 1), "1 Mbit/s");
    assert_eq!(trains(1_200_000), (1, 1), "a packet in a millisecond");
    let (least, most) = trains(12_000_000);
    assert!(least >= 10 && most <= 11, "100 Mbit/s: {least} to {most}");
    // A send with segmentation carries 64 KiB or 64 packets.
    let (least, most) = trains(125_000_000);
    assert!(least >= 54 && most <= 110, "1 Gbit/s: {least} to {most}");
}
