//! Opening streams, and accepting those of the peer.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use fulmar_proto::{ConnectionError, Dir};

use super::Connection;
use crate::shared::{Awaited, Completion, ConnectionRef, SlotKey, State, Ticket};
use crate::stream::{RecvStream, SendStream};

impl Connection {
    /// Opens a bidirectional stream, waiting until the peer's limit allows it. The peer learns of the stream when something
    /// is sent on it.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.wait(Awaited::Open(Dir::Bi)).await.map(|key| self.both(key))
    }

    /// Opens a unidirectional stream, waiting until the peer's limit allows it.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        self.wait(Awaited::Open(Dir::Uni)).await.map(|key| self.sending(key))
    }

    /// Opens a bidirectional stream, or arranges that the task of `cx` is woken when the peer may allow one. See
    /// [`open_bi`](Self::open_bi).
    ///
    /// # Errors
    /// If the connection is over.
    pub fn poll_open_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let key = ready!(self.poll(Awaited::Open(Dir::Bi), cx))?;
        Poll::Ready(Ok(self.both(key)))
    }

    /// Opens a unidirectional stream, or arranges that the task of `cx` is woken when the peer may allow one. See
    /// [`open_uni`](Self::open_uni).
    ///
    /// # Errors
    /// If the connection is over.
    pub fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        let key = ready!(self.poll(Awaited::Open(Dir::Uni), cx))?;
        Poll::Ready(Ok(self.sending(key)))
    }

    /// Opens a bidirectional stream now, or returns `None` if the peer's limit is reached.
    ///
    /// # Errors
    /// If the connection is over.
    pub fn try_open_bi(&self) -> Result<Option<(SendStream, RecvStream)>, ConnectionError> {
        Ok(self.try_open(Dir::Bi)?.map(|key| self.both(key)))
    }

    /// Opens a unidirectional stream now, or returns `None` if the peer's limit is reached.
    ///
    /// # Errors
    /// If the connection is over.
    pub fn try_open_uni(&self) -> Result<Option<SendStream>, ConnectionError> {
        Ok(self.try_open(Dir::Uni)?.map(|key| self.sending(key)))
    }

    /// Changes how many bidirectional streams the peer may have open at once, in place of
    /// `TransportConfig::max_concurrent_bidi_streams`. The peer learns at once of more. What it was allowed cannot be taken back: with
    /// fewer it gets no new ones until enough of its streams are over (RFC 9000 §4.6). More than 2^20 count as 2^20. It does not change the connection's
    /// windows, which are what bounds the memory of all streams together.
    pub fn set_max_concurrent_bidi_streams(&self, count: u64) {
        self.set_max_concurrent(Dir::Bi, count);
    }

    /// Changes how many unidirectional streams the peer may have open at once, as
    /// [`set_max_concurrent_bidi_streams`](Self::set_max_concurrent_bidi_streams) does for bidirectional ones.
    pub fn set_max_concurrent_uni_streams(&self, count: u64) {
        self.set_max_concurrent(Dir::Uni, count);
    }

    fn set_max_concurrent(&self, dir: Dir, count: u64) {
        let mut state = self.inner.lock();
        state.proto.streams().set_max_concurrent(dir, count);
        self.inner.release(state);
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// Streams that nobody accepts are limited by `TransportConfig::max_concurrent_bidi_streams`: the peer has to wait then.
    ///
    /// Cancellation safe: no stream is lost.
    ///
    /// # Errors
    /// If the connection is over and all streams that arrived before were accepted.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.wait(Awaited::Accept(Dir::Bi)).await.map(|key| self.both(key))
    }

    /// Waits for the next unidirectional stream that the peer opens. See [`accept_bi`](Self::accept_bi).
    ///
    /// Cancellation safe: no stream is lost.
    ///
    /// # Errors
    /// If the connection is over and all streams that arrived before were accepted.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        self.wait(Awaited::Accept(Dir::Uni)).await.map(|key| self.receiving(key))
    }

    /// The next bidirectional stream that the peer has opened; if there is none, the task of `cx` is woken when there is.
    /// See [`accept_bi`](Self::accept_bi).
    ///
    /// # Errors
    /// If the connection is over and all streams that arrived before were accepted.
    pub fn poll_accept_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let key = ready!(self.poll(Awaited::Accept(Dir::Bi), cx))?;
        Poll::Ready(Ok(self.both(key)))
    }

    /// The next unidirectional stream that the peer has opened; if there is none, the task of `cx` is woken when there is.
    /// See [`accept_uni`](Self::accept_uni).
    ///
    /// # Errors
    /// If the connection is over and all streams that arrived before were accepted.
    pub fn poll_accept_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecvStream, ConnectionError>> {
        let key = ready!(self.poll(Awaited::Accept(Dir::Uni), cx))?;
        Poll::Ready(Ok(self.receiving(key)))
    }

    fn try_open(&self, dir: Dir) -> Result<Option<SlotKey>, ConnectionError> {
        let mut state = self.inner.lock();
        let opened = attempt(&mut state, Awaited::Open(dir))?;
        self.inner.release(state);
        Ok(opened)
    }

    /// Polls with the ticket of this handle.
    fn poll(&mut self, awaited: Awaited, cx: &mut Context<'_>) -> Poll<Result<SlotKey, ConnectionError>> {
        let tickets = self.tickets.get_or_insert_default();
        poll(&self.inner, awaited, &mut tickets[awaited.index()], cx)
    }

    /// Polls with a ticket of its own.
    async fn wait(&self, awaited: Awaited) -> Result<SlotKey, ConnectionError> {
        let mut place = Place { connection: &self.inner, awaited, ticket: None };
        poll_fn(|cx| poll(place.connection, awaited, &mut place.ticket, cx)).await
    }

    fn both(&self, key: SlotKey) -> (SendStream, RecvStream) {
        (self.sending(key), self.receiving(key))
    }

    fn sending(&self, key: SlotKey) -> SendStream {
        SendStream::new(self.inner.clone(), key)
    }

    fn receiving(&self, key: SlotKey) -> RecvStream {
        RecvStream::new(self.inner.clone(), key)
    }
}

