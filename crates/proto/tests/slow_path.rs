//! A slow path beside a quick one: what a scheduler is shown of them, and what is said again on the quick one.

mod pair;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::congestion::{
    AckEvent, CongestionControl, CongestionEvent, Controller, ControllerFactory, Sent,
};
use fulmar_proto::{
    DatagramOptions, Dir, FourTuple, Instant, MultipathConfig, PathId, PathOrder, PathView, Scheduler,
    SchedulerFactory, SchedulerKind, Side, TransportConfig, TransportErrorCode, Waiting,
};
use pair::{Flying, Pair, Setup};

const OTHER: &str = "10.0.1.1:1000";
const SECOND: PathId = PathId(1);

/// Sends on any path, and keeps what it was shown of each.
#[derive(Debug, Clone, Default)]
struct Witness {
    paths: Arc<Mutex<BTreeMap<PathId, PathView>>>,
    waiting: Arc<Mutex<Vec<Waiting>>>,
}

impl Scheduler for Witness {
    fn schedule(&mut self, _: Instant, paths: &[PathView], waiting: &Waiting, order: &mut PathOrder) {
        self.paths.lock().unwrap().extend(paths.iter().map(|path| (path.id, *path)));
        self.waiting.lock().unwrap().push(*waiting);
        paths.iter().for_each(|path| order.push(path.id));
    }
}

impl SchedulerFactory for Witness {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }
}

impl Witness {
    fn last(&self, id: PathId) -> PathView {
        self.paths.lock().unwrap()[&id]
    }
}

/// Sends on the second path what it can, and one packet at a time on the first.
#[derive(Debug, Clone)]
struct SlowFirst;

impl Scheduler for SlowFirst {
    fn schedule(&mut self, _: Instant, _: &[PathView], _: &Waiting, order: &mut PathOrder) {
        order.push(SECOND);
        order.push_up_to(PathId::ZERO, 1);
    }
}

impl SchedulerFactory for SlowFirst {
    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(Self)
    }
}

/// Does nothing but keep the last round-trip time that it was told, without what the peer had waited.
#[derive(Debug, Clone, Default)]
struct Listener(Arc<Mutex<Duration>>);

impl Controller for Listener {
    fn on_sent(&mut self, _: Instant, _: &Sent) {}

    fn on_ack(&mut self, _: Instant, ack: &AckEvent<'_>) {
        if let Some(sample) = ack.rtt_sample {
            *self.0.lock().unwrap() = sample - ack.ack_delay;
        }
    }

    fn on_congestion(&mut self, _: Instant, _: &CongestionEvent) {}

    fn on_mtu(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        100_000
    }

    fn state(&self) -> &'static str {
        "listening"
    }

    fn name(&self) -> &'static str {
        "listener"
    }
}

/// Makes a listener for each tuple, and keeps that of the newest.
#[derive(Debug, Clone, Default)]
struct Listeners(Arc<Mutex<Listener>>);

impl ControllerFactory for Listeners {
    fn build(&self, _: Instant, _: u16) -> Box<dyn Controller> {
        let listener = Listener::default();
        *self.0.lock().unwrap() = listener.clone();
        Box::new(listener)
    }
}

impl Listeners {
    fn millis(&self) -> u128 {
        self.0.lock().unwrap().0.lock().unwrap().as_millis()
    }
}

fn config(multipath: MultipathConfig) -> TransportConfig {
    TransportConfig { multipath: Some(multipath), ..TransportConfig::default() }
}

/// Both ends with two paths, the second of which takes 50 ms longer in each direction than the first.
fn with_a_slow_path() -> (Pair, Witness) {
    let witness = Witness::default();
    (with_a_slow_path_and(witness.clone(), SchedulerKind::default()), witness)
}

/// The same with these schedulers of client and server.
fn with_a_slow_path_and(client: impl SchedulerFactory + 'static, server: SchedulerKind) -> Pair {
    let client = MultipathConfig { scheduler: Arc::new(client), ..MultipathConfig::default() };
    let server = MultipathConfig { scheduler: Arc::new(server), ..MultipathConfig::default() };
    let setup = Setup { client: config(client), server: config(server), ..Setup::default() };
    made_of(setup, &Rc::new(Cell::new(Duration::from_millis(50))))
}

