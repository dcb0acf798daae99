//! One thing done many times, by several at once, and how long each took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client::End;
use super::latency::Histogram;
use crate::failure::Failure;

/// How much is to be done.
#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) count: u64,
    /// How many are under way at once.
    pub(super) concurrent: u32,
    /// When to end, even if less than `count` are done.
    pub(super) end: End,
}

/// What was done.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) latencies: Histogram,
    pub(super) duration: Duration,
}

impl Load {
    /// Does `once` again and again. The first failure ends all; when the time is over, what is under way is
    /// completed and nothing more is begun.
    pub(super) async fn run<F, Fut>(self, once: F) -> Result<Done, Failure>
    where
        F: Fn() -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let start = Instant::now();
        let left = Arc::new(AtomicU64::new(self.count));
        let mut workers = JoinSet::new();
        for _ in 0..u64::from(self.concurrent).min(self.count) {
            workers.spawn(work(once.clone(), left.clone()));
        }
        let mut latencies = Histogram::default();
        let mut time_over = std::pin::pin!(self.end.come());
        let mut in_time = true;
        loop {
            tokio::select! {
                result = workers.join_next() => match result {
                    Some(result) => latencies.merge(&result.unwrap_or(Err(Failure::Thread("measurement")))?),
                    None => break,
                },
                () = &mut time_over, if in_time => {
                    in_time = false;
                    left.store(0, Ordering::Relaxed);
                }
            }
        }
        Ok(Done { latencies, duration: start.elapsed() })
    }
}

impl Done {
    pub(super) fn per_second(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 { self.latencies.count() as f64 / seconds } else { 0.0 }
    }
}

/// Does one after the other, as long as there are some left.
async fn work<F, Fut>(once: F, left: Arc<AtomicU64>) -> Result<Histogram, Failure>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<(), Failure>>,
{
    let mut latencies = Histogram::default();
    let take_one = |left: u64| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok() {
        let start = Instant::now();
        once().await?;
        latencies.record(start.elapsed());
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(limit: Option<Duration>) -> End {
        End { limit, interrupted: tokio::sync::watch::channel(false).1 }
    }

    fn run(
        load: Load,
        once: impl Fn() -> Result<(), Failure> + Clone + Send + 'static,
    ) -> Result<Done, Failure> {
        let runtime = crate::net::runtime().expect("a runtime");
        runtime.block_on(load.run(move || {
            let result = once();
            async {
                tokio::task::yield_now().await;
                result
            }
        }))
    }

    #[test]
    fn exactly_as_many_are_done_as_asked_for() {
        for (count, concurrent) in [(0, 1), (1, 10), (100, 7)] {
            let made = Arc::new(AtomicU64::new(0));
            let counter = made.clone();
            let load = Load { count, concurrent, end: end(None) };
            let done = run(load, move || {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            assert_eq!(done.expect("done").latencies.count(), count);
            assert_eq!(made.load(Ordering::Relaxed), count);
        }
    }

    #[test]
    fn time_ends_what_has_no_end() {
        let load = Load { count: u64::MAX, concurrent: 3, end: end(Some(Duration::from_millis(20))) };
        let done = run(load, || Ok(())).expect("done");
        assert!(done.duration >= Duration::from_millis(20) && done.latencies.count() > 0);
        assert!(done.per_second() > 0.0);
    }

    #[test]
    fn a_failure_ends_all() {
        let load = Load { count: 1000, concurrent: 3, end: end(None) };
        let failure = run(load, || Err(Failure::Interrupted)).expect_err("a failure");
        assert!(matches!(failure, Failure::Interrupted));
    }
}
