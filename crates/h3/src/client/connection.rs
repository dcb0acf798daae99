//! A connection to a server.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use fulmar::ConnectionError;
use fulmar_h3_proto::{Config, Connection, ErrorCode, Event, SendError};
use http::response::Parts;
use http::{HeaderName, Method, Request, Response};
use tokio::sync::oneshot;

use super::alt_svc::Used;
use crate::body::{Body, Upload};
use crate::driver::Driver;
use crate::error::Error;
use crate::incoming::Incoming;
use crate::outgoing::{Outgoing, code_of};
use crate::shared::{OpenRequest, Shared};

/// A connection to a server, for programs that make connections themselves. [`Client`](crate::Client) keeps such.
///
/// Clones share it. When the last one is dropped it is closed, once the requests on it and the bodies of their responses are over, also if
/// there are other handles of the connection of the transport. It is over sooner if it is closed, or idle for as long as the transport
/// allows.
#[derive(Debug, Clone)]
pub struct ClientConnection {
    handle: Arc<Handle>,
    /// Where it leads, if that is an alternative service.
    alternative: Option<Arc<Used>>,
}

/// What all clones share. The task of the connection has none, so that it ends with them.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Tells a server which of its alternative services a request came to (RFC 7838 §5).
const ALT_USED: HeaderName = HeaderName::from_static("alt-used");

/// A request whose response is to come.
struct Begun<B> {
    incoming: Incoming,
    upload: Upload,
    /// The request, if all of it is its head: then it can be made again.
    whole: Option<Request<B>>,
}

/// What went wrong with a request, and the request, if it may be made again over another connection.
pub(super) type Failed<B> = (Error, Option<Box<Request<B>>>);

impl ClientConnection {
    /// Begins HTTP/3 on a connection of the transport.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(quic: fulmar::Connection, config: Arc<Config>) -> Self {
        let shared = Shared::new(quic, Connection::client(config, None));
        tokio::spawn(Driver::new(Arc::clone(&shared)));
        Self { handle: Arc::new(Handle(shared)), alternative: None }
    }

    /// The same as one that leads to an alternative service.
    pub(super) fn at_alternative(self, alternative: Option<Arc<Used>>) -> Self {
        Self { alternative, ..self }
    }

    /// The alternative service that it leads to.
    pub(super) fn alternative(&self) -> Option<&Arc<Used>> {
        self.alternative.as_ref()
    }

    /// Makes a request: see [`Client::request`](crate::Client::request).
    ///
    /// # Errors
    ///
    /// If the server gives up the request, breaks a rule, or the connection ends.
    pub async fn request<B>(&self, request: Request<B>) -> Result<Response<Body>, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.exchange(request).await.map_err(|(error, _)| error)
    }

    /// Makes a request, or gives it back.
    pub(super) async fn exchange<B>(&self, request: Request<B>) -> Result<Response<Body>, Failed<B>>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        match self.begin(request).await {
            Ok(begun) => begun.response().await,
            // Nothing of the request was sent.
            Err((error @ (Error::Send(SendError::GoingAway) | Error::Connection(_)), back)) => {
                Err((error, Some(back)))
            }
            Err((error, _)) => Err((error, None)),
        }
    }

    /// Whether it takes requests: it is not over, and the server does not go away.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let state = self.handle.0.lock();
        !state.is_over && state.refused_from.is_none() && self.handle.0.quic.close_reason().is_none()
    }

    /// Whether requests leave as early data now: the handshake is not complete.
    pub(super) fn is_early(&self) -> bool {
        let quic = &self.handle.0.quic;
        quic.early_data() == fulmar::EarlyData::Offered && quic.handshake_time().is_none()
    }

    /// What the parts of the connection share.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.handle.0
    }

    /// Whether this is another handle of the same connection.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handle, &other.handle)
    }

    /// The connection of the transport.
    #[must_use]
    pub fn quic(&self) -> &fulmar::Connection {
        &self.handle.0.quic
    }

    /// Closes the connection. Requests that are not complete are lost.
    pub fn close(&self, code: ErrorCode) {
        self.handle.0.close(code, "");
    }

    /// Begins a request, or gives it back.
    async fn begin<B>(&self, request: Request<B>) -> Result<Begun<B>, (Error, Box<Request<B>>)>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let going_away = self.handle.0.going_away.notified();
        if self.handle.0.lock().refused_from.is_some() {
            return Err((SendError::GoingAway.into(), Box::new(request)));
        }
        let opened = tokio::select! {
            biased;
            // RFC 9114 §5.2: one that waits for a stream must not begin after that.
            () = going_away => return Err((SendError::GoingAway.into(), Box::new(request))),
            opened = self.handle.0.quic.open_bi() => opened,
        };
        let (send, recv) = match opened {
            Ok(streams) => streams,
            Err(error) => return Err((error.into(), Box::new(request))),
        };
        let outgoing = Outgoing::new(Arc::clone(&self.handle.0), send);
        let (mut parts, body) = request.into_parts();
        if let Some(name) = self.alternative().and_then(|used| used.name.clone()) {
            parts.headers.insert(ALT_USED, name);
        }
        let head = self.handle.0.with(|state| state.h3.send_request(outgoing.id(), &parts));
        // If the request is made again, then maybe elsewhere.
        if self.alternative().is_some() {
            parts.headers.remove(ALT_USED);
        }
        let head = match head {
            Ok(head) => head,
            Err(error) => return Err((error.into(), Box::new(Request::from_parts(parts, body)))),
        };
        let incoming = Incoming::new(Arc::clone(&self.handle.0), recv, ErrorCode::RequestCancelled);
        let (body, whole) = match body.is_end_stream() {
            true => (None, Some(Request::from_parts(parts, body))),
            false => (Some(body), None),
        };
        // Nothing can go wrong with a body that is none.
        let (failed, failure) = body.is_some().then(oneshot::channel).unzip();
        let sending = OpenRequest::new(&self.handle.0);
        let task = tokio::spawn(async move {
            upload(outgoing, head, body, failed).await;
            drop(sending);
        });
        let request = Some(OpenRequest::new(&self.handle.0));
        let upload = Upload { task: Some(task.abort_handle()), request, failure };
        Ok(Begun { incoming, upload, whole })
    }
}

