//! Waiting for the end of a stream that this end sends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fulmar_proto::VarInt;

use super::SendStream;
use crate::error::StoppedError;
use crate::shared::{Completion, Inner, SlotKey, Ticket};

impl SendStream {
    /// Waits for the end of the stream: `None` when the peer has received all of it, or what
    /// [`reset_at`](Self::reset_at) has left of it; `Some(code)` when the peer asked to stop (STOP_SENDING, RFC 9000 §19.5).
    ///
    /// The future does not borrow the stream and may outlive it. Cancellation safe.
    ///
    /// # Errors
    /// If this end has reset the stream, or the connection ends first. What was acknowledged until then, be it with the peer's
    /// last packet, counts as received. The future is no handle: it does not keep the connection open.
    pub fn stopped(&self) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + 'static {
        self.connection.lock().streams.share(self.key);
        Stopped { connection: self.connection.inner().clone(), key: self.key, ticket: None }
    }

    /// Whether the stream has ended: see [`stopped`](Self::stopped).
    ///
    /// # Errors
    /// If this end has reset the stream, or the connection ends first.
    pub fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<VarInt>, StoppedError>> {
        poll_completion(self.connection.inner(), self.key, &mut self.stopping, cx)
    }
}

/// The future of [`SendStream::stopped`].
struct Stopped {
    connection: Arc<Inner>,
    key: SlotKey,
    ticket: Option<Ticket>,
}

impl Future for Stopped {
    type Output = Result<Option<VarInt>, StoppedError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { connection, key, ticket } = &mut *self;
        poll_completion(connection, *key, ticket, cx)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        state.streams.completing(self.key).leave(&mut self.ticket);
        state.streams.release(self.key);
    }
}

fn poll_completion(
    connection: &Inner,
    key: SlotKey,
    ticket: &mut Option<Ticket>,
    cx: &Context<'_>,
) -> Poll<Result<Option<VarInt>, StoppedError>> {
    let mut state = connection.lock();
    match state.streams.completion(key) {
        Some(Completion::Received) => Poll::Ready(Ok(None)),
        Some(Completion::Stopped(code)) => Poll::Ready(Ok(Some(code))),
        Some(Completion::Reset) => Poll::Ready(Err(StoppedError::Reset)),
        None => {
            state.check()?;
            state.streams.completing(key).wait(ticket, cx);
            Poll::Pending
        }
    }
}