/// The same of these parts, and so much longer.
fn made_of(setup: Setup, longer: &Rc<Cell<Duration>>) -> Pair {
    let mut pair = setup.connect();
    let slow = OTHER.parse().unwrap();
    pair.client.more_addrs = vec![slow];
    // The server's packets on the first path go to a connection ID that it knows from the handshake.
    let first_cid = pair.server.sent.last().unwrap()[1..9].to_vec();
    let late = {
        let longer = Rc::clone(longer);
        move |flying: Flying| vec![Flying { at: flying.at + longer.get(), ..flying }]
    };
    let late_too = late.clone();
    pair.client.wire = Box::new(move |it| if it.from == slow { late_too(it) } else { vec![it] });
    pair.server.wire = Box::new(move |it| if it.payload[1..9] != first_cid { late(it) } else { vec![it] });
    let (now, addrs) = (pair.now, FourTuple::new(pair.server.addr, Some(slow.ip())));
    assert_eq!(pair.client.conn().open_path(now, addrs), Ok(SECOND));
    pair.run_for(Duration::from_millis(500));
    pair
}

#[test]
fn a_connection_that_is_over_is_remembered_for_three_probe_timeouts_of_its_slowest_path() {
    let (mut pair, _) = with_a_slow_path();
    for _ in 0..20 {
        pair.transfer(Side::Client, 50_000, Duration::from_secs(1));
        pair.transfer(Side::Server, 50_000, Duration::from_secs(1));
    }
    pair.run_for(Duration::from_secs(1));
    let (now, primary) = (pair.now, pair.client.conn().probe_timeout());
    assert!(primary < Duration::from_millis(70), "{primary:?}");
    pair.client.conn().close(now, 0u32.into(), Bytes::new());
    pair.run_for(Duration::from_millis(300));
    // The slow path has a round-trip time of 110 ms on the way out and back.
    assert!(!pair.client.conn().is_drained(), "{primary:?}");
    pair.run_for(Duration::from_secs(3));
    assert!(pair.client.conn().is_drained() && pair.server.conn().is_drained());
}

#[test]
fn the_delay_of_a_path_is_that_of_the_way_to_the_peer_whichever_way_acknowledgements_come_back() {
    let (mut pair, witness) = with_a_slow_path();
    for _ in 0..20 {
        pair.transfer(Side::Client, 50_000, Duration::from_secs(1));
        pair.run_for(Duration::from_millis(100));
    }
    let [quick, slow] = [PathId::ZERO, SECOND].map(|id| witness.last(id));
    assert!((4..=7).contains(&quick.delay.as_millis()), "{quick:?}");
    let acks = pair.server.conn().stats();
    let each = acks.ack_bytes / acks.acks_sent;
    assert!((5..20).contains(&each), "copies and others have {each} bytes each");
    // A copy of each acknowledgement comes back over the first path.
    assert!((58..=70).contains(&slow.rtt.as_millis()), "{slow:?}");
    assert!((54..=56).contains(&slow.delay.as_millis()), "{slow:?}");
}

#[test]
fn the_delay_of_a_path_is_known_as_soon_as_its_acknowledgements_come_another_way() {
    let (mut pair, witness) = with_a_slow_path();
    for _ in 0..2 {
        pair.transfer(Side::Client, 20_000, Duration::from_secs(1));
        pair.run_for(Duration::from_millis(100));
        pair.transfer(Side::Client, 100, Duration::from_secs(1));
        let slow = witness.last(SECOND);
        assert!((54..=57).contains(&slow.delay.as_millis()), "{slow:?}");
    }
}

