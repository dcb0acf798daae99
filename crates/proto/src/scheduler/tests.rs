use super::*;

fn path(id: u32, rtt_ms: u64, window: u64) -> PathView {
    PathView {
        id: PathId(id),
        rtt: Duration::from_millis(rtt_ms),
        rtt_latest: Duration::from_millis(rtt_ms),
        rtt_variance: Duration::ZERO,
        delay: Duration::from_millis(rtt_ms / 2),
        window,
        bytes_in_flight: 0,
        window_left: window,
        pacing_rate: u64::MAX,
        pacing_budget: 0,
        delivery_rate: 0,
        mtu: 1_200,
        bytes_delivered: 1 << 20,
        bytes_lost: 0,
        is_silent: false,
        is_backup: false,
        cost: 1,
    }
}

fn order(scheduler: &mut dyn Scheduler, paths: &[PathView], stream_bytes: u64) -> Vec<u32> {
    order_at(Instant::ZERO, scheduler, paths, stream_bytes)
}

fn order_at(now: Instant, scheduler: &mut dyn Scheduler, paths: &[PathView], stream_bytes: u64) -> Vec<u32> {
    let (mut order, waiting) = (PathOrder::default(), Waiting { stream_bytes, ..Waiting::default() });
    scheduler.schedule(now, paths, &waiting, &mut order);
    order.as_slice().iter().map(|(id, _)| id.0).collect()
}

fn build(kind: SchedulerKind) -> Box<dyn Scheduler> {
    kind.build()
}

#[test]
fn names_are_read_as_they_are_written() {
    for kind in SchedulerKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert_eq!("fastest".parse::<SchedulerKind>(), Err(UnknownScheduler("fastest".into())));
}

#[test]
fn a_slow_path_carries_data_only_if_it_arrives_before_the_quick_one_is_through() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    // 1 MB a second with 10 ms to the peer, and 100 ms to the peer.
    let paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
    assert_eq!(order(scheduler, &paths, 80_000), [1]);
    assert_eq!(order(scheduler, &paths, 90_000), [1], "at the same time");
    assert_eq!(order(scheduler, &paths, 100_000), [1, 0]);
}

#[test]
fn datagrams_wait_like_what_streams_have_to_send() {
    for kind in [SchedulerKind::EarliestCompletion, SchedulerKind::Redundant] {
        let scheduler = &mut *build(kind);
        // 1 MB a second with 10 ms to the peer, and 100 ms to the peer.
        let paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
        for (stream_bytes, datagram_bytes, expected) in
            [(0, 80_000, &[1][..]), (0, 100_000, &[1, 0]), (50_000, 30_000, &[1]), (50_000, 50_000, &[1, 0])]
        {
            let (mut order, waiting) =
                (PathOrder::default(), Waiting { stream_bytes, datagram_bytes, ..Waiting::default() });
            scheduler.schedule(Instant::ZERO, &paths, &waiting, &mut order);
            let ids: Vec<_> = order.as_slice().iter().map(|(id, _)| id.0).collect();
            assert_eq!(ids, expected, "{kind}: {stream_bytes} and {datagram_bytes}");
        }
    }
}

#[test]
fn a_new_path_is_no_quicker_than_it_was_seen_to_be() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    let mut paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
    // Its window says 1 MB a second, and it has carried a tenth of it.
    paths[1].bytes_delivered = 2_000;
    assert_eq!(order(scheduler, &paths, 8_000), [1]);
    assert_eq!(order(scheduler, &paths, 10_000), [1, 0]);
}

#[test]
fn a_queue_that_fills_counts_before_the_smoothed_time_shows_it() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    let mut paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
    // 100 ms to the peer as well, and a fifth of the rate.
    paths[1].rtt_latest = Duration::from_millis(100);
    assert_eq!(order(scheduler, &paths, 1_000), [1]);
    assert_eq!(order(scheduler, &paths, 3_000), [1, 0]);
    paths[1].rtt_latest = Duration::from_millis(300);
    assert_eq!(order(scheduler, &paths, 1_000), [0], "nothing is won by the other one");
}

#[test]
fn the_variation_of_a_slow_path_is_not_held_against_it() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    let mut paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
    paths[0].rtt_variance = Duration::from_millis(50);
    assert_eq!(order(scheduler, &paths, 100_000), [1, 0]);
}

