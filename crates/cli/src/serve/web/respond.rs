//! What is asked for, looked up among the files.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use http::header::{
    ACCEPT_RANGES, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, LAST_MODIFIED, LOCATION, VARY,
};
use http::{Method, Response, StatusCode, Uri, request};

use super::body::{Part, WebBody};
use super::conditions::{Validators, Verdict};
use super::description::Description;
use super::encoding::{self, Encoding};
use super::range::{self, Wanted};
use super::refusal::{bare, is_missing, refuse};
use super::{Content, host, listing};
use crate::hq;
use crate::serve::directory::{Access, Found, Opened};
use crate::serve::files::{Source, SourceError};

/// The file that is shown for a directory.
const INDEX: &str = "index.html";
/// How many fields a response with a file has, so that the map of them need not grow.
const FIELDS: usize = 8;
/// How long the path of a request may be, in bytes.
const PATH_MAX: usize = hq::REQUEST_MAX;

/// The response to a request; nothing if it takes another access.
pub(super) fn respond(
    content: &Content,
    request: &request::Parts,
    access: Access,
) -> Option<Response<WebBody>> {
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
    let form = compressed(content, headers, &path, access)?;
    let encoding = form.as_ref().map(|(encoding, ..)| *encoding);
    let own;
    let known = file.description.clone();
    let description = match (&form, &known) {
        (None, Some(known)) => known.get_or_init(|| Description::new(&path, file.stamp, None)),
        (form, _) => {
            let stamp = form.as_ref().map_or(file.stamp, |(.., file)| file.stamp);
            own = Description::new(&path, stamp, encoding);
            &own
        }
    };
    let (path, file) = form.map_or((path, file), |(_, path, file)| (path, file));
    let len = file.stamp.len;
    let source = Source::opened(content.root.clone(), path, file);
    let validators = &description.validators;
    let mut response = match validators.judge(headers) {
        Verdict::Failed => return Ok(bare(StatusCode::PRECONDITION_FAILED)),
        Verdict::NotModified => {
            let mut response = Response::new(WebBody::of(""));
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        Verdict::Serve => body(content, request, source, len, validators, access)?,
    };
    let fields = response.headers_mut();
    fields.insert(VARY, HeaderValue::from_static("accept-encoding"));
    fields.insert(ETAG, validators.tag.clone());
    if let Some(date) = description.last_modified(SystemTime::now()) {
        fields.insert(LAST_MODIFIED, date);
    }
    if response.status() != StatusCode::NOT_MODIFIED && response.status() != StatusCode::RANGE_NOT_SATISFIABLE
    {
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, description.content_type.clone());
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
    *response.headers_mut() = HeaderMap::with_capacity(FIELDS);
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

/// Adds a field whose value was made here; one that is none is left out.
fn insert(headers: &mut HeaderMap, name: http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
