//! The server: requests go to a `tower` service.

mod places;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use fulmar::{Endpoint, Instant, RecvStream, SendStream};
use fulmar_h3_proto::{Config, Connection, ErrorCode, Event, RequestHead};
use http::{Method, Request, Response, StatusCode, header, request};
use http_body_util::Empty;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_service::Service;

use self::places::Places;
use crate::body::Body;
use crate::driver::Driver;
use crate::error::Error;
use crate::incoming::Incoming;
use crate::outgoing::{Outgoing, code_of};
use crate::shared::{Shared, code, now};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The address of the client, among the extensions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteAddress(pub SocketAddr);

/// When a request had come, its head at least, among the extensions of a request: a service that shares what it has found out between
/// requests may give this one whatever it has found out later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedAt(pub std::time::Instant);

/// What answers requests: every `tower` service that is made of requests and gives responses, an axum `Router` among them. It is cloned
/// for each request.
pub trait HttpService: Clone + Send + 'static {
    /// The body of its responses.
    type ResponseBody: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static;

    /// Answers a request. An error resets its stream.
    fn respond(
        self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::ResponseBody>, BoxError>> + Send;

    /// The same, with what is known of the request beside itself, which is put among its extensions unless a service does
    /// otherwise: they take memory.
    fn respond_knowing(
        self,
        mut request: Request<Body>,
        about: About,
    ) -> impl Future<Output = Result<Response<Self::ResponseBody>, BoxError>> + Send {
        request.extensions_mut().insert(about.remote);
        request.extensions_mut().insert(about.received_at);
        self.respond(request)
    }

    /// Hears of a request that is answered without it: with 431, as its head is too large and was not kept, or with 425, as it is an
    /// unsafe one of early data. For logs; nothing is to be done.
    fn on_refused(&self, _about: About, _status: StatusCode, _head: Option<&request::Parts>) {}
}

/// What is known of a request beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// The client.
    pub remote: RemoteAddress,
    /// When the request had come.
    pub received_at: ReceivedAt,
}

impl<S, B> HttpService for S
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type ResponseBody = B;

    async fn respond(mut self, request: Request<Body>) -> Result<Response<B>, BoxError> {
        poll_fn(|cx| self.poll_ready(cx)).await.map_err(Into::into)?;
        self.call(request).await.map_err(Into::into)
    }
}

/// Serves HTTP/3 on an endpoint.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    config: Arc<Config>,
    is_stopping: watch::Sender<bool>,
}

impl Server {
    /// A server on an endpoint whose TLS configuration names `h3` (see [`ALPN`](crate::ALPN)).
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self::with_config(endpoint, Config::default())
    }

    /// A server with other limits and offers.
    #[must_use]
    pub fn with_config(endpoint: Endpoint, config: Config) -> Self {
        Self { endpoint, config: Arc::new(config), is_stopping: watch::Sender::new(false) }
    }

    /// Serves all connections with clones of `service`, until [`shutdown`](Self::shutdown) was called and they are over, or the
    /// endpoint was closed. An axum `Router` is such a service.
    ///
    /// Dropping this future closes its connections at once, with H3_NO_ERROR; what their requests wait for is lost.
    ///
    /// Requests that a client gives up are dropped where they wait. Unsafe requests of early data are answered with status 425,
    /// heads that are too large with 431. Responses without a Date get one ([`Config::date_header`]); those with status 204 or 304 have no
    /// body, whatever the service gives.
    pub async fn serve<S: HttpService>(&self, service: S) {
        let mut connections = JoinSet::new();
        let stopping = self.is_stopping.subscribe();
        let mut stop = pin!(told(stopping.clone()));
        loop {
            tokio::select! {
                incoming = self.endpoint.accept() => {
                    let Some(incoming) = incoming else { break };
                    let (service, config) = (service.clone(), Arc::clone(&self.config));
                    let stopping = stopping.clone();
                    // An endpoint of several workers may have a runtime for each.
                    let runtime = incoming.runtime().clone();
                    connections.spawn_on(async move {
                        match incoming.await {
                            Ok(quic) => serve_connection_until(quic, service, config, told(stopping)).await,
                            Err(error) => tracing::debug!(%error, "a client has not arrived"),
                        }
                    }, &runtime);
                }
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                () = &mut stop => break,
            }
        }
        // A client that got no answer would wait for one until its handshake timeout.
        loop {
            tokio::select! {
                next = connections.join_next() => if next.is_none() { break },
                Some(incoming) = self.endpoint.accept() => incoming.refuse(),
            }
        }
    }

    /// The endpoint: for its figures, or to close it.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Lets all connections come to their end: clients are told to make no more requests (GOAWAY), those that have begun are served,
    /// and [`serve`](Self::serve) returns. Until then new clients are refused (CONNECTION_REFUSED). Later ones wait for whoever accepts
    /// on the endpoint next: close it if nobody will.
    pub fn shutdown(&self) {
        self.is_stopping.send_replace(true);
    }
}

