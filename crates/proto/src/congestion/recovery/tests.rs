use super::*;

/// A window that each reaction halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window(u64);

impl Before for Window {
    fn window(&self) -> u64 {
        self.0
    }
}

impl Recovery<Window> {
    fn arrives(&mut self, bytes: u64, sent_time: Instant) -> Option<u64> {
        self.on_spurious(&SpuriousLoss { bytes, sent_time, dropped_for_mark: false }, |before| {
            Window(before.0 / 2)
        })
        .map(|undone| undone.state.0)
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Reactions to the loss of 1,000 bytes each, 10 ms after they left.
fn reactions(windows: &[(u64, u64)]) -> Recovery<Window> {
    let mut recovery = Recovery::default();
    for &(sent, window) in windows {
        recovery.on_lost(1_000, at(sent));
        recovery.enter(at(sent + 10), Window(window));
        recovery.end_losses();
    }
    recovery
}

#[test]
fn a_period_covers_what_left_before_it() {
    let mut recovery = Recovery::default();
    assert!(!recovery.covers(at(0)));
    recovery.enter(at(10), ());
    assert!(recovery.covers(at(10)) && !recovery.covers(at(11)));
}

#[test]
fn the_reaction_is_undone_when_the_last_lost_byte_arrives() {
    let mut recovery = reactions(&[(0, 100)]);
    recovery.on_lost(500, at(6));
    assert_eq!(recovery.arrives(1_000, at(5)), None);
    assert_eq!(recovery.arrives(500, at(6)), Some(100));
    assert_eq!(recovery.arrives(500, at(6)), None, "only once");
}

#[test]
fn a_loss_that_was_no_reason_to_react_undoes_nothing() {
    let mut recovery = reactions(&[(0, 100)]);
    recovery.on_lost(1_000, at(15));
    recovery.end_losses();
    assert_eq!(recovery.arrives(1_000, at(15)), None);
    recovery.on_lost(1_000, at(25));
    recovery.enter(at(30), Window(60));
    assert_eq!(recovery.arrives(1_000, at(15)), None, "it left before the cause of the second one");
    assert_eq!(recovery.arrives(1_000, at(25)), Some(60));
}

#[test]
fn a_loss_counts_for_the_reaction_that_it_has_caused() {
    let mut recovery = reactions(&[(0, 100), (20, 60)]);
    assert_eq!(recovery.arrives(1_000, at(20)), Some(60));
    assert_eq!(recovery.arrives(1_000, at(0)), Some(100));
}

/// Without the first one the second would have halved 100, and left 50 where it has left 30.
#[test]
fn what_followed_a_reaction_without_cause_had_more_to_reduce() {
    let mut recovery = reactions(&[(0, 100), (20, 60), (40, 40)]);
    assert_eq!(recovery.arrives(1_000, at(0)), Some(25), "twice half of 100");
    assert_eq!(recovery.arrives(1_000, at(20)), Some(50));
    assert_eq!(recovery.arrives(1_000, at(40)), Some(100));
}

#[test]
fn a_window_that_has_grown_back_before_the_next_reaction_is_what_that_one_has_halved() {
    let mut recovery = reactions(&[(0, 100), (20, 120)]);
    assert_eq!(recovery.arrives(1_000, at(0)), Some(60));
    assert_eq!(recovery.arrives(1_000, at(20)), Some(120));
}

#[test]
fn of_many_reactions_the_oldest_become_final() {
    let windows: Vec<_> = (0..9).map(|number| (20 * number, 100)).collect();
    let mut recovery = reactions(&windows);
    assert_eq!(recovery.arrives(1_000, at(0)), None);
    assert_eq!(recovery.arrives(1_000, at(20)), Some(50));
}

#[test]
fn a_reaction_is_the_latest_when_no_later_one_stands() {
    let mut recovery = reactions(&[(0, 100), (20, 60), (40, 40)]);
    let mut is_latest = |sent_time| {
        let spurious = SpuriousLoss { bytes: 1_000, sent_time, dropped_for_mark: false };
        recovery.on_spurious(&spurious, |_| Window(0)).unwrap().is_latest
    };
    assert!(!is_latest(at(0)) && is_latest(at(40)) && is_latest(at(20)));
}

#[test]
fn a_period_that_takes_more_into_account_can_be_undone() {
    let mut recovery = reactions(&[(0, 100)]);
    recovery.extend(at(15));
    assert!(recovery.covers(at(15)));
    recovery.on_lost(1_000, at(14));
    assert_eq!(recovery.arrives(1_000, at(0)), None);
    let spurious = SpuriousLoss { bytes: 1_000, sent_time: at(14), dropped_for_mark: false };
    assert!(recovery.on_spurious(&spurious, |_| Window(0)).unwrap().is_latest);
}

#[test]
fn a_final_reaction_stays() {
    let mut recovery = reactions(&[(0, 100), (20, 60)]);
    recovery.make_final();
    assert_eq!((recovery.arrives(1_000, at(0)), recovery.arrives(1_000, at(20))), (None, None));
    recovery.on_lost(1_000, at(25));
    assert_eq!(recovery.arrives(1_000, at(25)), None);
}

#[test]
fn a_released_period_lets_the_window_grow_but_causes_no_second_reaction() {
    let mut recovery = Recovery::default();
    recovery.enter(at(10), ());
    assert!(recovery.holds(at(5)));
    recovery.release();
    assert!(!recovery.holds(at(5)) && recovery.covers(at(5)));
    recovery.enter(at(20), ());
    assert!(recovery.holds(at(15)));
}

#[test]
fn a_reaction_to_no_loss_is_not_undone() {
    let mut recovery = Recovery::default();
    recovery.enter(at(10), Window(100));
    assert_eq!(recovery.arrives(1_000, at(5)), None, "marks of the network caused it");
}

#[test]
fn what_was_lost_before_a_reaction_is_its_cause_in_whatever_order_it_was_found() {
    for order in [[0, 5], [5, 0]] {
        let mut recovery = Recovery::default();
        order.into_iter().for_each(|sent| recovery.on_lost(1_000, at(sent)));
        recovery.enter(at(20), Window(100));
        assert_eq!(recovery.arrives(1_000, at(0)), None);
        assert_eq!(recovery.arrives(1_000, at(5)), Some(100));
    }
}
