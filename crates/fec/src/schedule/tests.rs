use super::*;

const RTT: Duration = Duration::from_millis(100);

/// A sender of which nothing is acknowledged but what a test says.
struct Flow {
    now: Instant,
    first_unresolved: u64,
    end: u64,
    idle: bool,
    /// What the path is like.
    smoothed_rtt: Duration,
    min_rtt: Duration,
    repair_time: Duration,
    room: u16,
}

impl Flow {
    fn new() -> Self {
        Self {
            now: Instant::from_millis(1000),
            first_unresolved: 0,
            end: 0,
            idle: false,
            smoothed_rtt: RTT,
            min_rtt: RTT,
            repair_time: Duration::ZERO,
            room: 1_000,
        }
    }

    /// One that has nothing else to send.
    fn idle() -> Self {
        Self { idle: true, ..Self::new() }
    }

    fn send(&mut self, scheduler: &mut dyn Scheduler, count: u64, deadline: Option<Duration>) {
        for _ in 0..count {
            scheduler.on_source(self.end, self.now, deadline.map(|deadline| self.now + deadline));
            self.end += 1;
        }
    }

    /// All orders that are given now.
    fn orders(&self, scheduler: &mut dyn Scheduler) -> Vec<Order> {
        let situation = Situation {
            now: self.now,
            first_unresolved: self.first_unresolved,
            end: self.end,
            unresolved: (self.end - self.first_unresolved) as u16,
            idle: self.idle,
            smoothed_rtt: self.smoothed_rtt,
            min_rtt: self.min_rtt,
            repair_time: self.repair_time,
            room: self.room,
        };
        std::iter::from_fn(|| scheduler.next_order(&situation)).take(100).collect()
    }

    fn repairs(&self, scheduler: &mut dyn Scheduler) -> u16 {
        self.orders(scheduler).iter().map(|order| order.repairs).sum()
    }
}

fn feed(scheduler: &mut dyn Scheduler, pattern: impl IntoIterator<Item = bool>) {
    for lost in pattern {
        scheduler.on_feedback(if lost { Feedback::Lost } else { Feedback::Delivered });
    }
}

#[test]
fn no_repairs_are_none() {
    let mut flow = Flow::new();
    flow.send(&mut NoRepairs, 10, None);
    flow.idle = true;
    assert_eq!(flow.orders(&mut NoRepairs), []);
}

#[test]
fn a_constant_rate_covers_whole_blocks() {
    let mut constant = Constant::new(20, 10);
    let mut flow = Flow::new();
    flow.send(&mut constant, 19, None);
    flow.idle = true;
    assert_eq!(flow.orders(&mut constant), [], "a block that is not full gets nothing");
    flow.send(&mut constant, 26, None);
    let order = |first| Order { first, count: 20, repairs: 10 };
    assert_eq!(flow.orders(&mut constant), [order(0), order(20)]);
    assert_eq!(flow.orders(&mut constant), []);
    assert_eq!(constant.first_needed(), Some(40), "of the block that is not full");
    // Of blocks whose symbols are not kept any more there is nothing to make.
    flow.send(&mut constant, 300, None);
    assert_eq!(flow.orders(&mut constant).first(), Some(&order(100)));
}

#[test]
fn blocks_without_symbols_of_its_own_get_no_constant_rate() {
    let mut constant = Constant::new(20, 10);
    let mut flow = Flow::new();
    flow.end = 390;
    assert_eq!(flow.orders(&mut constant), []);
    flow.send(&mut constant, 1, None);
    assert_eq!(flow.orders(&mut constant), [], "blocks of others came before");
    flow.end += 100;
    assert_eq!(flow.orders(&mut constant), [Order { first: 380, count: 20, repairs: 10 }]);
}

