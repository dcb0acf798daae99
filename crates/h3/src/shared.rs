//! What all parts of a connection share: the state of HTTP/3, and who waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use fulmar::{Instant, VarInt};
use fulmar_h3_proto::log::LogEvent;
use fulmar_h3_proto::{Connection, Critical, ErrorCode, Event, Priority, Role, Scope};
use tokio::sync::Notify;

use crate::error::Error;

/// The name of HTTP/3 for TLS configurations (ALPN).
pub const ALPN: &[u8] = b"h3";

/// A connection of QUIC with its HTTP/3.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) quic: fulmar::Connection,
    /// Somebody takes what is noted.
    is_logged: bool,
    /// Responses get a Date.
    pub(crate) adds_date: bool,
    state: Mutex<State>,
    /// Tells the requests of this end that the peer takes no more.
    pub(crate) going_away: Notify,
}

/// What a lock is needed for.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) h3: Connection,
    /// Streams that wait for the encoder stream of the peer, or what they waited for. Not more than the decoder lets wait.
    pub(crate) blocked: BTreeMap<u64, Blocked>,
    /// Priorities that were changed while a response is sent, and who is to learn of that. Only for requests that are open.
    pub(crate) priorities: BTreeMap<u64, Reprioritized>,
    /// Why requests have failed that the peer sends wrongly, until the other side of their stream ends for the same. At most
    /// [`FAILED_MAX`].
    failed: BTreeMap<u64, ErrorCode>,
    /// The driver, which writes to the critical streams.
    pub(crate) driver: Option<Waker>,
    /// Requests of this end that are not over.
    pub(crate) requests: usize,
    /// Nobody of this end can make requests any more.
    is_abandoned: bool,
    /// The peer takes no more requests: it works on none of this end that has this ID, or a higher one (GOAWAY).
    pub(crate) refused_from: Option<u64>,
    /// Nothing will come any more.
    pub(crate) is_over: bool,
}

/// How many streams that have failed are remembered for their other side. The oldest is forgotten, and ends with a code of its own: it
/// may have ended long before.
const FAILED_MAX: usize = 64;

/// What HTTP/3 notes of a connection, among the entries that the endpoint's [`LogSink`](fulmar::LogSink) gets
/// ([`LogBatch::application`](fulmar::LogBatch::application)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpEvent(pub LogEvent);

impl fulmar::ApplicationEvent for HttpEvent {
    fn size(&self) -> usize {
        self.0.size()
    }
}

/// A stream that waits.
#[derive(Debug)]
pub(crate) enum Blocked {
    Waits(Option<Waker>),
    Over(Event),
    Failed(fulmar_h3_proto::Error),
}

/// Another priority of a response.
#[derive(Debug, Default)]
pub(crate) struct Reprioritized {
    /// What the peer has said last and was not heard of yet.
    pub(crate) new: Option<Priority>,
    /// Who sends the response, and waits.
    pub(crate) waker: Option<Waker>,
}

impl Shared {
    pub(crate) fn new(quic: fulmar::Connection, mut h3: Connection) -> Arc<Self> {
        let is_logged = quic.is_logged();
        if is_logged {
            h3.start_log();
        }
        let adds_date = h3.config().date_header;
        let state = State {
            h3,
            blocked: BTreeMap::new(),
            priorities: BTreeMap::new(),
            failed: BTreeMap::new(),
            driver: None,
            requests: 0,
            is_abandoned: false,
            refused_from: None,
            is_over: false,
        };
        Arc::new(Self { quic, is_logged, adds_date, state: Mutex::new(state), going_away: Notify::new() })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the state, hands over what was noted, and wakes the driver if there is something to send then.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        let (result, waker) = {
            let mut state = self.lock();
            let result = f(&mut state);
            if self.is_logged {
                // Under the lock, so that the order stays.
                state.h3.take_log().into_iter().for_each(|event| self.quic.log(HttpEvent(event)));
            }
            let has_output = Critical::ALL.into_iter().any(|stream| state.h3.has_output(stream));
            (result, if has_output { state.driver.take() } else { None })
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Ends the connection where an error concerns it as a whole.
    pub(crate) fn on_error(&self, error: &fulmar_h3_proto::Error) {
        if error.scope() == Scope::Connection {
            self.close(error.code(), error.reason());
        }
    }

    pub(crate) fn close(&self, code: ErrorCode, reason: &'static str) {
        self.quic.close(VarInt::saturating(code.code()), reason.as_bytes());
    }

    /// Nobody makes requests any more.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.is_abandoned = true;
        wake_if_idle(state);
    }

    /// Takes an error of HTTP/3 as its result, after it has done to the connection what it should.
    pub(crate) fn check<T>(&self, result: Result<T, fulmar_h3_proto::Error>) -> Result<T, Error> {
        result.map_err(|error| {
            self.on_error(&error);
            error.into()
        })
    }
}

/// A request of this end, until it is over: its connection stays open as long, also if the server takes no more or nobody else has a use
/// for it.
pub(crate) struct OpenRequest(Arc<Shared>);

impl OpenRequest {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        shared.lock().requests += 1;
        Self(Arc::clone(shared))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.requests -= 1;
        wake_if_idle(state);
    }
}

/// Wakes the driver if nothing is to come of the connection, which it closes then.
fn wake_if_idle(mut state: MutexGuard<'_, State>) {
    let waker = if state.is_idle() { state.driver.take() } else { None };
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl State {
    /// A stream has failed by a fault of the peer.
    pub(crate) fn on_failed(&mut self, stream: u64, code: ErrorCode) {
        self.failed.insert(stream, code);
        if self.failed.len() > FAILED_MAX {
            self.failed.pop_first();
        }
    }

    /// Why a stream has failed, for its other side.
    pub(crate) fn take_failed(&mut self, stream: u64) -> Option<ErrorCode> {
        self.failed.remove(&stream)
    }

    /// Whether the peer has said that it does not work on a request of this end.
    pub(crate) fn is_refused(&self, id: u64) -> bool {
        self.refused_from.is_some_and(|from| id >= from)
    }

    /// Whether nothing is to come of a connection: the server takes no more requests or nobody makes any, and those that there were
    /// are over.
    pub(crate) fn is_idle(&self) -> bool {
        let is_last = self.refused_from.is_some() || self.is_abandoned;
        is_last && self.requests == 0 && self.h3.role() == Role::Client
    }
}

/// The number of an error on the wire.
pub(crate) fn code(code: ErrorCode) -> VarInt {
    VarInt::saturating(code.code())
}

/// The time now.
pub(crate) fn now() -> Instant {
    static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
    #[allow(
        clippy::disallowed_methods,
        reason = "the time of the crate without I/O is read here and passed in"
    )]
    let epoch = EPOCH.get_or_init(std::time::Instant::now);
    Instant::ZERO + epoch.elapsed()
}
