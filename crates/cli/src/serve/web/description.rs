//! What the fields of a response say of a file.

use std::path::Path;
use std::time::SystemTime;

use http::header::HeaderValue;

use super::conditions::Validators;
use super::encoding::Encoding;
use super::http_date;
use crate::serve::stamp::Stamp;

/// What depends on nothing but the name of a file and what the file is like.
#[derive(Debug)]
pub(in crate::serve) struct Description {
    pub(super) validators: Validators,
    pub(super) content_type: HeaderValue,
    last_modified: Option<HeaderValue>,
}

impl Description {
    /// Of the file at `path`, or of its form in an encoding, which has this stamp.
    pub(super) fn new(path: &Path, stamp: Stamp, encoding: Option<Encoding>) -> Self {
        let validators = Validators::new(stamp.len, stamp.modified, encoding.map(Encoding::name));
        let last_modified = validators.modified.and_then(http_date);
        Self { validators, content_type: content_type(path), last_modified }
    }

    /// The time of the last change for a response at `now`. A clock may have been wrong: nothing was changed after the response
    /// (RFC 9110 §8.8.2.1).
    pub(super) fn last_modified(&self, now: SystemTime) -> Option<HeaderValue> {
        match self.validators.modified {
            Some(modified) if modified > now => http_date(now),
            _ => self.last_modified.clone(),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn nothing_was_changed_after_the_response() {
        let modified = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let validators = Validators::new(1, Some(modified), None);
        let last_modified = http_date(modified);
        let content_type = content_type(Path::new("a.html"));
        assert_eq!(content_type, "text/html; charset=utf-8");
        let description = Description { validators, content_type, last_modified };
        let at = |now| description.last_modified(now).expect("a date");
        assert_eq!(at(modified), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(modified + Duration::from_secs(1)), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(modified - Duration::from_secs(1)), "Sun, 06 Nov 1994 08:49:36 GMT");
    }
}
