//! Data that is of no use after a deadline.

use super::*;

/// Frames of 20 ms with a deadline of 150 ms, acknowledged after a round trip. Returns the repair symbols for each frame.
fn voice(
    flow: &mut Flow,
    deadline: &mut Deadline,
    frames: u64,
    lost: impl Fn(u64) -> bool,
    feedback: Option<Feedback>,
) -> f64 {
    flow.idle = true;
    let mut repairs = 0;
    for _ in 0..frames {
        flow.send(deadline, 1, Some(Duration::from_millis(150)));
        let now = flow.repairs(deadline);
        if let (Some(feedback), true) = (feedback, now > 0) {
            deadline.on_feedback(feedback);
        }
        repairs += u32::from(now);
        if let Some(done) = flow.end.checked_sub(6) {
            feed(deadline, [lost(done)]);
            flow.first_unresolved = done + 1;
        }
        flow.now += Duration::from_millis(20);
    }
    f64::from(repairs) / frames as f64
}

#[test]
fn deadlines_are_kept_with_at_most_the_overhead_that_is_allowed() {
    let mut deadline = Deadline::new(DeadlineConfig::default());
    let overhead = voice(&mut Flow::new(), &mut deadline, 2000, |i| i % 20 == 0, None);
    // The first repair symbol is given in advance.
    assert!((0.2..=0.251).contains(&overhead), "{overhead}");
    let mut deadline = Deadline::new(DeadlineConfig { target: 0.9, ..DeadlineConfig::default() });
    let overhead = voice(&mut Flow::new(), &mut deadline, 2000, |i| i % 500 == 0, None);
    assert!(overhead < 0.05, "{overhead}");
}

#[test]
fn deadlines_that_leave_time_for_a_retransmission_need_no_repairs() {
    let mut deadline = Deadline::new(DeadlineConfig::default());
    let mut flow = Flow::new();
    flow.send(&mut deadline, 10, Some(RTT * 3));
    assert_eq!(flow.orders(&mut deadline), []);
    flow.send(&mut deadline, 10, None);
    assert_eq!(flow.orders(&mut deadline), []);
    flow.send(&mut deadline, 10, Some(RTT));
    let orders = flow.orders(&mut deadline);
    assert_eq!((orders[0].first, orders[0].count), (20, 10));
}

#[test]
fn a_queue_of_its_own_makes_no_deadline_short() {
    let orders = |min_rtt, repair_time| {
        let (mut deadline, mut flow) = (Deadline::new(DeadlineConfig::default()), Flow::new());
        (flow.min_rtt, flow.repair_time) = (min_rtt, repair_time);
        flow.send(&mut deadline, 4, Some(Duration::from_millis(150)));
        flow.repairs(&mut deadline)
    };
    let ms = Duration::from_millis;
    assert_eq!(orders(ms(40), ms(10)), 0, "without the queue there is time for a retransmission");
    assert_eq!(orders(ms(40), ms(0)), 1, "the queue is that of others");
    assert_eq!(orders(RTT, ms(10)), 1);
}

#[test]
fn what_cannot_arrive_in_time_gets_no_repairs() {
    let mut deadline = Deadline::new(DeadlineConfig::default());
    let mut flow = Flow::new();
    flow.send(&mut deadline, 10, Some(RTT));
    flow.now += RTT / 2;
    assert_eq!(flow.orders(&mut deadline), []);
}

#[test]
fn repairs_that_nobody_needs_end_until_the_next_loss() {
    let mut flow = Flow::new();
    let mut deadline = Deadline::new(DeadlineConfig::default());
    feed(&mut deadline, (0..500).map(|i| i % 20 == 0));
    voice(&mut flow, &mut deadline, 400, |_| false, Some(Feedback::RepairsUnused(1)));
    assert!(deadline.is_off());
    assert_eq!(voice(&mut flow, &mut deadline, 100, |_| false, None), 0.0);
    feed(&mut deadline, [true]);
    assert!(!deadline.is_off());
    assert!(voice(&mut flow, &mut deadline, 100, |_| false, None) > 0.1);
}
