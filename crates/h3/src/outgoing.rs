//! A message that goes: a head, and a body as fast as the peer takes it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use fulmar::{SendStream, VarInt, WriteError};
use fulmar_h3_proto::{ErrorCode, Role};
use http::{Response, StatusCode, header};
use http_body::{Body, Frame};

use crate::date;
use crate::error::Error;
use crate::incoming::CANCELLED;
use crate::shared::{Shared, code, now};

/// The sending side of the stream of a request.
pub(crate) struct Outgoing {
    shared: Arc<Shared>,
    id: u64,
    stream: SendStream,
    is_over: bool,
}

impl Outgoing {
    pub(crate) fn new(shared: Arc<Shared>, stream: SendStream) -> Self {
        let id = stream.id().as_u64();
        Self { shared, id, stream, is_over: false }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn stream(&self) -> &SendStream {
        &self.stream
    }

    pub(crate) fn set_priority(&self, priority: fulmar_h3_proto::Priority) {
        let _ = self.stream.set_priority(fulmar::Priority::new(priority.urgency, priority.incremental));
    }

    /// Sends a response to the end; without a body if the request has none in its answer, or its status none (RFC 9110 §6.4.1).
    pub(crate) async fn send_response<B>(
        &mut self,
        response: Response<B>,
        has_body: bool,
    ) -> Result<(), Error>
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = response.into_parts();
        let has_body = has_body && !matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if parts.status == StatusCode::NO_CONTENT {
            // RFC 9110 §8.6: there must be none. What makes responses by rote counts the body that nobody gets.
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        if self.shared.adds_date {
            date::add_to(&mut parts.headers);
        }
        let mut waiting = Waiting::with_room_for(&body);
        self.shared.with(|state| state.h3.write_response(self.id, &parts, has_body, &mut waiting.copied))?;
        drop(parts);
        self.send_rest(waiting, has_body.then_some(body)).await
    }

    /// Sends a head, and what follows it, to the end.
    pub(crate) async fn send_message<B>(&mut self, head: Bytes, body: Option<B>) -> Result<(), Error>
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let mut waiting = Waiting::default();
        waiting.add(head);
        self.send_rest(waiting, body).await
    }

