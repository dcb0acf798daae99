use fulmar_fec::schedule::Order;

use super::*;
use crate::packet::SentFrame;

const PATIENCE: Duration = Duration::from_millis(100);
const OTHER: PathId = PathId(1);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn push(sent: &mut SentSymbols, count: usize) {
    for _ in 0..count {
        sent.push(at(0), PathId::ZERO, [SentFrame::MaxPathId].into_iter().collect(), 0);
    }
}

/// So many symbols, all of which so many repair symbols cover, that left at once.
fn covered(symbols: u16, repairs: u16) -> SentSymbols {
    let mut sent = SentSymbols::default();
    push(&mut sent, symbols.into());
    (0..repairs).for_each(|_| sent.cover(at(0), 0, symbols, PATIENCE));
    sent
}

/// With such losses, and nothing that may be sent in place of copies.
fn odds(loss_rate: f64) -> Option<Odds> {
    Some(Odds { loss_rate, may_complete: false })
}

/// Whether the frames of a symbol whose packet is lost are held back, at this rate of losses.
fn is_held(sent: &mut SentSymbols, ms: u64, id: u32, rate: f64) -> bool {
    let (loss, is_first) = sent.on_lost(at(ms), SymbolId(id), PATIENCE, odds(rate)).unwrap();
    assert!(is_first);
    !loss.resend
}

#[test]
fn the_first_verdict_on_a_symbol_counts() {
    let mut sent = covered(4, 1);
    assert!(sent.on_acked(SymbolId(0)) && !sent.on_acked(SymbolId(0)));
    assert!(is_held(&mut sent, 1, 1, 0.0));
    assert!(!sent.on_acked(SymbolId(1)), "it was lost");
    assert!(!sent.on_acked(SymbolId(4)), "it was not sent");
    assert_eq!(sent.unresolved(), 2);
    let (loss, is_first) = sent.on_lost(at(1), SymbolId(0), PATIENCE, odds(0.0)).unwrap();
    assert!(!loss.resend && !is_first, "it has arrived");
    assert!(sent.on_lost(at(1), SymbolId(4), PATIENCE, odds(0.0)).is_none());
}

#[test]
fn the_first_in_flight_is_found_behind_what_has_arrived_or_is_lost() {
    let mut sent = covered(2, 1);
    sent.push(at(0), OTHER, SentFrames::new(), 0);
    assert_eq!(sent.first_in_flight(), Some((0, PathId::ZERO)));
    sent.on_acked(SymbolId(0));
    sent.forget_resolved(0);
    assert_eq!(sent.first_in_flight(), Some((1, PathId::ZERO)));
    assert!(is_held(&mut sent, 1, 1, 0.0));
    assert_eq!(sent.first_in_flight(), Some((2, OTHER)));
    sent.on_acked(SymbolId(2));
    assert_eq!((sent.first_in_flight(), sent.end()), (None, 3));
}

#[test]
fn a_symbol_is_held_back_if_repairs_suffice_for_the_losses_that_are_to_be_expected() {
    // Seven other symbols and two repair symbols are in flight: of these 9, one is lost or two.
    assert!(is_held(&mut covered(8, 2), 1, 3, 0.16));
    assert!(!is_held(&mut covered(8, 2), 1, 3, 0.17));
    // One is known to be lost, so that of 8 none may be.
    let mut sent = covered(8, 2);
    assert!(is_held(&mut sent, 1, 3, 0.0) && is_held(&mut sent, 1, 4, 0.06));
    let mut sent = covered(8, 2);
    assert!(is_held(&mut sent, 1, 3, 0.0) && !is_held(&mut sent, 1, 4, 0.07));
    assert!(!is_held(&mut covered(8, 0), 1, 3, 0.0), "no repair symbol is in flight");
    // Nothing is lost any more of what has arrived.
    let mut sent = covered(8, 2);
    (4..8).for_each(|id| assert!(sent.on_acked(SymbolId(id))));
    assert!(is_held(&mut sent, 1, 3, 0.29) && !is_held(&mut covered(8, 2), 1, 3, 0.29));
}

#[test]
fn what_is_held_back_is_given_up_one_after_the_other() {
    let mut sent = covered(4, 2);
    sent.cover(at(20), 2, 2, PATIENCE);
    assert!(is_held(&mut sent, 30, 2, 0.0) && is_held(&mut sent, 30, 0, 0.0));
    assert_eq!(sent.next_timeout(), Some(at(100)));
    sent.on_timeout(at(99));
    assert!(sent.take_released().is_empty());
    sent.on_timeout(at(100));
    assert_eq!((sent.take_released().len(), sent.next_timeout()), (1, Some(at(120))));
    sent.on_timeout(at(120));
    assert_eq!((sent.take_released().len(), sent.next_timeout()), (1, None));
}