#[test]
fn a_path_is_no_quicker_than_its_pacer() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    let mut paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
    paths[1].pacing_rate = 500_000;
    assert_eq!(order(scheduler, &paths, 40_000), [1]);
    assert_eq!(order(scheduler, &paths, 50_000), [1, 0]);
}

#[test]
fn what_has_just_left_stands_before_what_is_next() {
    for kind in [SchedulerKind::EarliestCompletion, SchedulerKind::Redundant] {
        let scheduler = &mut *build(kind);
        // 20 and 10 ms to the peer, 1 MB a second each.
        let mut paths = [path(0, 40, 40_000), path(1, 20, 20_000)];
        paths[1].bytes_in_flight = 1 << 20;
        let mut first = |after_ms, paths: &[PathView], sent: usize| {
            let order = order_at(Instant::from_millis(after_ms), scheduler, paths, 100_000);
            scheduler.on_sent(PathId(1), sent);
            order[0]
        };
        assert_eq!(first(0, &paths, 9_000), 1);
        assert_eq!(first(0, &paths, 2_000), 1, "9 ms until the last of it has gone");
        assert_eq!(first(0, &paths, 0), 0, "11 ms");
        assert_eq!(first(2, &paths, 11_000), 1, "and 2 of them later 9");
        assert_eq!(first(2, &paths, 0), 0, "20 ms");
        paths[1].bytes_in_flight = 9_000;
        assert_eq!(first(2, &paths, 0), 1, "the others were acknowledged meanwhile");
        // It was seen to let through four times as much as its window says.
        paths[1].bytes_in_flight = 1 << 20;
        paths[1].delivery_rate = 4_000_000;
        assert_eq!(first(100, &paths, 36_000), 1);
        assert_eq!(first(100, &paths, 8_000), 1, "9 ms");
        assert_eq!(first(100, &paths, 0), 0, "11 ms");
    }
}

#[test]
fn what_has_just_left_counts_for_the_completion_without_a_slow_path() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    // 1 MB a second with 10 ms to the peer, and 100 ms to the peer.
    let mut paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
    paths[1].bytes_in_flight = 20_000;
    assert_eq!(order(scheduler, &paths, 75_000), [1]);
    scheduler.on_sent(PathId(1), 20_000);
    assert_eq!(order(scheduler, &paths, 75_000), [1, 0], "105 ms");
}

#[test]
fn a_quick_path_that_loses_much_carries_no_more_than_arrives() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    // 1 MB a second with 10 ms to the peer, and 100 ms to the peer.
    let mut paths = [path(0, 200, 100_000), path(1, 20, 20_000)];
    assert_eq!(order(scheduler, &paths, 40_000), [1]);
    // Half of it is lost: 80 ms for the bytes, and 23 for each time that one of 33 packets is lost again.
    (paths[1].bytes_delivered, paths[1].bytes_lost) = (1 << 20, 1 << 20);
    assert_eq!(order(scheduler, &paths, 40_000), [1, 0]);
    // A packet alone is there sooner even if it is lost once.
    assert_eq!(order(scheduler, &paths, 1_000), [1]);
}

#[test]
fn of_two_quick_paths_the_one_that_loses_less_comes_first() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    let mut paths = [path(0, 20, 20_000), path(1, 22, 22_000)];
    assert_eq!(order(scheduler, &paths, 1_000), [0]);
    // One packet in ten: 2.5 ms in the mean.
    (paths[0].bytes_delivered, paths[0].bytes_lost) = (900_000, 100_000);
    assert_eq!(order(scheduler, &paths, 1_000)[0], 1);
}

#[test]
fn a_burst_ends_where_the_next_path_would_be_quicker() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    // 20 and 10 ms to the peer, 1 MB a second each.
    let paths = [path(0, 40, 40_000), path(1, 20, 20_000)];
    let mut order = |stream_bytes| {
        let (mut order, waiting) = (PathOrder::default(), Waiting { stream_bytes, ..Waiting::default() });
        scheduler.schedule(Instant::ZERO, &paths, &waiting, &mut order);
        order.as_slice().to_vec()
    };
    assert_eq!(order(20_000), [(PathId(1), 10_000), (PathId(0), u64::MAX)]);
    // More than the window of the quicker one: both are used anyway.
    assert_eq!(order(20_001), [(PathId(1), u64::MAX), (PathId(0), u64::MAX)]);
}

