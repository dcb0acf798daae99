mod deadline;
mod loss;

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
fn what_the_window_had_no_room_for_is_not_sent_when_acknowledgements_come() {
    let ordered = |room, later, min_rtt| {
        let (mut tail, mut flow) = (Tail::default(), Flow { room, min_rtt, ..Flow::idle() });
        flow.send(&mut tail, 9, None);
        assert_eq!(flow.repairs(&mut tail), room.min(3));
        (flow.now, flow.room) = (flow.now + later, 1_000);
        flow.repairs(&mut tail)
    };
    let ms = Duration::from_millis;
    assert_eq!(ordered(1, RTT - ms(1), RTT), 4);
    assert_eq!(ordered(1, RTT, RTT), 0, "they tell what is lost");
    assert_eq!(ordered(0, RTT, RTT), 5, "nothing left before");
    assert_eq!(ordered(1, RTT / 8, RTT / 9), 4, "a queue makes them late");
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
    flow.now += RTT / 2;
    assert_eq!(flow.orders(&mut tail), [Order { first: 2, count: 6, repairs: 1 }]);

    flow.send(&mut tail, 8, None);
    flow.orders(&mut tail);
    flow.first_unresolved = flow.end;
    flow.now += RTT / 2;
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
    flow.now += RTT / 2;
    assert_eq!(flow.repairs(&mut tail), 3);
}

#[test]
fn long_tails_get_repairs_for_the_losses_that_are_to_be_expected() {
    let both_halves = |tail: &mut Tail, count: u64| {
        let mut flow = Flow::new();
        flow.idle = true;
        flow.send(tail, count, None);
        let first = flow.repairs(tail);
        flow.now += RTT / 2;
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
