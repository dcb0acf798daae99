//! How long a body is, and how long it should be (RFC 9114 §4.1.2).

use http::StatusCode;

use crate::message::Malformed;

/// The length of a body.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// What has to follow, if it is known.
    left: Option<u64>,
    answers_head: bool,
}

impl Body {
    /// The message answers a HEAD request, and has no body whatever its Content-Length.
    pub(super) fn answers_head(&mut self, answers_head: bool) {
        self.answers_head = answers_head;
    }

    pub(super) fn begin(&mut self, content_length: Option<u64>) {
        self.left = content_length;
    }

    pub(super) fn begin_response(&mut self, content_length: Option<u64>, status: StatusCode) {
        let has_none =
            self.answers_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        self.left = if has_none { Some(0) } else { content_length };
    }

    pub(super) fn take(&mut self, len: u64) -> Result<(), Malformed> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(len).ok_or("a body that is longer than it should be")?;
        }
        Ok(())
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        match self.left {
            None | Some(0) => Ok(()),
            Some(_) => Err("a body that is shorter than it should be"),
        }
    }
}
