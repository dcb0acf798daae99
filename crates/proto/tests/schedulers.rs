//! Schedulers: which path carries data, datagrams and repair symbols.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar_proto::{
    FecConfig, MultipathConfig, PathError, PathId, PathUse, SchedulerKind, Side, TransportConfig,
};
use pair::{OTHER, Pair, SECOND, multipath_config};

fn with_scheduler(kind: SchedulerKind) -> Pair {
    let multipath = MultipathConfig { scheduler: Arc::new(kind), ..MultipathConfig::default() };
    Pair::with_two_paths_and(&TransportConfig { multipath: Some(multipath), ..TransportConfig::default() })
}

#[test]
fn every_scheduler_brings_all_bytes() {
    for kind in SchedulerKind::ALL {
        let mut pair = with_scheduler(kind);
        pair.transfer(Side::Client, 2_000_000, Duration::from_secs(5));
        pair.transfer(Side::Server, 2_000_000, Duration::from_secs(5));
        pair.close_and_forget();
    }
}

#[test]
fn with_the_backup_scheduler_the_cheaper_path_carries_everything_until_it_fails() {
    let mut pair = with_scheduler(SchedulerKind::Backup);
    let window = |pair: &mut Pair, path: usize| pair.client.conn().path_stats().nth(path).unwrap().cwnd;
    let before = window(&mut pair, 1);
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    assert_eq!(window(&mut pair, 1), before);
    pair.client.conn().set_path_cost(PathId::ZERO, 5).unwrap();
    assert_eq!(pair.client.conn().paths().next().unwrap().cost, 5);
    pair.run_for(Duration::from_millis(100));
    let first = window(&mut pair, 0);
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    assert!(window(&mut pair, 1) > before);
    assert_eq!(window(&mut pair, 0), first);
    let cheap = pair.client.more_addrs[0];
    pair.client.wire = Box::new(move |flying| if flying.from == cheap { vec![] } else { vec![flying] });
    pair.transfer(Side::Client, 1_000_000, Duration::from_secs(5));
    assert_eq!(pair.client.conn().set_path_cost(PathId(9), 1), Err(PathError::Unknown));
}

#[test]
fn datagrams_wait_for_the_path_that_the_scheduler_has_chosen() {
    let mut pair = with_scheduler(SchedulerKind::Backup);
    let sent = |pair: &mut Pair| pair.client.conn().path_stats().nth(1).unwrap().bytes_sent;
    let before = sent(&mut pair);
    for n in 0..50u8 {
        pair.client.conn().send_datagram(Bytes::from(vec![n; 1_000]), false).unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(std::iter::from_fn(|| pair.server.conn().read_datagram()).count(), 50);
    let on_backup = sent(&mut pair) - before;
    assert!(on_backup < 1_000, "{on_backup} bytes");
}

#[test]
fn redundant_datagrams_arrive_over_each_path_and_survive_the_loss_of_one() {
    let send = |pair: &mut Pair| {
        for n in 0..50u8 {
            pair.client.conn().send_datagram(Bytes::from(vec![n; 100]), false).unwrap();
            pair.run_for(Duration::from_millis(20));
        }
        let mut received = Vec::new();
        while let Some(data) = pair.server.conn().read_datagram() {
            received.push(data[0]);
        }
        received
    };
    let mut pair = with_scheduler(SchedulerKind::Redundant);
    let twice: Vec<u8> = (0..50).flat_map(|n| [n, n]).collect();
    assert_eq!(send(&mut pair), twice);
    for lost in [OTHER.parse().unwrap(), pair.client.addr] {
        let mut pair = with_scheduler(SchedulerKind::Redundant);
        pair.client.wire = Box::new(move |flying| if flying.from == lost { vec![] } else { vec![flying] });
        assert_eq!(send(&mut pair), (0..50).collect::<Vec<_>>());
    }
}

#[test]
fn repair_symbols_take_the_backup_of_the_path_that_they_repair() {
    // Path 0 carries nothing but the data, and no probes for larger packets.
    let fec = Some(FecConfig::default());
    let mut pair =
        Pair::with_two_paths_and(&TransportConfig { fec, mtu_discovery: false, ..multipath_config() });
    pair.client.conn().set_path_use(SECOND, PathUse::Backup).unwrap();
    pair.run_for(Duration::from_millis(100));
    let sent = |pair: &mut Pair| {
        let bytes = pair.client.conn().path_stats().map(|path| path.bytes_sent).collect::<Vec<_>>();
        (bytes[0], bytes[1], pair.client.conn().stats().fec.expect("both ends have it").repair_bytes_sent)
    };
    let before = sent(&mut pair);
    pair.transfer(Side::Client, 3_000, Duration::from_secs(1));
    pair.run_for(Duration::from_millis(50));
    let after = sent(&mut pair);
    let repairs = after.2 - before.2;
    assert!(repairs > 1_000, "{after:?}");
    assert!(after.1 - before.1 >= repairs, "on the backup: {before:?} {after:?}");
    assert!((3_000..4_000).contains(&(after.0 - before.0)), "data alone: {before:?} {after:?}");
}
