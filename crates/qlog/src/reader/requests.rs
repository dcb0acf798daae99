//! The requests of a connection, by the frames of HTTP/3 on their streams.

use std::collections::BTreeMap;

use fulmar_base::Instant;
use fulmar_plot::Request;
use serde_json::Value;

use super::event::{length, number, shortened};

/// The most requests of a connection that are kept; others are passed over.
const REQUESTS_MAX: usize = 2_000;

/// The requests that were seen, by their streams.
#[derive(Debug, Default)]
pub(super) struct Requests(BTreeMap<u64, Seen>);

#[derive(Debug)]
struct Seen {
    request: Request,
    /// This end has made it; otherwise it has read it.
    is_own: bool,
}

impl Requests {
    /// Takes a frame that this end has made, or read; `None` if it is none of a request.
    pub(super) fn frame(&mut self, at: Instant, is_own: bool, data: &Value) -> Option<()> {
        let stream = data.get("stream_id").and_then(number)?;
        let frame = data.get("frame")?;
        match frame.get("frame_type").and_then(Value::as_str)? {
            "headers" => self.headers(at, is_own, stream, frame),
            "data" => {
                let Seen { request, is_own: is_own_request } = self.0.get_mut(&stream)?;
                request.end = at;
                let is_of_request = is_own == *is_own_request;
                let bytes = if is_of_request { &mut request.sent } else { &mut request.received };
                *bytes = bytes.saturating_add(length(frame).unwrap_or(0));
                Some(())
            }
            _ => None,
        }
    }

    fn headers(&mut self, at: Instant, is_own: bool, stream: u64, frame: &Value) -> Option<()> {
        let fields = frame.get("headers").and_then(Value::as_array)?;
        let value = |name: &str| {
            let mut of =
                fields.iter().filter(|field| field.get("name").and_then(Value::as_str) == Some(name));
            of.next()?.get("value")?.as_str().map(shortened)
        };
        if let Some(method) = value(":method") {
            if self.0.len() >= REQUESTS_MAX && !self.0.contains_key(&stream) {
                return None;
            }
            let path = value(":path").or_else(|| value(":authority")).unwrap_or_default();
            let request = Request {
                stream,
                method,
                path,
                status: String::new(),
                start: at,
                answered: None,
                end: at,
                sent: 0,
                received: 0,
            };
            self.0.insert(stream, Seen { request, is_own });
            return Some(());
        }
        let Seen { request, .. } = self.0.get_mut(&stream)?;
        request.end = at;
        if let Some(status) = value(":status") {
            // Informational ones are followed by another.
            if !status.starts_with('1') {
                request.answered = Some(at);
            }
            request.status = status;
        }
        Some(())
    }

    /// The requests, in the order in which they began.
    pub(super) fn finish(self) -> Vec<Request> {
        let mut all: Vec<Request> = self.0.into_values().map(|seen| seen.request).collect();
        all.sort_by_key(|request| (request.start, request.stream));
        all
    }
}