#[test]
fn a_tail_ends_with_its_last_symbol_of_its_own() {
    let mut tail = Tail::default();
    let mut flow = Flow::idle();
    flow.end = 3;
    assert_eq!(flow.orders(&mut tail), [], "nothing is its own");
    flow.send(&mut tail, 4, None);
    flow.end += 10;
    assert_eq!(flow.orders(&mut tail), [Order { first: 0, count: 7, repairs: 3 }]);
    flow.end += 10;
    assert_eq!(flow.orders(&mut tail), [], "what follows is not");
    flow.now += RTT / 8;
    assert_eq!(flow.orders(&mut tail), [Order { first: 0, count: 7, repairs: 2 }]);
    // All of its own have arrived.
    flow.send(&mut tail, 1, None);
    flow.first_unresolved = flow.end;
    flow.end += 10;
    assert_eq!(flow.orders(&mut tail), []);
}

#[test]
fn a_tail_is_repaired_when_nothing_else_is_to_be_sent_in_two_halves() {
    let mut tail = Tail::default();
    let mut flow = Flow::new();
    flow.send(&mut tail, 8, None);
    assert_eq!(flow.orders(&mut tail), [], "there is more to send");
    flow.idle = true;
    // Five of eight: three now, two an eighth of the round-trip time later.
    assert_eq!(flow.orders(&mut tail), [Order { first: 0, count: 8, repairs: 3 }]);
    assert_eq!(tail.wake_up(), Some(flow.now + RTT / 8));
    assert_eq!(flow.orders(&mut tail), []);
    flow.now += RTT / 8;
    assert_eq!(flow.orders(&mut tail), [Order { first: 0, count: 8, repairs: 2 }]);
    assert_eq!(tail.wake_up(), None);
    assert_eq!(flow.orders(&mut tail), []);
}

#[test]
fn the_second_half_is_for_what_is_still_open() {
    let mut tail = Tail::default();
    let mut flow = Flow::idle();
    flow.send(&mut tail, 8, None);
    flow.orders(&mut tail);
    // Four would do for six of them, and three are in flight.
    flow.first_unresolved = 2;
    flow.now += RTT;
    assert_eq!(flow.orders(&mut tail), [Order { first: 2, count: 6, repairs: 1 }]);

    flow.send(&mut tail, 8, None);
    flow.orders(&mut tail);
    flow.first_unresolved = flow.end;
    flow.now += RTT;
    assert_eq!(flow.orders(&mut tail), []);
    assert_eq!(tail.wake_up(), None);
}

#[test]
fn repairs_in_flight_count_for_what_is_sent_after_a_tail_and_its_second_half_keeps_its_time() {
    let mut tail = Tail::default();
    let mut flow = Flow::idle();
    flow.send(&mut tail, 4, None);
    assert_eq!(flow.orders(&mut tail), [Order { first: 0, count: 4, repairs: 2 }]);
    let second = tail.wake_up().unwrap();
    flow.now += Duration::from_millis(1);
    flow.send(&mut tail, 1, None);
    assert_eq!(flow.orders(&mut tail), [], "three are enough for five");
    assert_eq!(tail.wake_up(), Some(second));
    flow.now = second;
    assert_eq!(flow.orders(&mut tail), [Order { first: 0, count: 5, repairs: 1 }]);
}

#[test]
fn a_stream_of_small_writes_gets_as_many_repairs_as_one_tail_of_them() {
    let mut tail = Tail::default();
    let mut flow = Flow::idle();
    let mut repairs = 0;
    for write in 0..10u64 {
        flow.send(&mut tail, 1, None);
        // Five of them are in a round trip of 100 ms.
        flow.first_unresolved = write.saturating_sub(4);
        for _ in 0..4 {
            repairs += flow.repairs(&mut tail);
            flow.now += Duration::from_millis(5);
        }
    }
    assert!((6..=9).contains(&repairs), "{repairs}: three for five, and then 0.6 of each");
}

