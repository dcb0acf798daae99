use super::*;

const RTT: Duration = Duration::from_millis(100);

#[test]
fn the_busiest_round_trip_counts() {
    let mut demand = Demand::default();
    let mut consumed = 0;
    let mut now = Instant::ZERO;
    for step in [100, 200, 700, 50] {
        for _ in 0..10 {
            demand.record(now, RTT, consumed);
            consumed += step;
            now += RTT / 10;
        }
    }
    assert_eq!(demand.most(), 7_000);
}

#[test]
fn what_is_read_in_a_long_time_counts_as_little_as_it_was_at_a_time() {
    let mut demand = Demand::default();
    demand.record(Instant::ZERO, RTT, 0);
    demand.record(Instant::ZERO + RTT / 2, RTT, 1_000);
    assert_eq!(demand.most(), 0, "the round is not over");
    demand.record(Instant::ZERO + RTT * 10, RTT, 5_000);
    assert_eq!(demand.most(), 500);
    demand.record(Instant::ZERO + RTT * 10, Duration::ZERO, 9_000);
    assert_eq!(demand.most(), 500, "no time, no pace");
}

#[test]
fn only_a_doubled_credit_is_news() {
    let credit = |stream, connection| ReceiveCredit { stream, connection };
    let before = credit(100, 1_000);
    assert!(!credit(199, 1_999).has_doubled_since(&before));
    assert!(credit(200, 0).has_doubled_since(&before));
    assert!(credit(0, 2_000).has_doubled_since(&before));
    assert!(!credit(u64::MAX, u64::MAX).has_doubled_since(&credit(u64::MAX / 2 + 1, u64::MAX / 2 + 1)));
    assert_eq!(credit(1, 20).max(credit(10, 2)), credit(10, 20));
}
