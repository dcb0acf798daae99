use super::*;

#[test]
fn a_recording_covers_the_whole_run_however_long_it_is() {
    for interval in [Duration::ZERO, Duration::from_micros(1)] {
        let mut trace = LinkTrace::new(interval);
        let samples = 3 * ENTRIES_MAX as u64 + 7;
        for n in 0..samples {
            // One peak in the part that is thinned most.
            let bytes = if n == 1_000 { 9_000 } else { 1 + n % 2 };
            trace.on_queue(Instant::from_micros(n), bytes);
        }
        let (first, last) = (trace.queue[0].at, trace.queue[trace.queue.len() - 1].at);
        let apart = Duration::from_micros(8);
        assert!(first <= Instant::ZERO + apart, "{first:?}");
        assert!(Instant::from_micros(samples - 1).saturating_since(last) <= apart, "{last:?}");
        assert!((ENTRIES_MAX / 4..=ENTRIES_MAX).contains(&trace.queue.len()), "{}", trace.queue.len());
        let gaps = trace.queue.windows(2).map(|two| two[1].at - two[0].at);
        assert!(gaps.max() <= Some(apart));
        assert_eq!(trace.queue.iter().map(|sample| sample.bytes_max).max(), Some(9_000));
    }
}

#[test]
fn of_too_many_drops_and_marks_some_of_all_times_are_kept() {
    let mut trace = LinkTrace::new(Duration::ZERO);
    let count = 2 * ENTRIES_MAX as u64 + 5;
    for index in 0..count {
        let at = Instant::from_micros(index);
        trace.on_drop(DropSample { at, reason: DropReason::QueueFull, size: 1, index });
        trace.on_mark(at);
    }
    let kept = trace.drops.len();
    assert!((ENTRIES_MAX / 2..=ENTRIES_MAX).contains(&kept), "{kept}");
    assert_eq!(trace.left_out, 2 * (count - kept as u64));
    assert_eq!(trace.drops.last().map(|drop| drop.index), Some(count - 1));
    assert!(trace.drops.windows(2).all(|two| two[1].index - two[0].index == 4));
    assert_eq!(trace.marks, trace.drops.iter().map(|drop| drop.at).collect::<Vec<_>>());
}
