//! Where the requests of a connection are served.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fulmar::Instant;
use tokio::task::JoinSet;

use crate::shared::now;

/// Where requests are served: most of them at once, in the task of their connection. One that has to wait for something goes on in a
/// task of its own.
pub(super) struct Places<F> {
    /// The memory for a request, which is large: used again where one request follows the other.
    spare: Option<Place<F>>,
    /// So many requests get a task from the beginning.
    tasks: u32,
}

type Place<F> = Pin<Box<Option<F>>>;

impl<F> Default for Places<F> {
    fn default() -> Self {
        Self { spare: None, tasks: 0 }
    }
}

impl<F> Places<F> {
    /// Gives back the memory that no request needs now.
    pub(super) fn rest(&mut self) {
        self.spare = None;
    }
}

impl<F: Future<Output = ()> + Send + 'static> Places<F> {
    /// Begins to serve a request at `start`, and returns the time then.
    pub(super) fn start(
        &mut self,
        request: impl FnOnce() -> F,
        requests: &mut JoinSet<()>,
        start: Instant,
        cx: &mut Context<'_>,
    ) -> Instant {
        let mut place = self.spare.take().unwrap_or_else(|| Box::pin(None));
        place.set(Some(request()));
        if self.tasks > 0 {
            self.tasks -= 1;
            requests.spawn(finish(place));
            return start;
        }
        // A service that panics does so for this request alone, as in a task.
        let polled = catch_unwind(AssertUnwindSafe(|| poll_place(&mut place, cx)));
        let end = now();
        if end.saturating_since(start) > BUSY_MAX {
            self.tasks = TASKS_IN_A_ROW;
        }
        if let Ok(Poll::Pending) = polled {
            requests.spawn(finish(place));
        } else {
            place.set(None);
            self.spare = Some(place);
        }
        end
    }
}

fn poll_place<F: Future<Output = ()>>(place: &mut Place<F>, cx: &mut Context<'_>) -> Poll<()> {
    match place.as_mut().as_pin_mut() {
        Some(request) => request.poll(cx),
        None => Poll::Ready(()),
    }
}

async fn finish<F: Future<Output = ()>>(mut place: Place<F>) {
    poll_fn(|cx| poll_place(&mut place, cx)).await;
}

/// A service that works longer than this before it answers or waits is one that other threads should share: requests get tasks.
const BUSY_MAX: Duration = Duration::from_micros(200);
/// How many do, until it is tried again.
const TASKS_IN_A_ROW: u32 = 100;
