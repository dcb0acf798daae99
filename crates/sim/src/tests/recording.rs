//! What is kept for plots.

use super::*;
use crate::{DropReason, DropSample, QueueLimit, QueueSample};

/// 10 Mbit/s: 1,250 bytes take a millisecond.
fn recorded(interval: Duration) -> Line {
    let queue = QueueLimit { bytes: Some(2_500), time: None };
    let mut line = Line::new(1, LinkConfig { rate_bps: Some(10_000_000), queue, ..LinkConfig::default() });
    line.world.record(line.link, line.a, interval);
    line
}

fn burst(line: &mut Line) {
    for n in 0..4 {
        line.send(n, 1_250);
    }
    line.drain();
}

/// Microseconds, bytes, and the most bytes since the sample before.
fn samples(line: &Line) -> Vec<(u64, u64, u64)> {
    let trace = line.world.link_trace(line.link, line.a).expect("this direction is recorded");
    trace
        .queue
        .iter()
        .map(|QueueSample { at, bytes, bytes_max }| (at.as_nanos() / 1_000, *bytes, *bytes_max))
        .collect()
}

#[test]
fn each_change_of_the_queue_and_each_drop_is_kept() {
    let mut line = recorded(Duration::ZERO);
    burst(&mut line);
    assert_eq!(
        samples(&line),
        [
            (0, 0, 0),
            (0, 1_250, 1_250),
            (0, 2_500, 2_500),
            (0, 2_500, 2_500),
            (1_000, 1_250, 2_500),
            (2_000, 0, 1_250)
        ]
    );
    let trace = line.world.link_trace(line.link, line.a).expect("this direction is recorded");
    let at = Instant::ZERO;
    assert_eq!(trace.drops, [DropSample { at, reason: DropReason::QueueFull, size: 1_250, index: 3 }]);
    assert_eq!(line.world.link_trace(line.link, line.b), None);
}

#[test]
fn thinned_samples_keep_the_peaks_and_the_end() {
    let mut line = recorded(millis(10));
    line.send(0, 1_250);
    line.drain();
    line.world.advance(Instant::from_micros(9_500));
    burst(&mut line);
    assert_eq!(samples(&line), [(0, 0, 0), (10_500, 1_250, 2_500), (11_500, 0, 1_250)]);
}

#[test]
fn recording_changes_nothing() {
    let run = |record: bool| {
        let mut line = recorded(Duration::ZERO);
        if !record {
            line = Line::new(
                1,
                LinkConfig {
                    rate_bps: Some(10_000_000),
                    queue: QueueLimit { bytes: Some(2_500), time: None },
                    ..LinkConfig::default()
                },
            );
        }
        line.send_every(Duration::from_micros(800), 200, 1_250)
    };
    assert_eq!(run(true), run(false));
}
