//! Files over HTTP, in any of its versions (RFC 9110).

mod body;
mod conditions;
mod encoding;
mod host;
mod listing;
mod range;
mod recent;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use fulmar_h3::{About, BoxError, HttpService, RemoteAddress};
use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, DATE, ETAG, HeaderMap, HeaderValue, LAST_MODIFIED, LOCATION, VARY,
};
use http::{Method, Request, Response, StatusCode, Uri, request};
use tokio::task::spawn_blocking;
use tower_service::Service;
use tracing::info;

use self::body::Part;
pub(crate) use self::body::{Budget, WebBody};
use self::conditions::{Validators, Verdict};
use self::encoding::Encoding;
use self::range::Wanted;
use self::recent::{Plain, Recent};
use super::directory::{Access, Directory, Found, Opened};
use super::files::{Source, SourceError};
use super::told::{Asked, Tale, Told};
use crate::hq;

/// The file that is shown for a directory.
const INDEX: &str = "index.html";
/// How long the path of a request may be, in bytes.
const PATH_MAX: usize = hq::REQUEST_MAX;

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

/// The response to a request; nothing if it takes another access.
fn respond(content: &Content, request: &request::Parts, access: Access) -> Option<Response<WebBody>> {
    match look_up(content, request, access) {
        Err(error) if access == Access::Cached && error.is_not_cached() => None,
        Err(error) => Some(refuse(request.uri.path(), &error)),
        Ok(response) => Some(response),
    }
}

/// Looks at files.
fn look_up(
    content: &Content,
    request: &request::Parts,
    access: Access,
) -> Result<Response<WebBody>, SourceError> {
    if !host::is_right(request) {
        return Ok(bare(StatusCode::BAD_REQUEST));
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        let mut response = bare(StatusCode::METHOD_NOT_ALLOWED);
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(response);
    }
    let target = request.uri.path();
    if target.len() > PATH_MAX {
        return Ok(bare(StatusCode::URI_TOO_LONG));
    }
    let path = match hq::relative(target.as_bytes()) {
        Ok(path) => path,
        Err(hq::BadRequest::Outside) => return Ok(bare(StatusCode::NOT_FOUND)),
        Err(_) => return Ok(bare(StatusCode::BAD_REQUEST)),
    };
    let names_directory = target.ends_with('/');
    let result = match content.root.find(&path, access) {
        Ok(Found::Directory) if !names_directory => Ok(redirect(&request.uri)),
        Ok(Found::Directory) => directory(content, request, &path, access),
        Ok(Found::File(_)) if names_directory => Err(io::Error::from(ErrorKind::NotFound).into()),
        Ok(Found::File(file)) => send(content, request, path.clone(), file, access),
        Err(error) => Err(error.into()),
    };
    match result {
        Err(error) if content.is_single_page && is_missing(&error) && is_page(&path) => {
            let index = PathBuf::from(INDEX);
            let file = content.root.file(&index, access)?;
            send(content, request, index, file, access)
        }
        result => result,
    }
}