#[test]
fn repairs_take_no_longer_on_the_wire_than_what_they_may_save() {
    let repairs = |flow: Flow| {
        let (mut flow, mut tail) = (Flow { idle: true, ..flow }, Tail::default());
        flow.send(&mut tail, 12, None);
        flow.repairs(&mut tail)
    };
    let ms = Duration::from_millis;
    assert_eq!(repairs(Flow { repair_time: ms(10), min_rtt: ms(20), ..Flow::new() }), 0, "1 Mbit/s, 20 ms");
    assert_eq!(repairs(Flow { repair_time: ms(10), min_rtt: ms(60), ..Flow::new() }), 0, "1 Mbit/s, 60 ms");
    let long = Flow { repair_time: ms(10), min_rtt: ms(200), ..Flow::new() };
    assert_eq!(repairs(long), 1, "one in nine tails loses something");
    let fast = Flow { repair_time: Duration::from_micros(200), ..Flow::new() };
    assert_eq!((repairs(fast), repairs(Flow::new())), (3, 3), "50 Mbit/s, 100 ms");
    assert_eq!(repairs(Flow { room: 2, ..Flow::new() }), 2, "what the window has no room for");
}

#[test]
fn a_path_that_loses_nothing_gets_few_repairs_and_a_lossy_one_gets_clean_again() {
    let mut tail = Tail::default();
    let mut flow = Flow::idle();
    let mut writes = |tail: &mut Tail, count: u64, is_lost: fn(u64) -> bool| {
        let mut repairs = 0;
        for write in 0..count {
            flow.send(tail, 1, None);
            repairs += u32::from(flow.repairs(tail));
            feed(tail, [is_lost(write)]);
            flow.first_unresolved = flow.end;
        }
        repairs
    };
    let first = writes(&mut tail, 2_000, |_| false);
    assert!((16..=50).contains(&first), "{first}");
    assert!(writes(&mut tail, 1_000, |write| write % 10 == 0) > 100);
    writes(&mut tail, 4_000, |_| false);
    let clean = writes(&mut tail, 2_000, |_| false);
    assert!(clean < 20, "{clean}");
}

#[test]
fn fewer_repairs_than_losses_are_to_be_expected_repair_nothing() {
    let mut tail = Tail::default();
    feed(&mut tail, (0..20_000).map(|i| i % 5 == 4));
    let mut flow = Flow::idle();
    flow.send(&mut tail, 250, None);
    assert_eq!(flow.orders(&mut tail), [], "50 are lost, and 48 are all that was saved up");
    let mut flow = Flow { first_unresolved: 250, end: 250, ..flow };
    flow.send(&mut tail, 50, None);
    assert_eq!(flow.repairs(&mut tail), 10, "the first half of 10 and three times their root");
}

#[test]
fn repairs_that_went_behind_data_are_ordered_again() {
    let mut tail = Tail::default();
    let mut flow = Flow::idle();
    flow.send(&mut tail, 8, None);
    assert_eq!(flow.repairs(&mut tail), 3);
    tail.on_feedback(Feedback::RepairsDropped(3));
    flow.send(&mut tail, 1, None);
    // Five in all, of which two wait for their time.
    assert_eq!(flow.repairs(&mut tail), 2);
    flow.now += RTT;
    assert_eq!(flow.repairs(&mut tail), 3);
}

#[test]
fn long_tails_get_repairs_for_the_losses_that_are_to_be_expected() {
    let both_halves = |tail: &mut Tail, count: u64| {
        let mut flow = Flow::new();
        flow.idle = true;
        flow.send(tail, count, None);
        let first = flow.repairs(tail);
        flow.now += RTT;
        first + flow.repairs(tail)
    };
    // Nothing is known.
    for (count, repairs) in [(1, 1), (4, 3), (8, 5), (11, 5), (12, 5), (100, 5)] {
        assert_eq!(both_halves(&mut Tail::default(), count), repairs, "{count}");
    }
    // One in ten is lost: of 100 ten and three times the root of ten.
    let mut tail = Tail::default();
    feed(&mut tail, (0..20_000).map(|i| i % 10 == 9));
    let repairs = both_halves(&mut tail.clone(), 100);
    assert!((19..=21).contains(&repairs), "{repairs}");
    assert_eq!(both_halves(&mut tail, 24), 8);
}

