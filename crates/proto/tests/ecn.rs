//! Marks of congestion, and paths that do not keep them (RFC 9000 §13.4, RFC 9002 §7.1).

mod pair;

use std::time::Duration;

use fulmar_proto::congestion::{CongestionControl, CubicConfig};
use fulmar_proto::{Dir, Ecn, Side, TransportConfig};
use pair::{Pair, Setup};

/// The marks with which the client's datagrams leave from now on, while `change` rewrites them.
fn remark(pair: &mut Pair, mut change: impl FnMut(Ecn) -> Ecn + 'static) {
    pair.client.wire = Box::new(move |mut flying| {
        flying.ecn = change(flying.ecn);
        vec![flying]
    });
}

#[test]
fn a_path_that_keeps_marks_stays_marked() {
    let mut pair = Setup::default().connect();
    let marks = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = marks.clone();
    remark(&mut pair, move |mark| {
        seen.borrow_mut().push(mark);
        mark
    });
    pair.transfer(Side::Client, 500_000, Duration::from_secs(5));
    let marks = marks.borrow();
    assert!(marks.len() > 300 && marks.iter().all(|mark| *mark == Ecn::Ect0));
}

#[test]
fn congestion_marks_reduce_the_window_without_loss() {
    let congestion = CongestionControl::Cubic(CubicConfig::default());
    let client = TransportConfig { congestion, ..TransportConfig::default() };
    let mut pair = Setup { client, ..Setup::default() }.connect();
    pair.transfer(Side::Client, 500_000, Duration::from_secs(5));
    pair.run_for(Duration::from_millis(50));
    let before = pair.client.conn().stats();
    assert_eq!(before.controller_state, "slow start");
    let mut count = 0;
    remark(&mut pair, move |mark| {
        count += 1;
        if count == 5 && mark == Ecn::Ect0 { Ecn::Ce } else { mark }
    });
    pair.transfer(Side::Client, 50_000, Duration::from_secs(5));
    pair.run_for(Duration::from_millis(50));
    let after = pair.client.conn().stats();
    assert_eq!(after.packets_lost, 0);
    assert!(after.cwnd < before.cwnd, "{} of {}", after.cwnd, before.cwnd);
    assert!(after.cwnd > before.cwnd / 2, "one event, one reduction");
    assert_ne!(after.controller_state, "slow start");
}

/// Transfers over a path that changes marks, and returns the marks of the datagrams that leave last.
fn marks_after(change: fn(Ecn) -> Ecn) -> Vec<Ecn> {
    let mut pair = Setup::default().dial();
    remark(&mut pair, change);
    pair.run_for(Duration::from_millis(100));
    assert!(pair.client.is_connected());
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    assert_eq!(pair.client.conn().stats().packets_lost, 0);
    let marks = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = marks.clone();
    remark(&mut pair, move |mark| {
        seen.borrow_mut().push(mark);
        mark
    });
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    let marks = marks.borrow();
    marks.clone()
}

#[test]
fn a_path_that_erases_marks_ends_marking() {
    assert!(marks_after(|_| Ecn::NotEct).iter().all(|mark| *mark == Ecn::NotEct));
}

#[test]
fn a_path_that_swaps_marks_ends_marking() {
    let swap = |mark| if mark == Ecn::Ect0 { Ecn::Ect1 } else { mark };
    assert!(marks_after(swap).iter().all(|mark| *mark == Ecn::NotEct));
}

#[test]
fn a_path_that_drops_marked_packets_is_used_without_marks() {
    let mut pair = Setup::default().dial();
    for side in [Side::Client, Side::Server] {
        pair.end(side).wire =
            Box::new(|flying| if flying.ecn == Ecn::NotEct { vec![flying] } else { Vec::new() });
    }
    let connected = |pair: &mut Pair| pair.client.is_connected() && pair.server.is_connected();
    assert!(pair.run_while_waiting(Duration::from_secs(9), connected), "{:?}", pair.lost(Side::Client));
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
}

#[test]
fn what_became_of_marks_on_a_path_that_was_left_says_nothing_of_the_next() {
    let mut pair = Setup::default().connect();
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    // The old path begins to erase marks, and what it carries is acknowledged when the client is elsewhere.
    let old = pair.client.addr;
    pair.client.wire = Box::new(move |mut flying| {
        flying.ecn = if flying.from == old { Ecn::NotEct } else { flying.ecn };
        vec![flying]
    });
    let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
    assert_eq!(pair.client.conn().streams().send(id).write(&[7; 12_000]), Ok(12_000));
    pair.run_for(Duration::from_millis(4));
    assert!(pair.client.conn().stats().bytes_in_flight > 11_000);
    pair.client.addr.set_port(2_000);
    let now = pair.now;
    pair.client.conn().migrate(now, None).unwrap();
    pair.run_for(Duration::from_millis(500));
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    let marks = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = marks.clone();
    remark(&mut pair, move |mark| {
        seen.borrow_mut().push(mark);
        mark
    });
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    assert!(marks.borrow().len() > 50 && marks.borrow().iter().all(|mark| *mark == Ecn::Ect0));
}

#[test]
fn marks_can_be_switched_off() {
    let client = TransportConfig { ecn: false, ..TransportConfig::default() };
    let mut pair = Setup { client, ..Setup::default() }.dial();
    remark(&mut pair, |mark| {
        assert_eq!(mark, Ecn::NotEct);
        mark
    });
    pair.run_for(Duration::from_millis(100));
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

#[test]
fn marks_come_back_after_an_interruption_of_the_path() {
    let mut pair = Setup::default().connect();
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    // The client asks in vain for a while, at last without marks; what arrives first has none.
    pair.client.mute = true;
    pair.client.conn().ping();
    pair.run_for(Duration::from_secs(2));
    pair.client.mute = false;
    pair.run_for(Duration::from_secs(5));
    // A few packets of the first flight test whether marks arrive again.
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    let marks = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = marks.clone();
    remark(&mut pair, move |mark| {
        seen.borrow_mut().push(mark);
        mark
    });
    pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
    assert!(marks.borrow().len() > 50 && marks.borrow().iter().all(|mark| *mark == Ecn::Ect0));
}
