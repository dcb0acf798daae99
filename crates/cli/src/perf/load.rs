//! One thing done many times, by several at once, and how long each took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::{End, until_true};
use super::latency::Histogram;
use crate::failure::Failure;

/// How long a measurement whose time is over waits for what is under way.
const GRACE: Duration = Duration::from_secs(1);

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
    /// Does `once` again and again. The first failure ends all. When the time is over nothing more is begun, and what is under way
    /// counts if it is completed within [`GRACE`].
    pub(super) async fn run<F, Fut>(self, once: F) -> Result<Done, Failure>
    where
        F: Fn() -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let start = Instant::now();
        let left = Arc::new(AtomicU64::new(self.count));
        let (give_up, given_up) = watch::channel(false);
        let mut workers = JoinSet::new();
        for _ in 0..u64::from(self.concurrent).min(self.count) {
            workers.spawn(work(once.clone(), left.clone(), given_up.clone()));
        }
        let end = async {
            self.end.come().await;
            left.store(0, Ordering::Relaxed);
            tokio::time::sleep(GRACE).await;
            give_up.send_replace(true);
            std::future::pending().await
        };
        let latencies = tokio::select! {
            latencies = collect(workers) => latencies?,
            never = end => never,
        };
        Ok(Done { latencies, duration: start.elapsed() })
    }
}

async fn collect(mut workers: JoinSet<Result<Histogram, Failure>>) -> Result<Histogram, Failure> {
    let mut latencies = Histogram::default();
    while let Some(result) = workers.join_next().await {
        latencies.merge(&result.unwrap_or(Err(Failure::Thread("measurement")))?);
    }
    Ok(latencies)
}

impl Done {
    pub(super) fn per_second(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 { self.latencies.count() as f64 / seconds } else { 0.0 }
    }
}

/// Does one after the other, as long as there are some left. What is under way when all are `given_up` does not count.
async fn work<F, Fut>(
    once: F,
    left: Arc<AtomicU64>,
    given_up: watch::Receiver<bool>,
) -> Result<Histogram, Failure>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<(), Failure>>,
{
    let mut latencies = Histogram::default();
    let mut given_up = std::pin::pin!(until_true(given_up));
    let take_one = |left: u64| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one).is_ok() {
        let start = Instant::now();
        tokio::select! {
            biased;
            result = once() => result?,
            () = &mut given_up => break,
        }
        latencies.record(start.elapsed());
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(limit: Option<Duration>) -> End {
        End { limit, interrupted: watch::channel(false).1 }
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
    fn what_never_ends_is_given_up_when_the_time_is_over() {
        let load = Load { count: 10, concurrent: 3, end: end(Some(Duration::from_millis(20))) };
        let begun = Arc::new(AtomicU64::new(0));
        let counter = begun.clone();
        let runtime = crate::net::runtime().expect("a runtime");
        let done = runtime.block_on(load.run(move || {
            let is_quick = counter.fetch_add(1, Ordering::Relaxed) < 4;
            async move { if is_quick { Ok(()) } else { std::future::pending().await } }
        }));
        let done = done.expect("done");
        assert_eq!((done.latencies.count(), begun.load(Ordering::Relaxed)), (4, 7));
        assert!(done.duration >= GRACE);
    }

    #[test]
    fn a_failure_ends_all() {
        let load = Load { count: 1000, concurrent: 3, end: end(None) };
        let failure = run(load, || Err(Failure::Interrupted)).expect_err("a failure");
        assert!(matches!(failure, Failure::Interrupted));
    }
}
