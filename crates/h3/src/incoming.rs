//! A message that comes: its head, and its body as the application reads it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use fulmar::{ReadError, RecvStream, VarInt};
use fulmar_h3_proto::{ErrorCode, Event, Received, Scope};
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::task::AbortHandle;

use crate::error::Error;
use crate::shared::{Blocked, OpenRequest, Shared, code, now};

/// The receiving side of the stream of a request.
pub(crate) struct Incoming {
    shared: Arc<Shared>,
    id: u64,
    stream: RecvStream,
    /// What was read and not understood yet: at most a chunk.
    unread: Bytes,
    is_last: bool,
    /// A section waits for the encoder stream of the peer: see [`Blocked`].
    is_blocked: bool,
    is_over: bool,
}

impl Incoming {
    /// `drop_code` is what the peer is told if this is given up.
    pub(crate) fn new(shared: Arc<Shared>, mut stream: RecvStream, drop_code: ErrorCode) -> Self {
        stream.set_drop_code(code(drop_code));
        let id = stream.id().as_u64();
        Self { shared, id, stream, unread: Bytes::new(), is_last: false, is_blocked: false, is_over: false }
    }

    /// The connection, and the request's name there.
    pub(crate) fn place(&self) -> (&Arc<Shared>, u64) {
        (&self.shared, self.id)
    }