/// Opens or accepts a stream, or puts the task of `cx` among those who wait for that.
fn poll(
    connection: &ConnectionRef,
    awaited: Awaited,
    ticket: &mut Option<Ticket>,
    cx: &mut Context<'_>,
) -> Poll<Result<SlotKey, ConnectionError>> {
    let mut state = connection.lock();
    let polled = match attempt(&mut state, awaited) {
        Ok(None) => {
            state.queues.of(awaited).wait(ticket, cx);
            Poll::Pending
        }
        Ok(Some(key)) => {
            state.queues.leave(awaited, ticket);
            Poll::Ready(Ok(key))
        }
        Err(error) => {
            state.queues.leave(awaited, ticket);
            return Poll::Ready(Err(error));
        }
    };
    if polled.is_ready() || matches!(awaited, Awaited::Open(_)) {
        // Where the limit was reached, the peer is told so (STREAMS_BLOCKED, RFC 9000 §19.14).
        connection.release(state);
    }
    polled
}

/// Opens or accepts a stream, if there is one.
fn attempt(state: &mut State, awaited: Awaited) -> Result<Option<SlotKey>, ConnectionError> {
    let (id, dir) = match awaited {
        Awaited::Open(dir) => {
            state.check()?;
            (state.proto.streams().open(dir), dir)
        }
        Awaited::Accept(dir) => (state.proto.streams().accept(dir), dir),
    };
    match id {
        Some(id) => {
            let handles = if dir == Dir::Bi { 2 } else { 1 };
            let key = state.streams.insert(id, handles);
            // The peer may have stopped the stream before it was accepted.
            if let Ok(Some(code)) = state.proto.streams().send(id).stopped() {
                state.streams.set_completion(key, Completion::Stopped(code));
            }
            Ok(Some(key))
        }
        None => state.check().map(|()| None),
    }
}

/// A future's place among those who wait. It is given back when the future is dropped.
struct Place<'a> {
    connection: &'a ConnectionRef,
    awaited: Awaited,
    ticket: Option<Ticket>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.connection.lock().queues.leave(self.awaited, &mut self.ticket);
        }
    }
}