#[test]
fn repairs_are_waited_for_whenever_they_left() {
    let mut sent = covered(4, 0);
    sent.cover(at(25), 0, 2, PATIENCE);
    sent.cover(at(90), 0, 4, PATIENCE);
    assert_eq!([0, 1, 2, 3].map(|id| sent.is_covered(SymbolId(id))), [true; 4]);
    assert!(is_held(&mut sent, 120, 2, 0.0));
    assert_eq!(sent.next_timeout(), Some(at(190)));
}

#[test]
fn what_is_sent_again_at_once_is_waited_for_by_nobody() {
    let mut sent = covered(4, 1);
    assert!(!is_held(&mut sent, 100, 0, 0.0), "its repair symbol would have helped by now");
    assert!(!is_held(&mut sent, 1, 1, 0.9));
    assert_eq!(sent.next_timeout(), None);
    assert!(is_held(&mut covered(4, 1), 99, 0, 0.0));
}

#[test]
fn what_repairs_cover_is_lacked_from_its_loss_until_it_is_recovered() {
    let mut sent = covered(4, 1);
    assert!(!sent.lacks_any(0, 4));
    assert!(is_held(&mut sent, 1, 1, 0.0));
    assert!(sent.lacks_any(0, 4) && sent.lacks_any(1, 1) && !sent.lacks_any(2, 2));
    assert!(!is_held(&mut sent, 1, 2, 0.0), "one repair symbol is not enough for two");
    assert!(sent.lacks_any(2, 2));
    assert_eq!(sent.deliver(1..=2).len(), 2);
    assert!(!sent.lacks_any(0, 4));
}

#[test]
fn frames_are_held_back_until_the_last_repair_over_them_is_in_flight_no_more() {
    let mut sent = covered(4, 2);
    assert!(is_held(&mut sent, 1, 1, 0.0));
    sent.uncover(0, 4, false);
    assert!(sent.take_released().is_empty());
    sent.uncover(0, 4, false);
    assert_eq!(sent.take_released().len(), 1);
}

#[test]
fn what_is_given_up_is_not_sent_again_if_a_report_follows_before_it_leaves() {
    let mut sent = covered(4, 1);
    assert!(is_held(&mut sent, 1, 0, 0.0));
    assert!(!is_held(&mut sent, 1, 1, 0.0), "one repair symbol is not enough for two");
    assert!(sent.resend_later(SymbolId(1)) && !sent.resend_later(SymbolId(1)));
    sent.uncover(0, 4, true);
    let news = sent.deliver(0..=1);
    assert!(news.len() == 2 && news.iter().all(|(was, _)| *was == State::GivenUp));
    assert!(sent.take_released().is_empty() && !sent.holds_any());
    // Without a report they leave, and one that comes later is about what has left again.
    let mut sent = covered(4, 1);
    assert!(is_held(&mut sent, 1, 0, 0.0) && !is_held(&mut sent, 1, 1, 0.0));
    assert!(sent.resend_later(SymbolId(1)));
    assert_eq!(sent.take_released().len(), 2);
    assert!(sent.deliver(0..=1).iter().all(|(was, _)| *was == State::Lost));
}

#[test]
fn what_no_repair_covers_waits_for_no_report() {
    let mut sent = covered(4, 0);
    assert!(!is_held(&mut sent, 1, 0, 0.0) && !sent.resend_later(SymbolId(0)));
    assert!(sent.take_released().is_empty());
}

#[test]
fn repairs_that_have_arrived_count_as_well() {
    let two_are_held = |has_arrived| {
        let mut sent = covered(8, 2);
        let first = is_held(&mut sent, 1, 3, 0.0);
        sent.uncover(0, 8, has_arrived);
        first && is_held(&mut sent, 1, 4, 0.0)
    };
    assert!(two_are_held(true) && !two_are_held(false));
}

