//! The body of a message that comes, as the application reads it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use fulmar_h3_proto::Event;
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::task::AbortHandle;

use crate::error::Error;
use crate::incoming::Incoming;
use crate::shared::OpenRequest;

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
#[allow(clippy::large_enum_variant, reason = "nearly all are of the large one, which needs no allocation so")]
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
        if incoming.is_over() {
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
