use super::*;

const BUSY_POLL: Duration = Duration::from_micros(50);

fn handle(number: usize) -> ConnectionHandle {
    ConnectionHandle(number)
}

/// A conversation and its clock.
struct Talk {
    conversation: Conversation,
    now: Instant,
}

impl Talk {
    fn new() -> Self {
        Self { conversation: Conversation::new(BUSY_POLL), now: Instant::ZERO }
    }

    /// Waits for so long for a datagram of a connection. Returns for how long the worker kept looking.
    fn wait(&mut self, micros: u64, partner: usize) -> u64 {
        let mut looked = 0;
        while looked < micros && self.conversation.keeps_looking(self.now) {
            looked += 1;
            self.now += Duration::from_micros(1);
        }
        self.now += Duration::from_micros(micros - looked);
        self.conversation.on_received(self.now, true);
        self.conversation.on_delivered(handle(partner));
        looked
    }

    fn looked(&mut self, waits: u32, micros: u64) -> u64 {
        (0..waits).map(|_| self.wait(micros, 0)).sum()
    }
}

#[test]
fn after_some_short_waits_the_worker_keeps_looking() {
    let mut talk = Talk::new();
    assert_eq!(talk.looked(SHORT_WAITS_MIN + 1, 20), 0);
    assert_eq!(talk.looked(1_000, 20), 20_000);
}

#[test]
fn a_network_with_longer_round_trips_is_slept_for() {
    let mut talk = Talk::new();
    assert_eq!(talk.looked(10_000, 60), 0);
}

#[test]
fn several_connections_make_no_conversation_to_look_for() {
    let mut talk = Talk::new();
    let looked: u64 = (0..10_000).map(|turn| talk.wait(20, turn % 2)).sum();
    assert_eq!(looked, 0);
}

#[test]
fn looking_in_vain_costs_ever_less() {
    let mut talk = Talk::new();
    // Both ends on one processor: while this one keeps looking, the other one cannot answer.
    let looked: u64 = (0..100_000)
        .map(|_| {
            let answers_after = if talk.conversation.looks() { 80 } else { 20 };
            talk.wait(answers_after, 0)
        })
        .sum();
    assert!(looked < 100_000 * 20 / 200, "{looked} us");
}

#[test]
fn what_is_to_be_done_in_between_is_no_wait() {
    let mut talk = Talk::new();
    talk.looked(100, 20);
    for _ in 0..100 {
        // The application answers after a while, long after the worker went to sleep.
        assert!(talk.conversation.keeps_looking(talk.now), "it looks first");
        talk.now += Duration::from_micros(1);
        talk.conversation.on_work();
        assert_eq!(talk.wait(20, 0), 20);
    }
}

#[test]
fn more_than_one_datagram_at_a_time_ends_the_conversation() {
    let mut talk = Talk::new();
    talk.looked(100, 20);
    talk.conversation.on_sent(false);
    assert!(!talk.conversation.is_on());
    assert_eq!(talk.looked(TURNS - 1, 20), 0);
    assert!(talk.looked(2, 20) > 0);
    talk.conversation.on_received(talk.now, false);
    assert!(!talk.conversation.is_on());
}

#[test]
fn without_time_to_look_the_worker_always_sleeps() {
    let mut talk = Talk { conversation: Conversation::new(Duration::ZERO), now: Instant::ZERO };
    assert_eq!(talk.looked(10_000, 1), 0);
}
