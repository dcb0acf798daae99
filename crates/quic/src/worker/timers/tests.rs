use std::future::poll_fn;
use std::task::Poll;

use tokio::runtime::{Builder, Runtime};

use super::*;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Waits for a deadline so far ahead. Returns how late the alarm rings, and how often it asked.
async fn ring(alarm: &mut Alarm, ahead: Duration) -> (Duration, u32) {
    let deadline = clock::now() + ahead;
    let mut asked = 0;
    let rings = poll_fn(|cx| {
        asked += 1;
        if alarm.is_due(Some(deadline), cx) {
            return Poll::Ready(());
        }
        Poll::Pending
    });
    tokio::time::timeout(Duration::from_secs(10), rings).await.expect("it rings");
    // What rings because it was set for an earlier deadline is asked again, as the worker does.
    let now = clock::now();
    if now < deadline {
        return Box::pin(ring(alarm, deadline - now)).await;
    }
    (now - deadline, asked)
}

/// Sets the alarm without waiting for it.
async fn set(alarm: &mut Alarm, ahead: Duration) {
    let deadline = clock::now() + ahead;
    poll_fn(|cx| {
        assert!(!alarm.is_due(Some(deadline), cx));
        Poll::Ready(())
    })
    .await;
}

#[test]
fn a_deadline_in_the_past_is_due_at_once() {
    runtime().block_on(async {
        for mut alarm in [Alarm::new(), Alarm::with(None)] {
            let past = clock::now();
            let due = poll_fn(|cx| Poll::Ready(alarm.is_due(Some(past), cx))).await;
            assert!(due);
        }
    });
}

#[test]
fn without_a_deadline_nothing_is_due() {
    runtime().block_on(async {
        let mut alarm = Alarm::new();
        assert!(!poll_fn(|cx| Poll::Ready(alarm.is_due(None, cx))).await);
    });
}

#[test]
fn without_a_fine_timer_that_of_the_runtime_rings() {
    runtime().block_on(async {
        let mut alarm = Alarm::with(None);
        set(&mut alarm, NEAR / 2).await;
        ring(&mut alarm, micros(300)).await;
        ring(&mut alarm, 2 * NEAR).await;
    });
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod fine {
    use super::*;

    /// With the timer of the runtime none of these is less than 700 µs late, but where its milliseconds happen to end. What else the
    /// machine does makes some rings late, so only a quarter of them has to be in time.
    #[test]
    fn a_near_deadline_rings_in_less_than_a_millisecond() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            let mut late = Vec::new();
            for _ in 0..100 {
                late.push(ring(&mut alarm, micros(300)).await.0);
            }
            late.sort_unstable();
            assert!(late[25] < micros(400), "{late:?}");
        });
    }

    #[test]
    fn an_earlier_deadline_rings_before_a_later_one() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            let mut late = Vec::new();
            for first in [NEAR / 2, 10 * NEAR].into_iter().cycle().take(20) {
                set(&mut alarm, first).await;
                late.push(ring(&mut alarm, micros(500)).await.0);
            }
            late.sort_unstable();
            assert!(late[5] < NEAR / 4, "{late:?}");
        });
    }

    #[test]
    fn a_later_deadline_rings_after_an_earlier_one() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            for ahead in [micros(2_000), NEAR / 2, 2 * NEAR] {
                set(&mut alarm, micros(400)).await;
                let (_, asked) = ring(&mut alarm, ahead).await;
                // Once at first, at the earlier deadline, at the later one. Late deadlines are left to the runtime, whose
                // timer may ring for what it was set for before.
                assert!(asked <= 4, "asked {asked} times");
            }
        });
    }

    #[test]
    fn far_deadlines_are_left_to_the_runtime() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            set(&mut alarm, 2 * NEAR).await;
            assert_eq!(alarm.fine.as_ref().expect("a timer").set_for(), None);
            // One that was set for the runtime is not set there again.
            let until = alarm.sleeps_until.expect("it is set");
            set(&mut alarm, 3 * NEAR).await;
            assert_eq!(alarm.sleeps_until, Some(until));
        });
    }

    #[test]
    fn a_timer_that_is_set_early_enough_is_left_alone() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            set(&mut alarm, NEAR / 2).await;
            let set_for = alarm.fine.as_ref().expect("a timer").set_for();
            set(&mut alarm, NEAR / 2).await;
            assert_eq!(alarm.fine.as_ref().expect("a timer").set_for(), set_for);
        });
    }

    /// However close deadlines are: those of many connections share a ring.
    #[test]
    fn rings_are_apart() {
        runtime().block_on(async {
            let mut alarm = Alarm::new();
            let began = clock::now();
            for _ in 0..50 {
                ring(&mut alarm, micros(10)).await;
            }
            assert!(clock::now() - began >= 48 * micros(250));
        });
    }

    /// No ring is lost, whichever thread hears of it and whether the worker sleeps already.
    #[test]
    fn every_deadline_rings() {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let rings = runtime.spawn(async {
            let mut alarm = Alarm::new();
            for round in 0..2_000 {
                ring(&mut alarm, micros(round % 40 * 10)).await;
            }
        });
        runtime.block_on(rings).expect("all of them rang");
    }

    #[test]
    fn a_paused_clock_of_the_runtime_holds_no_near_deadline() {
        let runtime =
            Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let mut alarm = Alarm::new();
            let deadline = clock::now() + micros(500);
            poll_fn(|cx| if alarm.is_due(Some(deadline), cx) { Poll::Ready(()) } else { Poll::Pending })
                .await;
            assert!(clock::now() >= deadline);
        });
    }
}
