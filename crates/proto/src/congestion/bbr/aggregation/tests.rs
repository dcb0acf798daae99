use super::*;

/// 1 MB/s: a byte each microsecond.
const BANDWIDTH: u64 = 1_000_000;
const RTT: Duration = Duration::from_millis(4);

struct Path {
    now: Instant,
    round: u64,
    window: u64,
    pace: u64,
    full: bool,
    aggregation: Aggregation,
}

impl Path {
    fn new(window: u64) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        Self { now, round: 0, window, pace: BANDWIDTH, full: true, aggregation: Aggregation::new(now) }
    }

    /// After this time so many bytes are acknowledged.
    fn ack(&mut self, after: Duration, acked_bytes: u64) {
        self.now += after;
        let input = AggregationInput {
            bandwidth: self.pace,
            pace: self.pace,
            acked_bytes,
            min_rtt: RTT,
            window: self.window,
            round: self.round,
            full: self.full,
        };
        self.aggregation.on_ack(self.now, &input);
    }

    /// Rounds in which acknowledgements come as the bandwidth delivers.
    fn run_evenly(&mut self, rounds: u64) {
        for _ in 0..rounds {
            self.round += 1;
            for _ in 0..4 {
                self.ack(Duration::from_millis(1), 1_000);
            }
        }
    }
}

#[test]
fn the_allowance_grows_until_it_bridges_the_silence() {
    let mut path = Path::new(8_000);
    let mut seen = Vec::new();
    for _ in 0..6 {
        path.round += 1;
        // The path cannot hold back more than the sender gives to it meanwhile.
        path.ack(Duration::from_millis(90), path.window.min(90_000));
        path.window = 8_000 + path.aggregation.extra();
        seen.push(path.aggregation.extra());
    }
    assert_eq!(seen[0], 16_000);
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]), "{seen:?}");
    assert_eq!(seen[5], 90_000 * HEADROOM_PERCENT / 100, "90 ms at 1 MB/s, and the headroom");
    assert!(path.aggregation.take_growth());
    assert!(!path.aggregation.take_growth());
}

#[test]
fn a_window_and_a_pace_that_confirm_each_other_grow_until_the_path_is_full() {
    // The window gives 300 kB/s to a path that holds packets back for 90 ms at a time and would deliver 1 MB/s.
    let silence = Duration::from_millis(90);
    let mut path = Path::new(27_000);
    path.pace = 300_000;
    for _ in 0..12 {
        path.round += 1;
        let acked = path.window.min(90_000);
        path.ack(silence, acked);
        path.window = path.aggregation.extra();
        path.pace = acked * 1_000 / 90;
    }
    assert!(path.pace > BANDWIDTH * 99 / 100, "{} bytes per second", path.pace);
    assert!(path.window <= 90_000 * HEADROOM_PERCENT / 100, "{} bytes", path.window);
}

#[test]
fn a_bridge_is_remembered_for_some_rounds_before_the_path_was_full() {
    let mut path = Path::new(8_000);
    path.full = false;
    path.run_evenly(4);
    path.ack(Duration::from_millis(90), 8_000);
    path.run_evenly(4);
    assert_eq!(path.aggregation.extra(), 16_000);
    path.run_evenly(12);
    assert!(path.aggregation.extra() <= 1_000, "{}", path.aggregation.extra());
}

#[test]
fn a_part_of_the_window_after_a_silence_is_no_reason_to_grow() {
    // As on a path that has become slower: two packets now and then.
    let mut path = Path::new(50_000);
    for _ in 0..20 {
        path.round += 1;
        path.ack(Duration::from_millis(24), 2_400);
    }
    assert_eq!(path.aggregation.extra(), 2_400);
    assert!(!path.aggregation.take_growth());
}

#[test]
fn a_silence_that_the_window_bridges_anyway_is_no_reason_to_grow() {
    let mut path = Path::new(8_000);
    path.round += 1;
    path.ack(RTT * 2, 8_000);
    assert_eq!(path.aggregation.extra(), 8_000);
}

#[test]
fn a_burst_is_forgotten_where_the_bandwidth_is_met_exactly() {
    let mut path = Path::new(8_000);
    path.run_evenly(4);
    path.ack(Duration::from_millis(90), 8_000);
    assert_eq!(path.aggregation.extra(), 16_000);
    path.run_evenly(4);
    assert_eq!(path.aggregation.extra(), 16_000, "it is remembered for some rounds");
    path.run_evenly(10);
    assert!(path.aggregation.extra() <= 1_000, "{}", path.aggregation.extra());
}
