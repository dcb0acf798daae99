//! Answers that several requests share.
//!
//! Clients ask for the same file at the same time, and to open, look at, read and close it costs more than to send it, if it is small.
//! The rule: an answer is given again only to requests that had come before its file was looked at. Each of them gets the file as it
//! was after it had asked, as if it had been looked at for this request alone; a request that comes later looks anew, so that a
//! file that was changed, replaced or removed is seen by all who ask after that. No time is guessed and nothing is watched.

use std::sync::{Mutex, TryLockError};
use std::time::Instant;

use bytes::Bytes;
use http::header::{
    DATE, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, Method, Response, StatusCode, request};

use super::body::WebBody;
use super::encoding::{self, Encoding};

/// How many answers are kept. They are in memory until others take their place: each has one block of a file at most.
const ANSWERS_MAX: usize = 16;

/// Answers that were made lately. Those who find it locked do without.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    all: Vec<Answer>,
    /// Where the next one is put, once there are as many as may be.
    next: usize,
}

/// A response with a whole body.
#[derive(Debug)]
struct Answer {
    path: String,
    encodings: Encodings,
    /// Before its file was.
    looked_at: Instant,
    fields: HeaderMap,
    body: Bytes,
}

/// What a client takes, in its order.
type Encodings = [Option<Encoding>; encoding::COUNT];

/// A request whose answer depends on nothing but the path and the encodings, and when it had come.
pub(super) struct Plain {
    encodings: Encodings,
    received_at: Instant,
}

impl Plain {
    /// `None` for other requests.
    pub(super) fn of(request: &request::Parts, received_at: Instant) -> Option<Self> {
        let is_condition = |name| {
            [&IF_MATCH, &IF_MODIFIED_SINCE, &IF_NONE_MATCH, &IF_RANGE, &IF_UNMODIFIED_SINCE, &RANGE]
                .contains(&name)
        };
        if request.method != Method::GET || request.headers.keys().any(is_condition) {
            return None;
        }
        let mut encodings = Encodings::default();
        for (place, encoding) in encodings.iter_mut().zip(encoding::accepted(&request.headers)) {
            *place = Some(encoding);
        }
        Some(Self { encodings, received_at })
    }
}

impl Recent {
    /// An answer to a request, if one was made since that had come.
    pub(super) fn find(&self, path: &str, plain: &Plain) -> Option<Response<WebBody>> {
        let answers = self.try_lock()?;
        let fits = |answer: &&Answer| {
            answer.looked_at >= plain.received_at
                && answer.path == path
                && answer.encodings == plain.encodings
        };
        let Answer { fields, body, .. } = answers.all.iter().find(fits)?;
        let mut response = Response::new(WebBody::of(body.clone()));
        *response.headers_mut() = fields.clone();
        Some(response)
    }

    /// Keeps the answer to a request, if it is one that others can share, made of what was looked at since `looked_at`.
    pub(super) fn keep(&self, path: &str, plain: &Plain, looked_at: Instant, response: &Response<WebBody>) {
        let Some(body) = response.body().whole().filter(|_| response.status() == StatusCode::OK) else {
            return;
        };
        let Some(mut answers) = self.try_lock() else { return };
        let mut fields = response.headers().clone();
        // Each response has its own; here is the place for it, so that nothing grows when it comes.
        fields.insert(DATE, HeaderValue::from_static(""));
        answers.put(Answer {
            path: path.to_owned(),
            encodings: plain.encodings,
            looked_at,
            fields,
            body: body.clone(),
        });
    }

    fn try_lock(&self) -> Option<std::sync::MutexGuard<'_, Answers>> {
        match self.0.try_lock() {
            Ok(answers) => Some(answers),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Answers {
    fn put(&mut self, answer: Answer) {
        let same = |old: &Answer| old.path == answer.path && old.encodings == answer.encodings;
        if let Some(place) = self.all.iter().position(same) {
            self.all[place] = answer;
        } else if self.all.len() < ANSWERS_MAX {
            self.all.push(answer);
        } else {
            self.all[self.next] = answer;
            self.next = (self.next + 1) % ANSWERS_MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn plain(received_at: Instant, encodings: &str) -> Plain {
        let mut request = http::Request::new(());
        if !encodings.is_empty() {
            request.headers_mut().insert("accept-encoding", encodings.parse().expect("a value"));
        }
        Plain::of(&request.into_parts().0, received_at).expect("a request without conditions")
    }

    fn response(text: &'static str) -> Response<WebBody> {
        Response::new(WebBody::of(text))
    }

    fn found(recent: &Recent, path: &str, plain: &Plain) -> Option<Bytes> {
        Some(recent.find(path, plain)?.body().whole().expect("a whole body").clone())
    }

    #[test]
    fn requests_that_had_come_share_an_answer_and_later_ones_do_not() {
        let (recent, came) = (Recent::default(), Instant::now());
        let looked_at = came + Duration::from_micros(1);
        recent.keep("/a", &plain(came, ""), looked_at, &response("one"));
        assert_eq!(found(&recent, "/a", &plain(came, "")).as_deref(), Some(&b"one"[..]));
        assert_eq!(found(&recent, "/a", &plain(looked_at, "")).as_deref(), Some(&b"one"[..]));
        let later = looked_at + Duration::from_nanos(1);
        assert_eq!(found(&recent, "/a", &plain(later, "")), None);
        assert_eq!(found(&recent, "/b", &plain(came, "")), None);
        recent.keep("/a", &plain(later, ""), later, &response("two"));
        assert_eq!(found(&recent, "/a", &plain(came, "")).as_deref(), Some(&b"two"[..]));
    }

    #[test]
    fn clients_that_take_other_encodings_have_answers_of_their_own() {
        let (recent, now) = (Recent::default(), Instant::now());
        recent.keep("/a", &plain(now, "gzip, br"), now, &response("small"));
        assert!(found(&recent, "/a", &plain(now, "br, gzip")).is_some());
        assert_eq!(found(&recent, "/a", &plain(now, "gzip")), None);
        assert_eq!(found(&recent, "/a", &plain(now, "gzip;q=1, br;q=0.5")), None);
        assert_eq!(found(&recent, "/a", &plain(now, "")), None);
    }

    #[test]
    fn requests_with_conditions_and_responses_with_other_statuses_share_nothing() {
        for (name, value) in [("if-none-match", "*"), ("range", "bytes=0-1"), ("if-modified-since", "x")] {
            let mut request = http::Request::new(());
            request.headers_mut().insert(name, value.parse().expect("a value"));
            assert!(Plain::of(&request.into_parts().0, Instant::now()).is_none(), "{name}");
        }
        let (recent, now) = (Recent::default(), Instant::now());
        let mut missing = response("none");
        *missing.status_mut() = StatusCode::NOT_FOUND;
        recent.keep("/a", &plain(now, ""), now, &missing);
        assert_eq!(found(&recent, "/a", &plain(now, "")), None);
    }

    #[test]
    fn a_bounded_number_of_answers_is_kept() {
        let (recent, now) = (Recent::default(), Instant::now());
        for number in 0..3 * ANSWERS_MAX {
            recent.keep(&format!("/{number}"), &plain(now, ""), now, &response("x"));
        }
        assert_eq!(recent.0.lock().expect("no panic").all.len(), ANSWERS_MAX);
        assert!(found(&recent, "/47", &plain(now, "")).is_some());
        assert!(found(&recent, "/31", &plain(now, "")).is_none());
    }
}