#[test]
fn a_controller_is_told_of_the_queue_and_not_of_the_way_back_when_the_quicker_path_is_gone() {
    let (listeners, longer) = (Listeners::default(), Rc::new(Cell::new(Duration::from_millis(50))));
    let client = TransportConfig {
        congestion: CongestionControl::Custom(Arc::new(listeners.clone())),
        ..config(MultipathConfig { scheduler: Arc::new(Witness::default()), ..MultipathConfig::default() })
    };
    let server = config(MultipathConfig::default());
    let mut pair = made_of(Setup { client, server, ..Setup::default() }, &longer);
    let after = |pair: &mut Pair| {
        for _ in 0..4 {
            pair.transfer(Side::Client, 150_000, Duration::from_secs(2));
        }
        listeners.millis()
    };
    assert!((58..=62).contains(&after(&mut pair)), "copies come over the quick path");
    let now = pair.now;
    pair.client.conn().abandon_path(now, PathId::ZERO, TransportErrorCode::NO_ERROR).unwrap();
    pair.run_for(Duration::from_secs(1));
    let alone = after(&mut pair);
    assert!((58..=62).contains(&alone), "{alone} ms: no queue has come");
    longer.set(Duration::from_millis(80));
    let now_longer = after(&mut pair);
    assert!((alone + 58..=alone + 62).contains(&now_longer), "{now_longer} ms");
}

#[test]
fn copies_leave_on_the_path_that_has_room_for_them_and_not_on_the_one_that_they_are_to_overtake() {
    let mut pair = with_a_slow_path_and(SlowFirst, SchedulerKind::default());
    let sent = |pair: &mut Pair| -> Vec<u64> {
        pair.client.conn().path_stats().map(|path| path.bytes_sent).collect()
    };
    let (before, start) = (sent(&mut pair), pair.now);
    pair.transfer(Side::Client, 8_000, Duration::from_secs(1));
    let (after, took) = (sent(&mut pair), pair.now - start);
    assert!(after[0] - before[0] > 8_000, "all of it was repeated: {before:?} {after:?}");
    assert!(after[1] - before[1] < 10_000, "once: {before:?} {after:?}");
    assert!(took < Duration::from_millis(50), "{took:?}");
}

#[test]
fn the_end_of_a_transfer_does_not_wait_for_a_slow_path() {
    let (mut pair, _) = with_a_slow_path();
    // More than the window of the first path, so that some of it leaves on the other.
    let before = pair.client.conn().path_stats().nth(1).unwrap().bytes_sent;
    let start = pair.now;
    pair.transfer(Side::Client, 20_000, Duration::from_secs(1));
    let took = pair.now - start;
    let on_slow = pair.client.conn().path_stats().nth(1).unwrap().bytes_sent - before;
    assert!(on_slow > 3_000, "{on_slow} bytes left on the slow path");
    assert!(
        took < Duration::from_millis(50),
        "copies arrive before what has left on the slow path: {took:?}"
    );
}

#[test]
fn a_scheduler_is_told_how_much_waits_of_each_kind() {
    let (mut pair, witness) = with_a_slow_path();
    witness.waiting.lock().unwrap().clear();
    let client = pair.client.conn();
    let id = client.streams().open(Dir::Uni).unwrap();
    client.streams().send(id).write(&[7; 20_000]).unwrap();
    for _ in 0..3 {
        client.send_datagram(Bytes::from_static(&[1; 1_000]), false).unwrap();
    }
    pair.run_for(Duration::from_millis(500));
    let seen = witness.waiting.lock().unwrap();
    let (first, last) = (seen[0], *seen.last().unwrap());
    assert_eq!((first.stream_bytes, first.datagram_bytes), (20_000, 3_000), "{first:?}");
    assert_eq!((last.stream_bytes, last.datagram_bytes), (0, 0), "{last:?}");
}

#[test]
fn a_scheduler_is_told_whether_streams_or_datagrams_are_written_first() {
    for (priority, streams_first) in [(-1, true), (1, false)] {
        let (mut pair, witness) = with_a_slow_path();
        witness.waiting.lock().unwrap().clear();
        let client = pair.client.conn();
        let id = client.streams().open(Dir::Uni).unwrap();
        client.streams().send(id).write(&[7; 20_000]).unwrap();
        let options = DatagramOptions { priority, ..DatagramOptions::default() };
        client.send_datagram_with(Bytes::from_static(&[1; 100]), &options).unwrap();
        pair.run_for(Duration::from_millis(100));
        let seen = witness.waiting.lock().unwrap();
        let both: Vec<_> = seen.iter().filter(|w| w.datagram.is_some() && w.urgency.is_some()).collect();
        assert!(!both.is_empty() && both.iter().all(|w| w.streams_first == streams_first), "{both:?}");
    }
}
