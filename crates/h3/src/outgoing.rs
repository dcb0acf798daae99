//! A message that goes: a head, and a body as fast as the peer takes it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use fulmar::{SendStream, VarInt, WriteError};
use fulmar_h3_proto::ErrorCode;
use http_body::{Body, Frame};

use crate::error::Error;
use crate::incoming::CANCELLED;
use crate::shared::{Shared, code, now};

/// The sending side of the stream of a request.
pub(crate) struct Outgoing {
    shared: Arc<Shared>,
    id: u64,
    stream: SendStream,
    is_over: bool,
    /// All of the message was written.
    is_finished: bool,
}

impl Outgoing {
    pub(crate) fn new(shared: Arc<Shared>, stream: SendStream) -> Self {
        let id = stream.id().as_u64();
        Self { shared, id, stream, is_over: false, is_finished: false }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn stream(&self) -> &SendStream {
        &self.stream
    }

    /// Whether a message was written to its end.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    pub(crate) fn set_priority(&self, priority: fulmar_h3_proto::Priority) {
        let _ = self.stream.set_priority(fulmar::Priority::new(priority.urgency, priority.incremental));
    }

    /// Sends a head, and what follows it, to the end.
    pub(crate) async fn send_message<B>(&mut self, head: Bytes, body: Option<B>) -> Result<(), Error>
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut waiting = vec![head];
        if let Some(body) = body {
            let mut body = pin!(body);
            while !body.is_end_stream() {
                let Some(frame) = self.next_frame(&mut waiting, body.as_mut()).await? else { break };
                self.add_frame(&mut waiting, frame)?;
                if waiting.iter().map(Bytes::len).sum::<usize>() >= WRITE_MIN {
                    self.write(&mut waiting).await?;
                }
            }
        }
        self.shared.with(|state| state.h3.check_finish(self.id))?;
        let last = waiting.pop().unwrap_or_default();
        self.write(&mut waiting).await?;
        let finished = self.stream.finish_with(last).await;
        self.written(finished)?;
        (self.is_over, self.is_finished) = (true, true);
        // Only now, so that a client which gives it up until then is seen to do so.
        Ok(self.shared.with(|state| state.h3.finish(self.id))?)
    }

    /// Sends a head that another one follows.
    pub(crate) async fn send_informational(&mut self, head: Bytes) -> Result<(), Error> {
        self.write(&mut vec![head]).await
    }

    /// Tells the peer that nothing more comes, and why.
    pub(crate) fn reset(&mut self, code: VarInt) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.shared.with(|state| state.h3.stop_sending(self.id));
            let _ = self.stream.reset(code);
        }
    }

    /// The next frame of the body. What waits is written first if the body has none ready.
    async fn next_frame<B>(
        &mut self,
        waiting: &mut Vec<Bytes>,
        mut body: Pin<&mut B>,
    ) -> Result<Option<Frame<B::Data>>, Error>
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut poll = |cx: &mut Context<'_>| {
            let frame = body.as_mut().poll_frame(cx).map(Option::transpose);
            frame.map_err(|error| Error::Body(error.into()))
        };
        match poll_fn(|cx| Poll::Ready(poll(cx))).await {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                self.write(waiting).await?;
                poll_fn(poll).await
            }
        }
    }

    fn add_frame<D: Buf>(&mut self, waiting: &mut Vec<Bytes>, frame: Frame<D>) -> Result<(), Error> {
        match frame.into_data() {
            Ok(mut data) => {
                let len = data.remaining();
                if len == 0 {
                    return Ok(());
                }
                let (header, priority) = self.shared.with(|state| {
                    (state.h3.send_data(self.id, len as u64), state.priorities.remove(&self.id))
                });
                if let Some(priority) = priority {
                    self.set_priority(priority);
                }
                waiting.push(Bytes::copy_from_slice(header?.as_ref()));
                // Free of a copy where the data are `Bytes`.
                waiting.push(data.copy_to_bytes(len));
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    waiting.push(self.shared.with(|state| state.h3.send_trailers(self.id, &trailers))?);
                }
            }
        }
        Ok(())
    }

    async fn write(&mut self, waiting: &mut Vec<Bytes>) -> Result<(), Error> {
        if waiting.is_empty() {
            return Ok(());
        }
        let written = self.stream.write_chunks(waiting).await;
        waiting.clear();
        self.written(written)
    }

    fn written(&mut self, result: Result<(), WriteError>) -> Result<(), Error> {
        let Err(error) = result else { return Ok(()) };
        if let WriteError::Stopped(_) = error {
            self.on_stopped()?;
        }
        Err(error.into())
    }

    /// The peer wants no more.
    pub(crate) fn on_stopped(&mut self) -> Result<(), Error> {
        self.is_over = true;
        let result = self.shared.with(|state| state.h3.on_stop_sending(Some(self.id), now()));
        self.shared.check(result)
    }
}

/// Small parts of a body are collected until there are so many bytes, as long as they are there.
const WRITE_MIN: usize = 16 * 1024;

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reset(CANCELLED);
        self.shared.lock().priorities.remove(&self.id);
    }
}

/// The code for an error at this end.
pub(crate) fn code_of(error: &Error) -> VarInt {
    match error {
        Error::Protocol(error) => code(error.code()),
        Error::Body(_) | Error::Send(_) => code(ErrorCode::InternalError),
        _ => CANCELLED,
    }
}
