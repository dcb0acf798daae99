use super::*;

const LOOK_MAX: Duration = Duration::from_micros(100);
const LARGE: usize = 60_000;
/// Microseconds until a worker that sleeps runs again.
const WAKING: u64 = 15;

/// A worker that waits for datagrams, and its clock.
struct Waiting {
    busy_poll: BusyPoll,
    now: Instant,
    partner: usize,
    /// What is received, and sent, after each wait.
    bytes: usize,
}

impl Waiting {
    fn new() -> Self {
        Self { busy_poll: BusyPoll::new(LOOK_MAX), now: Instant::ZERO, partner: 0, bytes: 1_200 }
    }

    /// Waits for so many microseconds, and some more if it sleeps. Returns for how long the worker kept looking.
    fn wait(&mut self, micros: u64) -> u64 {
        let mut looked = 0;
        let looks = self.looks();
        while self.busy_poll.keeps_looking(self.now) && looked < micros {
            looked += 1;
            self.now += Duration::from_micros(1);
        }
        let asleep = if looks && looked == micros { 0 } else { WAKING + micros - looked };
        self.now += Duration::from_micros(asleep);
        self.busy_poll.on_received(self.now, self.bytes);
        self.busy_poll.on_delivered(ConnectionHandle(self.partner));
        self.busy_poll.on_sent(self.bytes);
        looked
    }

    fn waits(&mut self, count: u32, micros: u64) -> u64 {
        (0..count).map(|_| self.wait(micros)).sum()
    }

    fn looks(&self) -> bool {
        self.busy_poll.credit.is_some()
    }

    /// The part of the time that went into looking, where waits depend on whether the worker looks.
    fn share(&mut self, count: u32, mut micros: impl FnMut(u32, bool) -> u64) -> f64 {
        let began = self.now;
        let looked: u64 = (0..count)
            .map(|turn| {
                let micros = micros(turn, self.looks());
                self.wait(micros)
            })
            .sum();
        looked as f64 / self.now.saturating_since(began).as_micros() as f64
    }
}

#[test]
fn after_some_short_waits_the_worker_keeps_looking() {
    let mut waiting = Waiting::new();
    assert_eq!(waiting.waits(WAITS_MIN + 1, 20), 0);
    assert_eq!(waiting.waits(1_000, 20), 20_000);
}

#[test]
fn waits_that_are_long_because_both_ends_sleep_become_short() {
    let mut waiting = Waiting::new();
    // At first the other end sleeps, too.
    let mut tries = 0;
    let share = waiting.share(1_000, |_, looks| {
        tries += u32::from(looks);
        match looks {
            false => 130,
            true if tries < 10 => 70,
            true => 20,
        }
    });
    assert!(share > 0.8, "{share}");
}

#[test]
fn a_network_with_longer_round_trips_is_slept_for() {
    for micros in [60, 90, 120, 500] {
        let share = Waiting::new().share(200_000, |_, _| micros);
        assert!(share < 0.02, "{micros} us: {share}");
    }
    assert_eq!(Waiting::new().waits(100_000, 1_100), 0);
}

#[test]
fn bulk_is_slept_for() {
    let mut waiting = Waiting { bytes: LARGE, ..Waiting::new() };
    assert!(waiting.share(200_000, |_, _| 20) < 0.02);
    waiting.bytes = 1_200;
    assert!(waiting.share(200_000, |_, _| 20) > 0.8, "what is small again is looked for");
}

#[test]
fn several_connections_are_slept_for() {
    let mut waiting = Waiting::new();
    let looked: u64 = (0..10_000)
        .map(|turn| {
            waiting.partner = turn % 2;
            waiting.wait(20)
        })
        .sum();
    assert_eq!(looked, 0);
}

#[test]
fn looking_in_vain_costs_little_with_both_ends_on_one_processor() {
    // While this end looks, the other one cannot answer, unless it ran before this one began to wait.
    let share = Waiting::new().share(500_000, |turn, looks| match (looks, turn % 5) {
        (false, _) => 0,
        (true, 0) => 150,
        (true, _) => 0,
    });
    assert!(share < 0.05, "{share}");
    // Or it comes to it in the middle.
    let share = Waiting::new().share(500_000, |_, looks| if looks { 35 } else { 0 });
    assert!(share < 0.05, "{share}");
}

#[test]
fn what_is_to_be_done_in_between_is_no_wait() {
    let mut waiting = Waiting::new();
    waiting.waits(100, 20);
    for _ in 0..1_000 {
        // The application answers long after the worker went to sleep.
        assert!(waiting.busy_poll.keeps_looking(waiting.now), "it looks first");
        waiting.now += Duration::from_micros(1);
        waiting.busy_poll.on_work();
        assert_eq!(waiting.wait(20), 20);
    }
}

#[test]
fn without_time_to_look_the_worker_always_sleeps() {
    let mut waiting = Waiting { busy_poll: BusyPoll::new(Duration::ZERO), ..Waiting::new() };
    assert_eq!(waiting.waits(10_000, 1), 0);
    assert_eq!(waiting.waits(10_000, 0), 0);
}

#[test]
fn a_look_may_be_as_long_as_a_duration_can_be() {
    let mut waiting = Waiting { busy_poll: BusyPoll::new(Duration::MAX), ..Waiting::new() };
    assert_eq!(waiting.waits(WAITS_MIN + 1, 20), 0);
    assert_eq!(waiting.waits(1_000, 20), 20_000);
}