    async fn send_rest<B>(&mut self, mut waiting: Waiting, body: Option<B>) -> Result<(), Error>
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let Some(body) = body {
            let mut body = pin!(body);
            let mut is_long = false;
            while !body.is_end_stream() {
                let Some(frame) = self.next_frame(&mut waiting, body.as_mut()).await? else { break };
                self.add_frame(&mut waiting, frame)?;
                if waiting.len >= WRITE_MIN {
                    if !std::mem::replace(&mut is_long, true) {
                        let _ = self.stream.set_unsent_max(UNSENT_MAX);
                    }
                    self.write(&mut waiting).await?;
                }
            }
        }
        self.shared.with(|state| state.h3.check_finish(self.id))?;
        let mut last = waiting.take_last();
        self.write(&mut waiting).await?;
        let finished = self.wait(|stream, cx| stream.poll_finish_with(cx, &mut last)).await;
        self.written(finished)?;
        self.is_over = true;
        // Only now, so that a client which gives it up until then is seen to do so.
        Ok(self.shared.with(|state| state.h3.finish(self.id))?)
    }

    /// Sends a head that another one follows.
    pub(crate) async fn send_informational(&mut self, head: Bytes) -> Result<(), Error> {
        let mut waiting = Waiting::default();
        waiting.add(head);
        self.write(&mut waiting).await
    }

    /// Tells the peer that nothing more comes, and why: a fault of its own comes before what this end has made of it.
    pub(crate) fn reset(&mut self, own: VarInt) {
        if !std::mem::replace(&mut self.is_over, true) {
            let failed = self.shared.with(|state| {
                state.h3.stop_sending(self.id);
                state.take_failed(self.id)
            });
            let _ = self.stream.reset(failed.map_or(own, code));
        }
    }

    /// The next frame of the body. What waits is written first if the body has none ready.
    async fn next_frame<B>(
        &mut self,
        waiting: &mut Waiting,
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
                self.wait(|_, cx| poll(cx)).await
            }
        }
    }

    fn add_frame<D: Buf>(&mut self, waiting: &mut Waiting, frame: Frame<D>) -> Result<(), Error> {
        match frame.into_data() {
            Ok(mut data) => {
                let len = data.remaining();
                if len == 0 {
                    return Ok(());
                }
                let (header, changed) = self.shared.with(|state| {
                    (state.h3.send_data(self.id, len as u64), state.priorities.remove(&self.id))
                });
                if let Some(priority) = changed.and_then(|changed| changed.new) {
                    self.set_priority(priority);
                }
                waiting.copy(header?.as_ref());
                // Free of a copy where the data are `Bytes`.
                waiting.add(data.copy_to_bytes(len));
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    waiting.add(self.shared.with(|state| state.h3.send_trailers(self.id, &trailers))?);
                }
            }
        }
        Ok(())
    }

    async fn write(&mut self, waiting: &mut Waiting) -> Result<(), Error> {
        waiting.end_copied();
        if waiting.chunks.is_empty() {
            return Ok(());
        }
        let chunks = &mut waiting.chunks;
        let written = self.wait(|stream, cx| poll_write_all(stream, chunks, cx)).await;
        waiting.clear();
        self.written(written)
    }

    /// Waits for something of the stream or the body. If the response gets another priority meanwhile, what was written and not sent goes
    /// by that.
    async fn wait<T>(&mut self, mut poll: impl FnMut(&mut SendStream, &mut Context<'_>) -> Poll<T>) -> T {
        poll_fn(|cx| {
            let polled = poll(&mut self.stream, cx);
            if polled.is_pending() {
                self.poll_priority(cx);
            }
            polled
        })
        .await
    }

    /// Takes the priority that has come last, and has the task of `cx` woken for the next one.
    fn poll_priority(&self, cx: &Context<'_>) {
        let priority = {
            let mut state = self.shared.lock();
            if state.h3.role() == Role::Client {
                return;
            }
            let changed = state.priorities.entry(self.id).or_default();
            match &mut changed.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => changed.waker = Some(cx.waker().clone()),
            }
            changed.new.take()
        };
        if let Some(priority) = priority {
            self.set_priority(priority);
        }
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

/// Ready when all of the chunks are written.
fn poll_write_all(
    stream: &mut SendStream,
    chunks: &mut [Bytes],
    cx: &mut Context<'_>,
) -> Poll<Result<(), WriteError>> {
    while chunks.iter().any(|chunk| !chunk.is_empty()) {
        ready!(stream.poll_write_chunks(cx, chunks))?;
    }
    Poll::Ready(Ok(()))
}

/// What is to be written. Small parts are copied next to each other: the head of a message and a short body are one chunk then, which
/// costs the transport less than several.
#[derive(Default)]
struct Waiting {
    chunks: Vec<Bytes>,
    /// Behind the chunks.
    copied: Vec<u8>,
    /// The length of what was added, in bytes.
    len: usize,
}

/// Parts up to this length are copied, in bytes. With a head that makes a block of memory of a kind that allocators keep at hand; one of more
/// than a kilobyte costs a small response a tenth of its time.
const COPIED_MAX: usize = 512;
/// How much memory a head and the header of a part of a body get at first, in bytes.
const HEAD_ROOM: usize = 192;

impl Waiting {
    /// Has room for a head, and for a body that is to be copied.
    fn with_room_for(body: &impl Body) -> Self {
        let body = body.size_hint().exact().and_then(|len| usize::try_from(len).ok());
        let body = body.filter(|len| *len <= COPIED_MAX).unwrap_or(0);
        Self { copied: Vec::with_capacity(HEAD_ROOM + body), ..Self::default() }
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.copied.extend_from_slice(bytes);
        self.len += bytes.len();
    }

    fn add(&mut self, bytes: Bytes) {
        if bytes.len() <= COPIED_MAX {
            self.copy(&bytes);
            return;
        }
        self.end_copied();
        self.len += bytes.len();
        self.chunks.push(bytes);
    }

    /// What is copied from now on goes into another chunk.
    fn end_copied(&mut self) {
        if !self.copied.is_empty() {
            self.chunks.push(std::mem::take(&mut self.copied).into());
        }
    }

    /// Takes the last chunk.
    fn take_last(&mut self) -> Bytes {
        match self.copied.is_empty() {
            true => self.chunks.pop().unwrap_or_default(),
            false => std::mem::take(&mut self.copied).into(),
        }
    }

    fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }
}

/// How much of a body is asked for ahead of what is sent, in bytes. More would be of use only to a body that is late by more than the path
/// takes to send it, and is read long before it leaves: it is out of the caches of the processor by then, and has driven out others.
const UNSENT_MAX: u64 = 1 << 20;

/// Small parts of a body are collected until there are so many bytes, as long as they are there.
const WRITE_MIN: usize = 16 * 1024;

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reset(CANCELLED);
        let mut state = self.shared.lock();
        state.priorities.remove(&self.id);
        state.take_failed(self.id);
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