/// Serves one connection, until it is over. Dropping this future closes it.
pub async fn serve_connection<S: HttpService>(quic: fulmar::Connection, service: S, config: Arc<Config>) {
    serve_connection_until(quic, service, config, std::future::pending()).await;
}

/// Serves one connection, until it is over. When `stop` is, the client is told to make no more requests (GOAWAY), those that have
/// begun are served, and the connection is closed. Dropping this future closes it at once.
pub async fn serve_connection_until<S: HttpService>(
    quic: fulmar::Connection,
    mut service: S,
    config: Arc<Config>,
    stop: impl Future<Output = ()> + Send,
) {
    let shared = Shared::new(quic, Connection::server(config));
    // The task beside this one would keep a connection open that nobody serves any more.
    let _close = CloseOnDrop(&shared);
    let driver = tokio::spawn(Driver::new(Arc::clone(&shared)));
    // Requests end with their connection.
    let mut requests = JoinSet::new();
    let mut linger = LINGER;
    tokio::select! {
        () = accept(&shared, &mut service, &mut requests) => {}
        () = stop => {
            let _ = shared.with(|state| state.h3.start_shutdown());
            // Requests that were made before the client knew are on their way for a round trip.
            let on_the_way = shared.quic.rtt() * 2 + Duration::from_millis(10);
            let _ = tokio::time::timeout(on_the_way, accept(&shared, &mut service, &mut requests)).await;
            let _ = shared.with(|state| state.h3.finish_shutdown());
            while requests.try_join_next().is_some() {}
            if requests.is_empty() && shared.quic.is_delivered() {
                // An idle client has nothing to read but this, which the driver has to send yet.
                linger = on_the_way;
            }
        }
    }
    tokio::select! {
        () = async {
            while requests.join_next().await.is_some() {}
            // A response is not over before it has arrived.
            let _ = shared.quic.delivered().await;
            // A client that has just got a response may not have read it, and closes when it has.
            let _ = tokio::time::timeout(linger, shared.quic.closed()).await;
        } => {}
        // If the connection is over there is nobody to answer.
        () = reject(&shared) => {}
    }
    shared.close(ErrorCode::NoError, "");
    let _ = driver.await;
}

/// Closes a connection when what serves it ends, be it dropped.
struct CloseOnDrop<'a>(&'a Shared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(ErrorCode::NoError, "");
    }
}

/// How long a connection stays open whose last responses have just arrived.
const LINGER: Duration = Duration::from_secs(1);

/// Waits until the server is to stop. If nobody can say so any more, that is never.
async fn told(mut stopping: watch::Receiver<bool>) {
    if stopping.wait_for(|is_stopping| *is_stopping).await.is_err() {
        std::future::pending().await
    }
}

/// Takes requests until the connection is over.
async fn accept<S: HttpService>(shared: &Arc<Shared>, service: &mut S, requests: &mut JoinSet<()>) {
    // A handle of its own remembers who waits.
    let mut quic = shared.quic.clone();
    let mut places = Places::default();
    poll_fn(move |cx| {
        let turn = poll_turn(shared, &mut quic, cx, |request, now, cx| {
            places.start(|| serve_request(request, service.clone()), requests, now, cx)
        });
        // What nobody needs now is no memory of an idle connection.
        places.rest();
        // Last, so that the end of the requests that were just begun is heard of.
        while let Poll::Ready(Some(_)) = requests.poll_join_next(cx) {}
        turn
    })
    .await;
}

/// Turns away the requests that still come, so that their client makes them elsewhere, until the connection is over.
async fn reject(shared: &Arc<Shared>) {
    while let Ok((send, recv)) = shared.quic.accept_bi().await {
        drop(begin(shared, send, recv, now()));
    }
}