/// Sends a request to its end. Who waits for the response is told what goes wrong at this end, and sees the rest.
async fn upload<B>(
    mut outgoing: Outgoing,
    head: Bytes,
    body: Option<B>,
    failed: Option<oneshot::Sender<Error>>,
) where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let sent = match body {
        None => outgoing.send_message(head, None::<B>).await,
        Some(body) => {
            let stopped = outgoing.stream().stopped();
            tokio::select! {
                biased;
                sent = outgoing.send_message(head, Some(body)) => sent,
                // The server wants no more, which who waits for more of the body to send would not see.
                stopped = stopped => match stopped {
                    Ok(Some(_)) => outgoing.on_stopped(),
                    _ => return,
                },
            }
        }
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a request was not sent to its end");
        let code = code_of(&error);
        let is_own = match error {
            Error::Body(_) => true,
            // A stream that is closed was closed by the peer.
            Error::Send(why) => why != SendError::Closed,
            _ => false,
        };
        // Before the peer is told, which answers.
        if let Some(failed) = failed.filter(|_| is_own) {
            let _ = failed.send(error);
        }
        outgoing.reset(code);
    }
}

impl<B> Begun<B> {
    async fn response(mut self) -> Result<Response<Body>, Failed<B>> {
        match self.head().await {
            Ok(parts) => Ok(Response::from_parts(*parts, Body::with_upload(self.incoming, self.upload))),
            Err(error) => {
                let whole = self.whole.filter(|request| may_repeat(&error, request.method()));
                Err((error, whole.map(Box::new)))
            }
        }
    }

    async fn head(&mut self) -> Result<Box<Parts>, Error> {
        let (shared, id) = self.incoming.place();
        let shared = Arc::clone(shared);
        loop {
            let going_away = shared.going_away.notified();
            if shared.lock().is_refused(id) {
                return Err(SendError::GoingAway.into());
            }
            let event = tokio::select! {
                biased;
                event = poll_fn(|cx| self.incoming.poll_event(cx)) => event.map_err(|error| self.upload.cause(error)),
                error = self.upload.failed() => return Err(error),
                () = going_away => continue,
            };
            match event {
                Ok(Some(Event::Response(parts))) => return Ok(parts),
                Ok(Some(_)) => {}
                Ok(None) => return Err(SendError::Closed.into()),
                // However it ends then.
                Err(_) if shared.lock().is_refused(id) => return Err(SendError::GoingAway.into()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether a request that failed so before a response came was not worked on, or does no harm if it is worked on twice.
fn may_repeat(error: &Error, method: &Method) -> bool {
    match error {
        // RFC 9114 §4.1.1, §5.2: the server says that it was not.
        Error::Send(SendError::GoingAway) => true,
        Error::Reset(code) => *code == ErrorCode::RequestRejected.code(),
        // The server has stopped, or was started anew: nobody knows. RFC 9110 §9.2.2.
        Error::Connection(ConnectionError::ApplicationClosed { code, .. }) => {
            code.get() == ErrorCode::NoError.code() && method.is_idempotent()
        }
        Error::Connection(ConnectionError::Reset) => method.is_idempotent(),
        _ => false,
    }
}