    /// The next thing that comes, or nothing after the end.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        loop {
            let received = if self.is_blocked {
                ready!(self.poll_unblocked(cx))
            } else {
                // What was read is understood as far as it goes before this asks for more.
                if self.unread.is_empty() && !self.is_last {
                    ready!(self.poll_read(cx))?;
                }
                self.receive()
            };
            match received {
                Ok(Received::Event(event)) => {
                    self.is_over |= matches!(event, Event::Finished | Event::Refused(_));
                    return Poll::Ready(Ok(Some(event)));
                }
                Ok(Received::More) => {}
                Ok(Received::Blocked) => {
                    self.shared.lock().blocked.entry(self.id).or_insert(Blocked::Waits(None));
                    self.is_blocked = true;
                }
                Ok(Received::Done | Received::Claimed) => {
                    self.is_over = true;
                    return Poll::Ready(Ok(None));
                }
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            }
        }
    }

    /// Takes the next thing out of what was read. A request that ends with its head is found to have no body now, so that nobody has
    /// to ask for it, and nobody who does not gives up something.
    fn receive(&mut self) -> Result<Received, fulmar_h3_proto::Error> {
        let Self { shared, id, unread, is_last, .. } = self;
        let (received, is_over) = shared.with(|state| {
            let received = state.h3.receive(*id, unread, *is_last)?;
            let is_whole = *is_last && unread.is_empty();
            let is_over = is_whole
                && matches!(received, Received::Event(Event::Request(_)))
                && matches!(state.h3.receive(*id, unread, true)?, Received::Event(Event::Finished));
            Ok::<_, fulmar_h3_proto::Error>((received, is_over))
        })?;
        self.is_over |= is_over;
        Ok(received)
    }

    /// What the stream has waited for.
    fn poll_unblocked(&mut self, cx: &Context<'_>) -> Poll<Result<Received, fulmar_h3_proto::Error>> {
        let mut state = self.shared.lock();
        if let Some(Blocked::Waits(waker)) = state.blocked.get_mut(&self.id) {
            *waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let blocked = state.blocked.remove(&self.id);
        drop(state);
        self.is_blocked = false;
        Poll::Ready(match blocked {
            Some(Blocked::Over(event)) => Ok(Received::Event(event)),
            Some(Blocked::Failed(error)) => Err(error),
            // The connection is over, which who reads on is told.
            Some(Blocked::Waits(_)) | None => self.receive(),
        })
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match ready!(self.stream.poll_read_chunk(cx, usize::MAX, true)) {
            Ok(Some(chunk)) => {
                self.unread = chunk.bytes;
                self.is_last = chunk.fin;
            }
            Ok(None) => self.is_last = true,
            Err(error) => {
                self.is_over = true;
                if let ReadError::Reset(_) = error {
                    let result = self.shared.with(|state| state.h3.on_reset(self.id, now()));
                    self.shared.check(result)?;
                }
                return Poll::Ready(Err(error.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn fail(&mut self, error: fulmar_h3_proto::Error) -> Error {
        self.is_over = true;
        self.shared.on_error(&error);
        if error.scope() == Scope::Stream(self.id) {
            let _ = self.stream.stop(code(error.code()));
        }
        error.into()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let result = self.shared.with(|state| {
            state.blocked.remove(&self.id);
            state.h3.stop_receiving(self.id)
        });
        if let Err(error) = result {
            self.shared.on_error(&error);
        }
    }
}

/// The body of a request or response that comes from the peer.
///
/// It is read as fast as its owner asks, and what is not read holds the peer back. Dropping it asks the peer to stop.
pub struct Body {
    source: Source,
    trailers: Option<HeaderMap>,
    /// What a client still sends of the request that this answers.
    upload: Upload,
}

/// Where a body comes from.
enum Source {
    Http3(Incoming),
    Tcp(TcpIncoming),
    /// Nothing is to come.
    Over,
}

/// A body that comes over TCP.
pub(crate) struct TcpIncoming {
    pub(crate) body: hyper::body::Incoming,
    /// Its place among the requests that are under way.
    pub(crate) _permit: Option<OwnedSemaphorePermit>,
}

/// A request that a response belongs to: the task that sends its body, which is ended when nobody wants the response any more.
#[derive(Default)]
pub(crate) struct Upload {
    pub(crate) task: Option<AbortHandle>,
    pub(crate) request: Option<OpenRequest>,
    /// What goes wrong with the body of the request at this end.
    pub(crate) failure: Option<oneshot::Receiver<Error>>,
}

impl Upload {
    /// Waits until something goes wrong with the body of the request; for ever if nothing does.
    pub(crate) async fn failed(&mut self) -> Error {
        if let Some(failure) = &mut self.failure {
            let failed = failure.await;
            self.failure = None;
            if let Ok(error) = failed {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Why a response failed: what has gone wrong at this end comes before what the peer has made of it.
    pub(crate) fn cause(&mut self, error: Error) -> Error {
        let own = self.failure.take().and_then(|mut failure| failure.try_recv().ok());
        own.unwrap_or(error)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Body {
    pub(crate) fn new(incoming: Incoming) -> Self {
        if incoming.is_over {
            return Self { source: Source::Over, trailers: None, upload: Upload::default() };
        }
        Self::with_upload(incoming, Upload::default())
    }

    pub(crate) fn with_upload(incoming: Incoming, upload: Upload) -> Self {
        Self { source: Source::Http3(incoming), trailers: None, upload }
    }

    pub(crate) fn over_tcp(incoming: TcpIncoming) -> Self {
        Self { source: Source::Tcp(incoming), trailers: None, upload: Upload::default() }
    }

    /// Waits for the next part of the body, or returns `None` at its end.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    ///
    /// If the peer gives up, breaks a rule, or the connection ends.
    pub async fn data(&mut self) -> Result<Option<Bytes>, Error> {
        std::future::poll_fn(|cx| self.poll_data(cx)).await
    }

    /// The trailers, after [`data`](Self::data) has come to the end.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// Reads the body to its end, if it is no longer than `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::BodyTooLong`]; see [`data`](Self::data).
    pub async fn bytes(mut self, limit: usize) -> Result<Bytes, Error> {
        let mut all = BytesMut::new();
        while let Some(data) = self.data().await? {
            if all.len() + data.len() > limit {
                return Err(Error::BodyTooLong(limit));
            }
            all.extend_from_slice(&data);
        }
        Ok(all.freeze())
    }

    fn is_over(&self) -> bool {
        matches!(self.source, Source::Over)
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        loop {
            let event = match &mut self.source {
                Source::Http3(incoming) => ready!(incoming.poll_event(cx)),
                Source::Tcp(incoming) => ready!(incoming.poll_event(cx)),
                Source::Over => return Poll::Ready(Ok(None)),
            };
            match event {
                Ok(Some(Event::Data(data))) => return Poll::Ready(Ok(Some(data))),
                Ok(Some(Event::Trailers(trailers))) => self.trailers = Some(*trailers),
                Ok(Some(Event::Finished) | None) => {
                    self.source = Source::Over;
                    // A response may be complete before its request is.
                    (self.upload.task, self.upload.request) = (None, None);
                }
                Ok(Some(_)) => {}
                Err(error) => {
                    self.source = Source::Over;
                    return Poll::Ready(Err(self.upload.cause(error)));
                }
            }
        }
    }
}

impl TcpIncoming {
    /// The next thing that comes, in the terms of HTTP/3.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            None => Ok(None),
            Some(Err(error)) => Err(Error::tcp(error)),
            Some(Ok(frame)) => Ok(Some(match frame.into_data() {
                Ok(data) => Event::Data(data),
                Err(frame) => Event::Trailers(Box::new(frame.into_trailers().unwrap_or_default())),
            })),
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(match ready!(self.poll_data(cx)) {
            Ok(Some(data)) => Some(Ok(Frame::data(data))),
            Ok(None) => self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))),
            Err(error) => Some(Err(error)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.is_over() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() { SizeHint::with_exact(0) } else { SizeHint::default() }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

/// What the peer is told of a stream that is given up.
pub(crate) const CANCELLED: VarInt = VarInt::from_u32(ErrorCode::RequestCancelled as u32);
