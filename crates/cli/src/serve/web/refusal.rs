//! Responses without a file: the words of a status, and which status an error is.

use std::io::{self, ErrorKind};

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use tracing::info;

use super::body::WebBody;
use crate::serve::files::SourceError;

/// EMFILE and ELOOP, which have no kinds of their own.
const TOO_MANY_OPEN_FILES: i32 = 24;
const LINKS_IN_A_LOOP: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };

/// Whether what was asked for is not there.
pub(super) fn is_missing(error: &SourceError) -> bool {
    matches!(error, SourceError::Io(error) if status_of(error) == StatusCode::NOT_FOUND)
}

/// The answer to a request that failed.
pub(super) fn refuse(path: &str, error: &SourceError) -> Response<WebBody> {
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

/// A response with the words of its status.
pub(super) fn bare(status: StatusCode) -> Response<WebBody> {
    let words = format!("{} {}\n", status.as_str(), status.canonical_reason().unwrap_or_default());
    let mut response = Response::new(WebBody::of(words));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
