//! A message that comes, part by part.

mod unread;

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fulmar::{ConnectionError, ReadError, RecvStream, VarInt};
use fulmar_h3_proto::{ErrorCode, Event, Received, Scope};

use self::unread::Unread;
use crate::error::Error;
use crate::shared::{Blocked, Shared, code, now};

/// The receiving side of the stream of a request.
pub(crate) struct Incoming {
    shared: Arc<Shared>,
    id: u64,
    stream: RecvStream,
    unread: Unread,
    /// What comes after the parts of a body that wait in `unread`.
    next: Option<Result<Received, fulmar_h3_proto::Error>>,
    /// A section waits for the encoder stream of the peer: see [`Blocked`].
    is_blocked: bool,
    is_over: bool,
}

impl Incoming {
    /// `drop_code` is what the peer is told if this is given up.
    pub(crate) fn new(shared: Arc<Shared>, mut stream: RecvStream, drop_code: ErrorCode) -> Self {
        stream.set_drop_code(code(drop_code));
        let id = stream.id().as_u64();
        Self { shared, id, stream, unread: Unread::default(), next: None, is_blocked: false, is_over: false }
    }

    /// The connection, and the request's name there.
    pub(crate) fn place(&self) -> (&Arc<Shared>, u64) {
        (&self.shared, self.id)
    }

    /// Whether nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The next thing that comes, or nothing after the end.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        loop {
            if let Some(data) = self.unread.next_of_body() {
                return Poll::Ready(Ok(Some(Event::Data(data))));
            }
            let received = if let Some(received) = self.next.take() {
                received
            } else if self.is_blocked {
                Ok(ready!(self.poll_unblocked(cx))?)
            } else {
                // What was read is understood as far as it goes before this asks for more.
                if self.unread.wants_more() {
                    ready!(self.poll_read(cx))?;
                }
                self.next = Some(self.receive());
                continue;
            };
            match received {
                Ok(Received::Event(event)) => {
                    self.is_over |= matches!(event, Event::Finished | Event::Refused(_));
                    return Poll::Ready(Ok(Some(event)));
                }
                Ok(Received::More) => {}
                Ok(Received::Blocked) => {
                    self.shared.lock().blocked.entry(self.id).or_insert(Blocked::Waits(None));
                    self.is_blocked = true;
                }
                Ok(Received::Done | Received::Claimed) => {
                    self.is_over = true;
                    return Poll::Ready(Ok(None));
                }
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            }
        }
    }

    /// Takes the parts of a body out of what was read, under one lock, and what comes after them. A request that ends with its head is
    /// found to have no body now, so that nobody has to ask for it, and nobody who does not gives up something.
    fn receive(&mut self) -> Result<Received, fulmar_h3_proto::Error> {
        let Self { shared, id, unread, .. } = self;
        let (received, is_over) = shared.with(|state| {
            let mut receive = |bytes: &mut Bytes, is_last| state.h3.receive(*id, bytes, is_last);
            let received = unread.understand(&mut receive)?;
            let is_whole_head = matches!(received, Received::Event(Event::Request(_))) && unread.is_over();
            let is_over =
                is_whole_head && matches!(unread.understand(&mut receive)?, Received::Event(Event::Finished));
            Ok::<_, fulmar_h3_proto::Error>((received, is_over))
        })?;
        self.is_over |= is_over;
        Ok(received)
    }

    /// What the stream has waited for. It waits no longer than the connection lasts; what had come whole by then is there.
    fn poll_unblocked(&mut self, cx: &Context<'_>) -> Poll<Result<Received, Error>> {
        let mut state = self.shared.lock();
        if !state.is_over
            && let Some(Blocked::Waits(waker)) = state.blocked.get_mut(&self.id)
        {
            *waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let blocked = state.blocked.remove(&self.id);
        drop(state);
        self.is_blocked = false;
        Poll::Ready(match blocked {
            Some(Blocked::Over(event)) => Ok(Received::Event(event)),
            Some(Blocked::Failed(error)) => Err(self.fail(error)),
            Some(Blocked::Waits(_)) | None => {
                self.is_over = true;
                Err(self.shared.quic.close_reason().unwrap_or(ConnectionError::LocallyClosed).into())
            }
        })
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Err(error) = ready!(self.unread.poll_read(&mut self.stream, cx)) else {
            return Poll::Ready(Ok(()));
        };
        self.is_over = true;
        if let ReadError::Reset(_) = error {
            let result = self.shared.with(|state| state.h3.on_reset(self.id, now()));
            self.shared.check(result)?;
        }
        Poll::Ready(Err(error.into()))
    }

    fn fail(&mut self, error: fulmar_h3_proto::Error) -> Error {
        self.is_over = true;
        self.shared.on_error(&error);
        if error.scope() == Scope::Stream(self.id) {
            self.shared.lock().on_failed(self.id, error.code());
            let _ = self.stream.stop(code(error.code()));
        }
        error.into()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let result = self.shared.with(|state| {
            state.blocked.remove(&self.id);
            state.h3.stop_receiving(self.id)
        });
        if let Err(error) = result {
            self.shared.on_error(&error);
        }
    }
}

/// What the peer is told of a stream that is given up.
pub(crate) const CANCELLED: VarInt = VarInt::from_u32(ErrorCode::RequestCancelled as u32);
