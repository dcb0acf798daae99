//! Files over HTTP, in any of its versions (RFC 9110).

mod body;
mod conditions;
mod description;
mod encoding;
mod host;
mod listing;
mod range;
mod recent;
mod refusal;
mod respond;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use fulmar_h3::{About, BoxError, HttpService, RemoteAddress};
use http::header::{CONTENT_LENGTH, DATE, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode, request};
use tokio::task::spawn_blocking;
use tower_service::Service;
use tracing::info;

pub(crate) use self::body::{Budget, WebBody};
pub(super) use self::description::Description;
use self::recent::{Plain, Recent};
use self::refusal::bare;
use self::respond::respond;
use super::directory::{Access, Directory};
use super::told::{Asked, Tale, Told};

/// What is served, and how.
#[derive(Debug)]
pub(crate) struct Content {
    pub(super) root: Directory,
    /// Whether directories without an index are shown.
    pub(super) has_listings: bool,
    /// Whether what is not there is answered by the index of the root: for applications that run in the browser.
    pub(super) is_single_page: bool,
    pub(super) budget: Budget,
    pub(super) tale: Tale,
    pub(super) recent: Recent,
    pub(super) today: Today,
    /// What all responses have beside what is theirs.
    pub(super) fields: Vec<(HeaderName, HeaderValue)>,
}

/// Answers requests with files.
#[derive(Debug, Clone)]
pub(crate) struct Web(pub(super) Arc<Content>);

impl<B: Send + 'static> Service<Request<B>> for Web {
    type Response = Response<WebBody>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (request, _body) = request.into_parts();
        let remote = request.extensions.get::<RemoteAddress>().map_or(NOBODY, |remote| remote.0);
        self.answer(request, remote, None)
    }
}

/// Where a request comes from if nobody says so.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl Web {
    /// Tells of a request that was refused before it came here.
    pub(super) fn tell_refused(&self, asked: Asked, status: StatusCode) {
        self.0.tale.begin(asked).status(status);
    }

    /// The response to a request, whose body is of no interest; when it had come, if that is known.
    fn answer(&self, request: request::Parts, remote: SocketAddr, received_at: Option<Instant>) -> Answering {
        let told = self.0.tale.begin(Asked::of(remote, &request));
        match answer_now(&self.0, &request, received_at) {
            Some(response) => Answering::Done(Some(complete(&self.0, response, told))),
            None => Answering::Waits(Box::pin(answer_from_disk(self.0.clone(), request, told))),
        }
    }
}

/// The same over HTTP/3, where more is known of requests.
#[derive(Debug, Clone)]
pub(crate) struct WebOverHttp3(pub(super) Web);

impl HttpService for WebOverHttp3 {
    type ResponseBody = WebBody;

    async fn respond(mut self, request: Request<fulmar_h3::Body>) -> Result<Response<WebBody>, BoxError> {
        Ok(self.0.call(request).await?)
    }

    async fn respond_knowing(
        self,
        request: Request<fulmar_h3::Body>,
        about: About,
    ) -> Result<Response<WebBody>, BoxError> {
        // The body is of no interest.
        let request = request.into_parts().0;
        Ok(self.0.answer(request, about.remote.0, Some(about.received_at.0)).await?)
    }

    fn on_refused(&self, about: About, status: StatusCode, head: Option<&request::Parts>) {
        let remote = about.remote.0;
        let asked = head.map_or_else(|| Asked::unread(remote, "HTTP/3.0"), |head| Asked::of(remote, head));
        self.0.tell_refused(asked, status);
    }
}

/// The future of a response, which most of the time is there at once.
#[expect(
    clippy::large_enum_variant,
    reason = "most of the time it is the large one, which then takes no memory of its own"
)]
pub(crate) enum Answering {
    Done(Option<Response<WebBody>>),
    Waits(Pin<Box<dyn Future<Output = Response<WebBody>> + Send>>),
}

impl Future for Answering {
    type Output = Result<Response<WebBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(response) => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                // Asked again.
                None => Poll::Pending,
            },
            Self::Waits(response) => response.as_mut().poll(cx).map(Ok),
        }
    }
}

/// The response to a request, whose body is of no interest, without a disk.
fn answer_now(
    content: &Content,
    request: &request::Parts,
    received_at: Option<Instant>,
) -> Option<Response<WebBody>> {
    let plain = received_at.and_then(|received_at| Plain::of(request, received_at));
    let Some(plain) = plain else { return respond(content, request, Access::Cached) };
    let path = request.uri.path();
    if let Some(response) = content.recent.find(path, &plain) {
        return Some(response);
    }
    let looked_at = Instant::now();
    let response = respond(content, request, Access::Cached)?;
    content.recent.keep(path, &plain, looked_at, &response);
    Some(response)
}

/// The same in a thread that may wait, as a disk takes a while.
async fn answer_from_disk(content: Arc<Content>, request: request::Parts, told: Told) -> Response<WebBody> {
    let for_reading = content.clone();
    let answer = spawn_blocking(move || respond(&for_reading, &request, Access::Disk));
    let response = answer.await.unwrap_or_else(|error| {
        info!(remote = %told.remote(), "request not answered: {error}");
        None
    });
    let response = response.unwrap_or_else(|| bare(StatusCode::INTERNAL_SERVER_ERROR));
    complete(&content, response, told)
}

/// Adds what all responses have.
fn complete(content: &Content, response: Response<WebBody>, mut told: Told) -> Response<WebBody> {
    told.status(response.status());
    let (mut head, body) = response.into_parts();
    if !head.headers.contains_key(CONTENT_LENGTH) && head.status != StatusCode::NOT_MODIFIED {
        let len = http_body::Body::size_hint(&body).exact().unwrap_or(0);
        head.headers.insert(CONTENT_LENGTH, len.into());
    }
    // RFC 9110 §6.6.1.
    match content.today.now() {
        Some(date) => drop(head.headers.insert(DATE, date)),
        None => drop(head.headers.remove(DATE)),
    }
    for (name, _) in &content.fields {
        head.headers.remove(name);
    }
    head.headers.extend(content.fields.iter().cloned());
    let body = if told.is_head() { WebBody::of("") } else { body };
    Response::from_parts(head, body.telling(told))
}

/// The time in words, which are made anew once a second.
#[derive(Debug, Default)]
pub(super) struct Today(Mutex<Option<(u64, HeaderValue)>>);

impl Today {
    fn now(&self) -> Option<HeaderValue> {
        let now = SystemTime::now();
        let second = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*words {
            Some((of, words)) if *of == second => Some(words.clone()),
            _ => {
                let made = http_date(now)?;
                *words = Some((second, made.clone()));
                Some(made)
            }
        }
    }
}

/// `None` for times that such a date cannot tell.
fn http_date(time: SystemTime) -> Option<HeaderValue> {
    const YEAR_10000: u64 = 253_402_300_800;
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (since.as_secs() < YEAR_10000).then(|| HeaderValue::from_str(&httpdate::fmt_http_date(time)).ok())?
}