#[test]
fn repairs_over_a_longer_window_serve_what_is_lost_before_as_well() {
    // Three over eight symbols, and one over the last four of these and two more.
    let mut sent = covered(8, 3);
    push(&mut sent, 2);
    sent.cover(at(10), 4, 6, PATIENCE);
    let lacks_after = |sent: &mut SentSymbols, lost: &[u32]| {
        let odds = Some(Odds { loss_rate: 0.0, may_complete: true });
        for id in lost {
            assert!(!sent.on_lost(at(20), SymbolId(*id), PATIENCE, odds).unwrap().0.resend);
        }
        sent.lacks(7, 0.0, 0.0)
    };
    assert_eq!(lacks_after(&mut sent, &[5, 6, 7]), 0, "all four serve for these");
    assert_eq!(lacks_after(&mut sent, &[0]), 0, "four for four");
    assert_eq!(lacks_after(&mut sent, &[1]), 1, "one for three, or four for five");
    // What is lost before serves for nothing that the others cover alone.
    assert_eq!(sent.deliver(5..=6).len(), 2);
    assert_eq!(sent.lacks(7, 0.0, 0.0), 0);
}

/// Three of eight symbols with two repair symbols are lost where nothing else is to be sent.
fn lacking() -> SentSymbols {
    let mut sent = covered(8, 2);
    let odds = Some(Odds { loss_rate: 0.0, may_complete: true });
    for id in [1, 3, 5] {
        assert!(!sent.on_lost(at(1), SymbolId(id), PATIENCE, odds).unwrap().0.resend);
        assert_eq!(sent.lacking(0.0).is_some(), id == 5, "two are enough for two");
    }
    sent
}

#[test]
fn what_repairs_are_too_few_for_gets_another_one_that_covers_all_of_it() {
    let mut sent = lacking();
    assert_eq!(sent.lacking(0.0), Some(Order { first: 1, count: 7, repairs: 1 }));
    assert!(sent.lacking(0.3).is_some_and(|order| order.repairs > 2), "others may be lost as well");
    sent.cover(at(10), 1, 7, PATIENCE);
    assert_eq!(sent.lacking(0.0), None);
    sent.give_up_lacking(at(1), 0.0);
    sent.on_timeout(at(100));
    assert!(sent.take_released().is_empty(), "it waits for the last one");
    assert_eq!(sent.next_timeout(), Some(at(110)));
    sent.on_timeout(at(110));
    assert_eq!((sent.take_released().len(), sent.holds_any()), (3, false));
}

#[test]
fn what_repairs_are_too_few_for_is_given_up_where_data_goes_first() {
    let mut sent = lacking();
    sent.give_up_lacking(at(1), 0.0);
    assert_eq!(sent.next_timeout(), Some(at(1)), "at once");
    assert_eq!((sent.take_released().len(), sent.lacking(0.0), sent.holds_any()), (3, None, false));
}

#[test]
fn what_is_held_back_does_not_wait_for_ever_while_repairs_follow() {
    let mut sent = covered(4, 1);
    assert!(is_held(&mut sent, 50, 1, 0.0));
    for ms in (60..250).step_by(10) {
        sent.cover(at(ms), 0, 4, PATIENCE);
        sent.uncover(0, 4, true);
        sent.on_timeout(at(ms));
        assert!(sent.take_released().is_empty(), "{ms} ms");
    }
    sent.on_timeout(at(250));
    assert_eq!(sent.take_released().len(), 1);
}

#[test]
fn lost_symbols_are_remembered_for_a_while_behind_the_window() {
    let mut sent = SentSymbols::default();
    push(&mut sent, 2);
    assert!(!is_held(&mut sent, 1, 0, 0.0));
    sent.forget_resolved(LOST_MEMORY);
    assert_eq!(sent.first, 0);
    sent.forget_resolved(LOST_MEMORY + 1);
    assert_eq!(sent.first, 1);
    sent.forget_resolved(LOST_MEMORY + 100);
    assert_eq!((sent.first, sent.end()), (1, 2), "one in flight is never forgotten so");
}

#[test]
fn the_oldest_of_too_many_symbols_is_forgotten_and_sent_again_if_it_was_held_back() {
    let mut sent = covered(3, 1);
    push(&mut sent, SYMBOLS_MAX - 3);
    assert!(sent.on_acked(SymbolId(1)));
    assert!(is_held(&mut sent, 1, 0, 0.0));
    assert_eq!(sent.unresolved(), SYMBOLS_MAX - 2);
    push(&mut sent, 1);
    assert_eq!((sent.take_released().len(), sent.unresolved()), (1, SYMBOLS_MAX - 1));
    push(&mut sent, 2);
    assert_eq!((sent.take_released().len(), sent.unresolved()), (0, SYMBOLS_MAX));
    assert_eq!((sent.first, sent.symbols.len()), (3, SYMBOLS_MAX));
}
