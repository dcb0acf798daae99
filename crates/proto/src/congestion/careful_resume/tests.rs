use std::net::{IpAddr, Ipv4Addr};

use super::*;

const PACKET: u64 = 1_200;
const INITIAL: u64 = 12_000;
const SAVED: u64 = 1_000_000;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn saved() -> SavedPath {
    SavedPath {
        remote: IpAddr::V4(Ipv4Addr::LOCALHOST),
        local: None,
        window: SAVED,
        full: true,
        rtt: Duration::from_millis(100),
        lifetime: Duration::from_secs(60),
    }
}

fn rtt(millis: u64) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(at(0), Duration::from_millis(millis), Duration::ZERO, None);
    rtt
}

/// A flow whose first two packets have arrived over a path of `millis`.
fn reconnoitred(millis: u64) -> CarefulResume {
    let mut resume = CarefulResume::new(saved(), INITIAL);
    for in_flight in [PACKET, 2 * PACKET] {
        assert_eq!(resume.on_sent(at(0), PACKET, in_flight, PACKET), None);
    }
    resume.on_arrived(PACKET, at(0));
    assert_eq!(resume.on_ack(at(millis), at(0), PACKET, &rtt(millis)), None);
    let early = resume.on_blocked(at(millis), INITIAL, INITIAL, &rtt(millis));
    assert_eq!(early, None, "one of the first packets is under way");
    resume.on_arrived(PACKET, at(0));
    assert_eq!(resume.on_ack(at(millis), at(0), 0, &rtt(millis)), None);
    resume
}

/// A flow that has jumped at 100 ms with an initial window in flight.
fn jumped() -> CarefulResume {
    let mut resume = reconnoitred(100);
    let step = resume.on_blocked(at(100), INITIAL, INITIAL, &rtt(100));
    let rtt = Duration::from_millis(100);
    assert_eq!(step, Some(ResumeStep::Jump { window: SAVED / 2, rtt }), "half of what was saved");
    assert_eq!(resume.state(), "unvalidated");
    resume
}

#[test]
fn a_jump_that_arrives_is_over_with_its_last_packet() {
    let mut resume = jumped();
    assert_eq!(resume.on_sent(at(150), PACKET, SAVED / 4, PACKET), None);
    let rest = resume.on_sent(at(180), PACKET, SAVED / 2 - PACKET, PACKET);
    assert_eq!(rest, None, "there is room for another one");
    let step = resume.on_sent(at(190), PACKET, SAVED / 2, PACKET);
    assert_eq!(step, Some(ResumeStep::Settle { window: SAVED / 2 }));
    assert_eq!(resume.state(), "validating");
    assert_eq!(resume.on_ack(at(250), at(150), SAVED / 4, &rtt(100)), None);
    assert!(!resume.is_over());
    let step = resume.on_ack(at(290), at(190), 0, &rtt(100));
    assert_eq!(step, Some(ResumeStep::SlowStartUpTo { ssthresh: SAVED }), "the path was full with that");
    assert!(resume.is_over());
}

#[test]
fn congestion_before_the_jump_prevents_it() {
    let mut resume = reconnoitred(100);
    assert_eq!(resume.on_congestion(), None, "the controller reacts as always");
    assert!(resume.is_over());
    assert_eq!(resume.on_blocked(at(120), INITIAL, INITIAL, &rtt(100)), None);
}

#[test]
fn congestion_after_the_jump_is_a_retreat_to_half_of_what_arrived() {
    for validating in [false, true] {
        let mut resume = jumped();
        resume.on_sent(at(190), PACKET, if validating { SAVED / 2 } else { SAVED / 4 }, PACKET);
        resume.on_arrived(8 * PACKET, at(190));
        let step = resume.on_congestion();
        assert_eq!(step, Some(ResumeStep::Retreat { window: (INITIAL + 8 * PACKET) / 2 }));
        assert_eq!(resume.state(), "safe retreat");
        assert_eq!(resume.on_congestion(), None, "one retreat");
        resume.on_arrived(10 * PACKET, at(190));
        assert_eq!(resume.on_ack(at(280), at(180), 0, &rtt(100)), None);
        let step = resume.on_ack(at(290), at(190), 0, &rtt(100));
        assert_eq!(step, Some(ResumeStep::SlowStartUpTo { ssthresh: (INITIAL + 18 * PACKET) / 2 }));
        assert!(resume.is_over());
    }
}

#[test]
fn losses_by_chance_are_no_reason_to_retreat() {
    let mut resume = jumped();
    assert_eq!(resume.on_losses(true), None);
    assert_eq!(resume.state(), "unvalidated");
    assert!(matches!(resume.on_losses(false), Some(ResumeStep::Retreat { .. })));
    // But before the jump they are one not to jump.
    let mut resume = reconnoitred(100);
    assert_eq!(resume.on_losses(true), None);
    assert!(resume.is_over());
}

#[test]
fn another_round_trip_time_is_another_path() {
    for millis in [20, 50, 1_000, 3_000] {
        let mut resume = CarefulResume::new(saved(), INITIAL);
        resume.on_sent(at(0), PACKET, PACKET, PACKET);
        resume.on_arrived(PACKET, at(0));
        assert_eq!(resume.on_ack(at(millis), at(0), 0, &rtt(millis)), None);
        assert!(resume.is_over(), "{millis} ms instead of 100");
    }
    for millis in [51, 100, 999] {
        assert!(!reconnoitred(millis).is_over());
    }
}

#[test]
fn what_the_application_does_not_use_is_not_kept() {
    let mut resume = jumped();
    // Nothing more to send, and the first packet after the jump is acknowledged.
    resume.on_sent(at(110), PACKET, INITIAL + PACKET, PACKET);
    resume.on_arrived(INITIAL, at(110));
    let step = resume.on_ack(at(210), at(110), PACKET, &rtt(100));
    assert_eq!(
        step,
        Some(ResumeStep::Settle { window: 2 * INITIAL }),
        "what was in flight, and what arrived"
    );
    assert!(resume.is_over());
}

#[test]
fn a_jump_lasts_a_round_trip_at_most() {
    let mut resume = jumped();
    resume.on_sent(at(150), PACKET, SAVED / 4, PACKET);
    assert_eq!(resume.on_ack(at(190), at(90), SAVED / 4, &rtt(100)), None);
    let step = resume.on_ack(at(201), at(99), SAVED / 4, &rtt(100));
    assert_eq!(step, Some(ResumeStep::Settle { window: SAVED / 4 }));
    assert_eq!(resume.state(), "validating");
}

#[test]
fn a_jump_of_an_initial_window_at_least_was_needed() {
    for (in_flight, window, state) in [(INITIAL - 1, INITIAL, "normal"), (INITIAL, INITIAL, "validating")] {
        // The window was used but for less than a packet when the flow jumped.
        let mut resume = reconnoitred(100);
        assert!(resume.on_blocked(at(100), INITIAL - PACKET + 1, INITIAL, &rtt(100)).is_some());
        let step = resume.on_ack(at(201), at(99), in_flight, &rtt(100));
        assert_eq!(step, Some(ResumeStep::Settle { window }), "{in_flight}");
        assert_eq!((resume.state(), resume.is_over()), (state, state == "normal"), "{in_flight}");
    }
}

#[test]
fn a_window_that_is_larger_already_needs_no_jump() {
    let mut resume = reconnoitred(100);
    assert_eq!(resume.on_blocked(at(100), SAVED, SAVED, &rtt(100)), None);
    assert!(resume.is_over());
}
