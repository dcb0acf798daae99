//! Whether anything is asked for on a connection over TCP, and taken of what is answered.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http_body::{Body, Frame, SizeHint};
use tokio::time::sleep;

use crate::serve::transfers::{Transfers, UnderWay};

/// The signs of life of a connection: requests, and parts of bodies that the client makes room for. Its answers to PING are none: a client
/// may give them for ever and want nothing.
#[derive(Debug)]
pub(super) struct Pulse {
    under_way: Transfers,
    last: Mutex<Instant>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { under_way: Transfers::default(), last: Mutex::new(Instant::now()) }
    }
}

impl Pulse {
    /// A request has come.
    pub(super) fn begin(self: &Arc<Self>) -> Beat {
        self.beat();
        Beat { pulse: self.clone(), _under_way: self.under_way.begin() }
    }

    /// Waits until no request has been under way for `max`.
    pub(super) async fn idle(&self, max: Duration) {
        loop {
            self.under_way.none().await;
            let left = max.saturating_sub(self.silence());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    /// Waits until there was no sign of life for `max`, whatever is under way.
    pub(super) async fn still(&self, max: Duration) {
        loop {
            let left = max.saturating_sub(self.silence());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    fn silence(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn beat(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct Beat {
    pulse: Arc<Pulse>,
    _under_way: UnderWay,
}

impl Beat {
    /// The body of the response, each part of which is a sign of life.
    pub(super) fn with<B>(self, body: B) -> Beating<B> {
        Beating { body, beat: self }
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.pulse.beat();
    }
}

/// The body of a response.
#[derive(Debug)]
pub(super) struct Beating<B> {
    body: B,
    beat: Beat,
}

impl<B: Body + Unpin> Body for Beating<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() {
            self.beat.pulse.beat();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
