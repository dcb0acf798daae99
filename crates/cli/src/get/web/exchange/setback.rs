//! Why an attempt to fetch a URL has failed.

use std::time::{Duration, SystemTime};

use http::header;
use http::{HeaderMap, StatusCode};

use super::super::exit;
use crate::failure::Failure;
use crate::get::Url;

/// Why an attempt has failed, and when another one may succeed.
pub(super) struct Setback {
    pub(super) failure: Failure,
    /// None where it is of no use.
    pub(super) again: Option<Duration>,
}

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        let may_pass = matches!(
            failure,
            Failure::Http { exit: exit::NOT_CONNECTED | exit::CUT | exit::BROKEN | exit::NO_ADDRESS, .. }
        );
        Self { failure, again: may_pass.then_some(Duration::ZERO) }
    }
}

/// The server refuses.
pub(super) fn refused(url: &Url, status: StatusCode, headers: &HeaderMap) -> Setback {
    let hint = match status {
        StatusCode::UNAUTHORIZED => " (-H 'Authorization: ..' tells it who asks)",
        StatusCode::NOT_FOUND => " (it has nothing of that name)",
        StatusCode::METHOD_NOT_ALLOWED => " (-X names another method)",
        _ => "",
    };
    let why = format!("the server answered {status}{hint}");
    let pause = headers.get(header::RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?));
    let may_pass = matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504);
    Setback {
        failure: Failure::Http { what: url.to_string(), why, exit: exit::STATUS },
        again: may_pass.then(|| pause.unwrap_or_default()),
    }
}

/// How long a server wants not to be asked: seconds, or until a time (RFC 9110 §10.2.3).
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok()
}