/// Begins the requests that are there, a bounded number of them; ready when no more can come.
fn poll_turn(
    shared: &Arc<Shared>,
    quic: &mut fulmar::Connection,
    cx: &mut Context<'_>,
    mut start: impl FnMut(NewRequest, Instant, &mut Context<'_>) -> Instant,
) -> Poll<()> {
    let mut now = now();
    for _ in 0..REQUESTS_PER_TURN {
        let Ok((send, recv)) = ready!(quic.poll_accept_bi(cx)) else { return Poll::Ready(()) };
        if let Some((outgoing, incoming)) = begin(shared, send, recv, now) {
            now = start(NewRequest { shared: Arc::clone(shared), outgoing, incoming }, now, cx);
        }
    }
    // It is the turn of other tasks.
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// Requests that are begun before it is the turn of other tasks.
const REQUESTS_PER_TURN: usize = 128;

/// A request whose head is to come.
struct NewRequest {
    shared: Arc<Shared>,
    outgoing: Outgoing,
    incoming: Incoming,
}

/// Begins a request on a stream, unless it is rejected.
fn begin(
    shared: &Arc<Shared>,
    mut send: SendStream,
    mut recv: RecvStream,
    now: Instant,
) -> Option<(Outgoing, Incoming)> {
    let (id, is_early) = (recv.id().as_u64(), recv.is_early_data());
    if let Err(error) = shared.with(|state| state.h3.accept(id, is_early, now)) {
        shared.on_error(&error);
        let _ = send.reset(code(error.code()));
        let _ = recv.stop(code(error.code()));
        return None;
    }
    // A body that the service does not read is no fault of the client.
    let incoming = Incoming::new(Arc::clone(shared), recv, ErrorCode::NoError);
    Some((Outgoing::new(Arc::clone(shared), send), incoming))
}

async fn serve_request<S: HttpService>(request: NewRequest, service: S) {
    let NewRequest { shared, mut outgoing, mut incoming } = request;
    let mut stopped = std::pin::pin!(outgoing.stream().stopped());
    let served = async {
        let head = match poll_fn(|cx| incoming.poll_event(cx)).await? {
            Some(Event::Request(head)) => head,
            Some(Event::Refused(_)) => {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                service.on_refused(about(&shared), status, None);
                return outgoing.send_response(bare(status), true).await;
            }
            _ => return Err(fulmar_h3_proto::SendError::Closed.into()),
        };
        answer(&shared, &mut outgoing, head, incoming, service).await
    };
    let result = tokio::select! {
        biased;
        result = served => result,
        // The client has given up: what the service still does would be for nobody.
        stopped = &mut stopped => match stopped {
            Ok(Some(_)) => outgoing.on_stopped(),
            _ => return,
        },
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a request was not served");
        outgoing.reset(code_of(&error));
    }
}

async fn answer<S: HttpService>(
    shared: &Shared,
    outgoing: &mut Outgoing,
    head: Box<RequestHead>,
    incoming: Incoming,
    service: S,
) -> Result<(), Error> {
    outgoing.set_priority(head.priority);
    if head.is_too_early() {
        service.on_refused(about(shared), StatusCode::TOO_EARLY, Some(&head.parts));
        return outgoing.send_response(bare(StatusCode::TOO_EARLY), true).await;
    }
    let parts = head.parts;
    let has_body = parts.method != Method::HEAD;
    if parts
        .headers
        .get(header::EXPECT)
        .is_some_and(|expect| expect.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    {
        let (go_on, _) = bare(StatusCode::CONTINUE).into_parts();
        let bytes = shared.with(|state| state.h3.send_response(outgoing.id(), &go_on, false))?;
        outgoing.send_informational(bytes).await?;
    }
    let request = Request::from_parts(parts, Body::new(incoming));
    let response = service.respond_knowing(request, about(shared)).await.map_err(Error::Body)?;
    outgoing.send_response(response, has_body).await
}

/// What is known of a request that has just come.
fn about(shared: &Shared) -> About {
    About {
        remote: RemoteAddress(shared.quic.remote_address()),
        received_at: ReceivedAt(shared.quic.received_at()),
    }
}

/// A response of a status alone.
fn bare(status: StatusCode) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    response
}