/// The index of a directory, or what is in it.
fn directory(
    content: &Content,
    request: &request::Parts,
    path: &Path,
    access: Access,
) -> Result<Response<WebBody>, SourceError> {
    let index = path.join(INDEX);
    match content.root.file(&index, access) {
        Ok(file) => return send(content, request, index, file, access),
        Err(error) if !content.has_listings || error.kind() != ErrorKind::NotFound => {
            return Err(error.into());
        }
        Err(_) => {}
    }
    if access == Access::Cached {
        return Err(io::Error::from(ErrorKind::WouldBlock).into());
    }
    let (entries, is_all) = content.root.list(path)?;
    let segments: Vec<_> = path.iter().map(OsStr::to_string_lossy).collect();
    let mut response = Response::new(WebBody::of(listing::page(&segments, &entries, is_all)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'");
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// A file, or one of its compressed forms, or what the conditions of the request leave of it.
fn send(
    content: &Content,
    request: &request::Parts,
    path: PathBuf,
    file: Opened,
    access: Access,
) -> Result<Response<WebBody>, SourceError> {
    let headers = &request.headers;
    let kind = content_type(&path);
    let (encoding, path, file) = match compressed(content, headers, &path, access)? {
        Some((encoding, path, file)) => (Some(encoding), path, file),
        None => (None, path, file),
    };
    let (source, len, modified) = Source::opened(content.root.clone(), path, file);
    let validators = Validators::new(len, modified, encoding.map(Encoding::name));
    let mut response = match validators.judge(headers) {
        Verdict::Failed => return Ok(bare(StatusCode::PRECONDITION_FAILED)),
        Verdict::NotModified => {
            let mut response = Response::new(WebBody::of(""));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        Verdict::Serve => body(content, request, source, len, &validators, access)?,
    };
    let fields = response.headers_mut();
    fields.insert(VARY, HeaderValue::from_static("accept-encoding"));
    fields.insert(ETAG, validators.tag);
    // A clock may have been wrong: nothing was changed after the response (RFC 9110 §8.8.2.1).
    let modified = validators.modified.map(|modified| modified.min(SystemTime::now()));
    if let Some(date) = modified.and_then(http_date) {
        fields.insert(LAST_MODIFIED, date);
    }
    if response.status() != StatusCode::NOT_MODIFIED && response.status() != StatusCode::RANGE_NOT_SATISFIABLE
    {
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, kind);
        fields.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(encoding) = encoding {
            fields.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
    }
    Ok(response)
}

/// All of a file or the part that is asked for, with the first block read.
fn body(
    content: &Content,
    request: &request::Parts,
    source: Source,
    len: u64,
    validators: &Validators,
    access: Access,
) -> Result<Response<WebBody>, SourceError> {
    // Only GET knows ranges (RFC 9110 §14.2).
    let wanted = match request.method == Method::GET && validators.allow_part(&request.headers) {
        true => range::wanted(&request.headers, len),
        false => Wanted::Whole,
    };
    let ((start, end), field) = match wanted {
        Wanted::Whole => ((0, len), None),
        Wanted::Part(start, end) => ((start, end), Some(format!("bytes {start}-{}/{len}", end - 1))),
        Wanted::Unsatisfiable => {
            let mut response = bare(StatusCode::RANGE_NOT_SATISFIABLE);
            insert(response.headers_mut(), CONTENT_RANGE, &format!("bytes */{len}"));
            return Ok(response);
        }
    };
    let body = if request.method == Method::HEAD || start == end {
        WebBody::of("")
    } else {
        let mut part = Part::new(source, (start, end), content.budget.clone());
        let first = part.read(access)?;
        WebBody::file(part, first)
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_LENGTH, (end - start).into());
    if let Some(field) = field {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        insert(response.headers_mut(), CONTENT_RANGE, &field);
    }
    Ok(response)
}

/// The form of a file that the client likes best of those that are there.
fn compressed(
    content: &Content,
    headers: &HeaderMap,
    path: &Path,
    access: Access,
) -> io::Result<Option<(Encoding, PathBuf, Opened)>> {
    for encoding in encoding::accepted(headers) {
        let mut name = path.as_os_str().to_owned();
        name.push(encoding.suffix());
        let path = PathBuf::from(name);
        match content.root.file(&path, access) {
            Ok(file) => return Ok(Some((encoding, path, file))),
            Err(error) if access == Access::Cached && error.kind() == ErrorKind::WouldBlock => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    Ok(None)
}

/// What a file is, by its name. Text is taken to be in UTF-8.
fn content_type(path: &Path) -> HeaderValue {
    let kind = mime_guess::from_path(path).first_raw().unwrap_or("application/octet-stream");
    if kind.starts_with("text/") || kind == "application/javascript" || kind == "application/json" {
        return HeaderValue::from_str(&format!("{kind}; charset=utf-8"))
            .unwrap_or(HeaderValue::from_static("text/plain"));
    }
    HeaderValue::from_static(kind)
}

/// To the same path with a slash at its end.
fn redirect(uri: &Uri) -> Response<WebBody> {
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    // Two slashes at the beginning would name another server.
    let path = uri.path().trim_start_matches(['/', '\\']);
    let mut response = bare(StatusCode::PERMANENT_REDIRECT);
    insert(response.headers_mut(), LOCATION, &format!("/{path}/{query}"));
    response
}

/// Whether a path may be one that an application in the browser makes up: a file that is missing is missing.
fn is_page(path: &Path) -> bool {
    path.extension().is_none() && !path.iter().any(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_missing(error: &SourceError) -> bool {
    matches!(error, SourceError::Io(error) if status_of(error) == StatusCode::NOT_FOUND)
}

fn refuse(path: &str, error: &SourceError) -> Response<WebBody> {
    let status = match error {
        SourceError::Io(error) => status_of(error),
        SourceError::Changed => StatusCode::INTERNAL_SERVER_ERROR,
    };
    if status.is_server_error() {
        info!(path, "request not answered: {error}");
    }
    bare(status)
}

fn status_of(error: &io::Error) -> StatusCode {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::PermissionDenied
        | ErrorKind::NotADirectory
        | ErrorKind::InvalidFilename => StatusCode::NOT_FOUND,
        _ if error.raw_os_error() == Some(LINKS_IN_A_LOOP) => StatusCode::NOT_FOUND,
        // No more files can be opened just now.
        _ if error.raw_os_error() == Some(TOO_MANY_OPEN_FILES) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// EMFILE and ELOOP, which have no kinds of their own.
const TOO_MANY_OPEN_FILES: i32 = 24;
const LINKS_IN_A_LOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };

/// A response with the words of its status.
fn bare(status: StatusCode) -> Response<WebBody> {
    let words = format!("{} {}\n", status.as_str(), status.canonical_reason().unwrap_or_default());
    let mut response = Response::new(WebBody::of(words));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Adds a field whose value was made here; one that is none is left out.
fn insert(headers: &mut HeaderMap, name: http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// `None` for times that such a date cannot tell.
fn http_date(time: SystemTime) -> Option<HeaderValue> {
    const YEAR_10000: u64 = 253_402_300_800;
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (since.as_secs() < YEAR_10000).then(|| HeaderValue::from_str(&httpdate::fmt_http_date(time)).ok())?
}