#[test]
fn an_order_has_no_symbols_that_are_not_kept_any_more() {
    let mut tail = Tail::default();
    let mut flow = Flow::idle();
    flow.send(&mut tail, 1000, None);
    let orders = flow.orders(&mut tail);
    assert_eq!((orders[0].first, orders[0].count), (744, 256));
}

#[test]
fn the_estimate_finds_the_rate_and_the_bursts() {
    let mut independent = LossEstimate::default();
    let mut bursts = LossEstimate::default();
    assert!((independent.loss_rate() - 0.01).abs() < 0.001);
    for i in 0..40_000u64 {
        // Without a pattern that repeats soon.
        let number = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        independent.note(number % 20 == 0);
        bursts.note(i % 80 < 4);
    }
    assert!((independent.loss_rate() - 0.05).abs() < 0.015, "{}", independent.loss_rate());
    assert!(independent.burst_length() < 1.3, "{}", independent.burst_length());
    assert!((bursts.loss_rate() - 0.05).abs() < 0.015, "{}", bursts.loss_rate());
    assert!((3.0..5.0).contains(&bursts.burst_length()), "{}", bursts.burst_length());
    assert_eq!((bursts.seen(), bursts.lost()), (40_000, 2000));
}

#[test]
fn a_loss_that_was_none_does_not_count() {
    let (mut estimate, mut without) = (LossEstimate::default(), LossEstimate::default());
    (0..1_000).for_each(|_| without.note(false));
    for i in 0..1_000 {
        estimate.note(i % 10 == 0);
        if i % 10 == 3 {
            estimate.excuse();
        }
    }
    assert!(estimate.loss_rate() < without.loss_rate() + 0.001, "{}", estimate.loss_rate());
    assert_eq!(estimate.lost(), 0);
    LossEstimate::default().excuse();
}

#[test]
fn the_longer_the_tail_the_likelier_is_a_loss() {
    let estimate = LossEstimate::default();
    let any = [0, 1, 10, 256].map(|symbols| (estimate.any_lost(symbols) * 1e3).round());
    // As many times one in 101, and one in 100 for the first.
    assert_eq!(any, [0.0, 10.0, 95.0, 922.0]);
}

#[test]
fn bursts_and_high_targets_need_more_repairs() {
    let estimate = |pattern: fn(u64) -> bool| {
        let mut estimate = LossEstimate::default();
        (0..40_000).for_each(|i| estimate.note(pattern(i)));
        estimate
    };
    let clean = estimate(|_| false);
    let single = estimate(|i| i % 80 == 0);
    let bursts = estimate(|i| i % 320 < 4);
    assert_eq!(clean.repairs_for(10, 0.99, 16), 0);
    assert_eq!(single.repairs_for(10, 0.5, 16), 0);
    assert_eq!(single.repairs_for(10, 0.99, 16), 1);
    assert!(bursts.repairs_for(10, 0.99, 16) > 2);
    assert!(single.repairs_for(10, 0.9999, 16) > single.repairs_for(10, 0.99, 16));
    assert_eq!(bursts.repairs_for(200, 1.0, 16), 16);
    assert_eq!(bursts.repairs_for(200, 1.0, 0), 0);
}

#[test]
fn the_number_of_repairs_is_that_of_the_binomial_distribution_when_losses_come_alone() {
    let mut estimate = LossEstimate::default();
    // One in four, whatever came before: 0001 and 1000 and all others as often as chance has them.
    let mut state = 1u64;
    for _ in 0..100_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        estimate.note(state >> 62 == 0);
    }
    let p = estimate.loss_rate();
    // The probability that of n symbols at most k are lost.
    let at_most = |n: u32, k: u32| {
        let choose = |k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
        (0..=k).map(|i| choose(i) * p.powi(i as i32) * (1.0 - p).powi((n - i) as i32)).sum::<f64>()
    };
    let expected = (0..30).find(|r| at_most(10 + r, *r) >= 0.99).unwrap();
    let repairs = u32::from(estimate.repairs_for(10, 0.99, 30));
    assert!(repairs.abs_diff(expected) <= 1, "{repairs} instead of {expected}");
}

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