#[test]
fn a_third_path_competes_with_both_others() {
    let scheduler = &mut *build(SchedulerKind::EarliestCompletion);
    // 1 MB a second each.
    let paths = [path(0, 20, 20_000), path(1, 20, 20_000), path(2, 200, 100_000)];
    assert_eq!(order(scheduler, &paths, 170_000), [0, 1]);
    assert_eq!(order(scheduler, &paths, 190_000), [0, 1, 2]);
}

#[test]
fn min_rtt_asks_all_paths_the_quickest_first() {
    let paths = [path(0, 200, 1), path(1, 20, 1), path(2, 20, 1)];
    assert_eq!(order(&mut *build(SchedulerKind::MinRtt), &paths, 0), [1, 2, 0]);
}

#[test]
fn a_backup_is_used_only_if_no_cheaper_path_is_left() {
    let mut paths = [path(0, 200, 1), path(1, 20, 1)];
    assert_eq!(order(&mut *build(SchedulerKind::Backup), &paths, 1_000_000), [0]);
    paths[0].cost = 2;
    assert_eq!(order(&mut *build(SchedulerKind::Backup), &paths, 1_000_000), [1]);
    assert_eq!(order(&mut *build(SchedulerKind::Backup), &paths[..1], 1_000_000), [0]);
}

#[test]
fn weighted_shares_follow_the_inverse_of_the_costs() {
    let scheduler = &mut *build(SchedulerKind::Weighted);
    let mut paths = [path(0, 20, 1), path(1, 200, 1), path(2, 20, 1)];
    paths[1].cost = 3;
    let mut sent = [0; 3];
    let mut send = |scheduler: &mut dyn Scheduler, paths: &[PathView], rounds: usize| {
        for _ in 0..rounds {
            let first = order(scheduler, paths, 0)[0];
            scheduler.on_sent(PathId(first), 1_000);
            sent[first as usize] += 1_000;
        }
        sent
    };
    let before = send(scheduler, &paths[..2], 4_000);
    assert!((990_000..=1_010_000).contains(&before[1]), "a quarter of it: {before:?}");
    // A path that comes later does not make up for what others have carried.
    let after = send(scheduler, &paths, 700);
    assert!((290_000..=310_000).contains(&after[2]), "three sevenths of the rest: {after:?}");
}

#[test]
fn a_path_that_comes_later_begins_with_the_share_that_its_cost_gives_it() {
    let scheduler = &mut *build(SchedulerKind::Weighted);
    let mut paths = [path(0, 20, 1), path(1, 20, 1), path(2, 20, 1)];
    (paths[1].cost, paths[2].cost) = (2, 4);
    let send = |scheduler: &mut dyn Scheduler, paths: &[PathView], rounds: usize| {
        let mut sent = [0i32; 3];
        for _ in 0..rounds {
            let first = order(scheduler, paths, 0)[0];
            scheduler.on_sent(PathId(first), 1_000);
            sent[first as usize] += 1;
        }
        sent
    };
    assert_eq!(send(scheduler, &paths[..2], 300), [200, 100, 0]);
    let after = send(scheduler, &paths, 140);
    assert!(after[2].abs_diff(20) <= 1, "a seventh of the rest: {after:?}");
    // As one that is gone and comes back.
    send(scheduler, &paths[..2], 60);
    let after = send(scheduler, &paths, 140);
    assert!(after[2].abs_diff(20) <= 1, "a seventh of the rest: {after:?}");
}

#[test]
fn a_path_that_was_full_makes_up_for_no_more_than_is_remembered() {
    // What it may carry alone, in kB, after others have carried so many.
    let lead = |sent: usize| {
        let scheduler = &mut *build(SchedulerKind::Weighted);
        let paths = [path(0, 20, 1), path(1, 20, 1)];
        order(scheduler, &paths, 0);
        (0..sent).for_each(|_| scheduler.on_sent(PathId(0), 1 << 10));
        let mut lead = 0;
        while order(scheduler, &paths, 0)[0] == 1 {
            scheduler.on_sent(PathId(1), 1 << 10);
            lead += 1;
        }
        lead
    };
    assert_eq!(lead(1_000), 1_000);
    assert_eq!(lead(1 << 10), 1 << 10);
    assert_eq!(lead((1 << 10) + 1), 513);
    assert!(lead(100_000) <= 1 << 10);
}

#[test]
fn only_the_redundant_scheduler_repeats_datagrams() {
    for kind in SchedulerKind::ALL {
        assert_eq!(kind.build().repeats_datagrams(), kind == SchedulerKind::Redundant);
    }
}
