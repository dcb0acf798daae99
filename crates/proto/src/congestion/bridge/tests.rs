use super::*;

const RTT: Duration = Duration::from_millis(10);

/// A window of 20 kB in 10 ms, 2 MB/s, over a path that hands over what it has for a while all at once.
struct Path {
    bridge: Bridge,
    delivered: u64,
    now: Instant,
}

impl Path {
    fn new() -> Self {
        let now = Instant::from_millis(1_000);
        Self { bridge: Bridge::new(now), delivered: 0, now }
    }

    /// So many bytes are acknowledged after this time; whether with them a round ends.
    fn ack(&mut self, after: Duration, bytes: u64, ends_round: bool) -> u64 {
        self.now += after;
        let prior_delivered = if ends_round { self.delivered } else { 0 };
        self.delivered += bytes;
        let delivery = Delivery {
            window: 20_000,
            pace: 2_500_000,
            acked_bytes: bytes,
            prior_delivered,
            total_delivered: self.delivered,
            min_rtt: RTT,
            smoothed_rtt: RTT,
        };
        self.bridge.on_ack(self.now, &delivery);
        self.bridge.get()
    }

    /// Packets come evenly for so long, at the rate of the window.
    fn run(&mut self, time: Duration) -> u64 {
        let acks = time.as_millis();
        (0..acks).map(|n| self.ack(Duration::from_millis(1), 2_000, n % 10 == 0)).last().unwrap_or_default()
    }
}

#[test]
fn a_path_that_delivers_evenly_needs_no_bridge() {
    let mut path = Path::new();
    assert_eq!(path.run(Duration::from_secs(2)), 0);
}

#[test]
fn a_silence_after_which_the_whole_flight_comes_is_bridged_by_what_the_pace_gives_in_it() {
    let mut path = Path::new();
    path.run(Duration::from_millis(50));
    assert_eq!(
        path.ack(Duration::from_millis(80), 20_000, true),
        2 * 20_000,
        "no more than twice what was held back"
    );
    path.run(Duration::from_millis(50));
    // 60 ms of it are more than the window bridges.
    assert_eq!(path.ack(Duration::from_millis(80), 60_000, true), 150_000 - 30_000, "as much again");
    path.run(Duration::from_millis(50));
    assert_eq!(path.ack(Duration::from_millis(80), 140_000, true), 150_000, "enough for the silence");
}

#[test]
fn a_silence_that_the_window_bridges_needs_nothing_and_longer_ones_ever_more() {
    let bridge = |silence| {
        let mut path = Path::new();
        path.run(Duration::from_millis(50));
        path.ack(Duration::from_micros(silence), 20_000, true)
    };
    assert_eq!(bridge(20_000), 0);
    assert_eq!(bridge(20_100), 250);
    assert_eq!(bridge(22_000), 5_000);
}

#[test]
fn a_silence_after_which_little_comes_is_none_of_the_whole_path() {
    let bridge = |bytes| {
        let mut path = Path::new();
        path.run(Duration::from_millis(50));
        path.ack(Duration::from_millis(80), bytes, true)
    };
    assert_eq!(bridge(10_000), 0);
    assert_eq!(bridge(10_100), 400);
}

#[test]
fn a_pause_of_the_sender_is_no_silence_of_the_path() {
    let mut path = Path::new();
    path.run(Duration::from_millis(50));
    path.now += Duration::from_millis(500);
    let now = path.now;
    path.bridge.on_begin(now);
    assert_eq!(path.ack(RTT, 20_000, true), 0);
}

#[test]
fn a_bridge_is_forgotten_after_64_rounds_without_a_stop() {
    let mut path = Path::new();
    path.run(Duration::from_millis(50));
    path.ack(Duration::from_millis(80), 20_000, true);
    let rounds = |path: &mut Path, rounds: u32| path.run(RTT * rounds);
    assert_eq!(rounds(&mut path, HALF_FILTER_ROUNDS as u32), 40_000);
    assert_eq!(rounds(&mut path, HALF_FILTER_ROUNDS as u32), 0);
    path.ack(Duration::from_millis(80), 20_000, true);
    path.bridge.forget();
    assert_eq!(path.bridge.get(), 0);
}

#[test]
fn on_a_path_so_short_that_it_measures_threads_nothing_is_bridged() {
    let mut bridge = Bridge::new(Instant::ZERO);
    let delivery = |delivered: u64| Delivery {
        window: 20_000,
        pace: 100_000_000,
        acked_bytes: 20_000,
        prior_delivered: delivered,
        total_delivered: delivered + 20_000,
        min_rtt: MEANINGLESS_RTT,
        smoothed_rtt: MEANINGLESS_RTT,
    };
    bridge.on_ack(Instant::from_millis(1), &delivery(0));
    bridge.on_ack(Instant::from_millis(9), &delivery(20_000));
    assert_eq!(bridge.get(), 0);
}
