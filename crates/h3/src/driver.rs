//! The task of a connection: its streams that carry no request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use fulmar::{ConnectionError, ReadError, RecvStream, SendStream, WriteError};
use fulmar_h3_proto::{Critical, ErrorCode, Event, Received, Role, Scope};
use tokio::time::Sleep;

use crate::shared::{Blocked, Shared, State, code, now};

/// How many streams that carry no request are read at a time. The next ones wait in the transport.
const SIDE_STREAMS_MAX: usize = 16;

/// The level of the critical streams. Messages refer to what these carry, so that nothing of HTTP is of use to the peer before it: the
/// most urgent response has level 3, and would take all of the credit that the encoder stream needs (RFC 9204 §2.1.3).
const CRITICAL_LEVEL: i32 = 4;

/// What the stream of the QPACK encoder takes, in bytes, as long as it is not open: RFC 9114 §6.2 wants at least 1,024 bytes of credit for
/// each unidirectional stream, of which its type takes one.
const ENCODER_ROOM_FIRST: usize = 1_023;

/// Writes to the critical streams of this end, and reads those of the peer. It ends with the connection.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    /// A handle of its own, as each remembers one task that waits.
    quic: fulmar::Connection,
    outputs: [Output; 3],
    side_streams: Vec<SideStream>,
    /// Runs since nothing more is to come of the connection.
    closing: Option<Pin<Box<Sleep>>>,
}

/// One of the critical streams of this end.
struct Output {
    kind: Critical,
    stream: Option<SendStream>,
    /// What was taken and not written. Nothing more is taken before, so that the limits of HTTP/3 hold.
    waiting: Bytes,
}

struct SideStream {
    id: u64,
    stream: RecvStream,
}

/// The connection is over, for a reason that it knows.
struct Over;

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let output = |kind| Output { kind, stream: None, waiting: Bytes::new() };
        shared.lock().h3.set_encoder_stream_room(ENCODER_ROOM_FIRST);
        Self {
            quic: shared.quic.clone(),
            outputs: Critical::ALL.map(output),
            side_streams: Vec::new(),
            closing: None,
            shared,
        }
    }

    fn poll_output(&mut self, n: usize, cx: &mut Context<'_>) -> Result<(), Over> {
        let output = &mut self.outputs[n];
        loop {
            if output.waiting.is_empty() {
                output.waiting = self.shared.lock().h3.take_output(output.kind);
            }
            if output.waiting.is_empty() {
                break;
            }
            let stream = match &mut output.stream {
                Some(stream) => stream,
                // The three wait for the same: the limit of the peer. Each asks again when this task is woken.
                None => match self.quic.poll_open_uni(cx) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Err(_)) => return Err(Over),
                    Poll::Ready(Ok(stream)) => {
                        let _ = stream.set_priority(fulmar::Priority::from(CRITICAL_LEVEL));
                        self.shared.with(|state| state.h3.on_opened(output.kind, stream.id().as_u64()));
                        output.stream.insert(stream)
                    }
                },
            };
            match stream.poll_write_chunk(cx, &mut output.waiting) {
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    if output.kind == Critical::Encoder {
                        self.shared.lock().h3.set_encoder_stream_room(0);
                    }
                    return Ok(());
                }
                Poll::Ready(Err(WriteError::Stopped(_))) => return self.on_stopped(),
                Poll::Ready(Err(_)) => return Err(Over),
            }
        }
        if let (Critical::Encoder, Some(stream)) = (output.kind, &mut output.stream) {
            // Entries that are not on their way are of no use, and sections that refer to them would wait (RFC 9204 §2.1.3).
            let room = match stream.poll_ready(cx) {
                Poll::Ready(Ok(room)) => usize::try_from(room).unwrap_or(usize::MAX),
                Poll::Ready(Err(WriteError::Stopped(_))) => return self.on_stopped(),
                Poll::Ready(Err(_)) => return Err(Over),
                Poll::Pending => 0,
            };
            self.shared.lock().h3.set_encoder_stream_room(room);
        }
        match output.stream.as_mut().map(|stream| stream.poll_stopped(cx)) {
            Some(Poll::Ready(Ok(Some(_)))) => self.on_stopped(),
            Some(Poll::Ready(_)) => Err(Over),
            Some(Poll::Pending) | None => Ok(()),
        }
    }

    fn on_stopped(&self) -> Result<(), Over> {
        let result = self.shared.lock().h3.on_stop_sending(None, now());
        self.shared.check(result).map_err(|_| Over)
    }

    /// Takes the streams that the peer opens and that carry no request.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Result<(), Over> {
        while self.side_streams.len() < SIDE_STREAMS_MAX {
            match self.quic.poll_accept_uni(cx) {
                Poll::Pending => break,
                Poll::Ready(Err(_)) => return Err(Over),
                Poll::Ready(Ok(stream)) => {
                    let id = stream.id().as_u64();
                    let result = self.shared.with(|state| state.h3.accept(id, false, now()));
                    self.shared.check(result).map_err(|_| Over)?;
                    self.side_streams.push(SideStream { id, stream });
                }
            }
        }
        if self.shared.lock().h3.role() == Role::Client
            && let Poll::Ready(opened) = self.quic.poll_accept_bi(cx)
        {
            let (_, stream) = opened.map_err(|_: ConnectionError| Over)?;
            let result = self.shared.with(|state| state.h3.accept(stream.id().as_u64(), false, now()));
            self.shared.check(result).map_err(|_| Over)?;
        }
        Ok(())
    }

    /// Reads a stream as far as it goes, and says whether there is more to come.
    fn poll_side_stream(&mut self, n: usize, cx: &mut Context<'_>) -> Result<bool, Over> {
        loop {
            let SideStream { id, stream } = &mut self.side_streams[n];
            let (mut bytes, is_last) = match stream.poll_read_chunk(cx, usize::MAX, true) {
                Poll::Pending => return Ok(true),
                Poll::Ready(Ok(Some(chunk))) => (chunk.bytes, chunk.fin),
                Poll::Ready(Ok(None)) => (Bytes::new(), true),
                Poll::Ready(Err(ReadError::Reset(_))) => {
                    let result = self.shared.lock().h3.on_reset(*id, now());
                    self.shared.check(result).map_err(|_| Over)?;
                    return Ok(false);
                }
                Poll::Ready(Err(_)) => return Err(Over),
            };
            loop {
                let (received, waker) = self.shared.with(|state| {
                    let received = state.h3.receive(*id, &mut bytes, is_last);
                    let waker = match &received {
                        Ok(Received::Event(event)) => state.on_event(event),
                        _ => None,
                    };
                    (received, waker)
                });
                waker.into_iter().for_each(Waker::wake);
                match received {
                    Ok(Received::Event(Event::GoAway(_))) => self.shared.going_away.notify_waiters(),
                    Ok(Received::Event(_)) => {}
                    Ok(Received::More) if !is_last => break,
                    // Sessions are not served here.
                    Ok(Received::Claimed) => {
                        let _ = stream.stop(code(ErrorCode::StreamCreationError));
                        return Ok(false);
                    }
                    Ok(_) => return Ok(false),
                    Err(error) => {
                        self.shared.on_error(&error);
                        let _ = stream.stop(code(error.code()));
                        return if error.scope() == Scope::Connection { Err(Over) } else { Ok(false) };
                    }
                }
            }
            self.shared.unblock().map_err(|_| Over)?;
        }
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) -> Result<(), Over> {
        self.shared.lock().driver = Some(cx.waker().clone());
        self.poll_accept(cx)?;
        let mut n = 0;
        while n < self.side_streams.len() {
            if self.poll_side_stream(n, cx)? {
                n += 1;
            } else {
                self.side_streams.remove(n);
                self.poll_accept(cx)?;
            }
        }
        // What was read may be answered.
        (0..self.outputs.len()).try_for_each(|n| self.poll_output(n, cx))?;
        self.poll_closing(cx)
    }

    /// Ends a connection of a client of which nothing is to come: a server that stops waits for that.
    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Result<(), Over> {
        if !self.shared.lock().is_idle() {
            self.closing = None;
            return Ok(());
        }
        let quic = &self.quic;
        let closing = self.closing.get_or_insert_with(|| {
            // The end of a request whose response came early may be on its way, and be lost once.
            Box::pin(tokio::time::sleep(quic.rtt() * 3 + Duration::from_millis(10)))
        });
        match closing.as_mut().poll(cx) {
            Poll::Ready(()) => Err(Over),
            Poll::Pending => Ok(()),
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.poll_all(cx) {
            Ok(()) => Poll::Pending,
            Err(Over) => Poll::Ready(()),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A connection without its critical streams is none. Closing one that is over does nothing.
        self.shared.close(ErrorCode::NoError, "");
        let mut waiting = Vec::new();
        let mut state = self.shared.lock();
        state.is_over = true;
        // What has come whole is there for who reads on.
        state.blocked.retain(|_, blocked| match blocked {
            Blocked::Waits(waker) => {
                waiting.extend(waker.take());
                false
            }
            Blocked::Over(_) | Blocked::Failed(_) => true,
        });
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// Something came that concerns the connection. Returns who is to be woken for it.
    fn on_event(&mut self, event: &Event) -> Option<Waker> {
        match event {
            Event::GoAway(from) => {
                self.refused_from = Some(*from);
                None
            }
            Event::PriorityUpdate { stream, priority } => {
                let reprioritized = self.priorities.entry(*stream).or_default();
                reprioritized.new = Some(*priority);
                reprioritized.waker.take()
            }
            _ => None,
        }
    }

    /// Gives to the next stream what it has waited for, and returns who waits; nothing if none can go on.
    fn unblock(&mut self) -> Result<Option<Option<Waker>>, fulmar_h3_proto::Error> {
        let (stream, blocked) = match self.h3.poll_unblocked() {
            Ok(None) => return Ok(None),
            Ok(Some((stream, event))) => (stream, Blocked::Over(event)),
            Err(error) => match error.scope() {
                Scope::Stream(stream) => (stream, Blocked::Failed(error)),
                Scope::Connection => return Err(error),
            },
        };
        match self.blocked.insert(stream, blocked) {
            Some(Blocked::Waits(waker)) => Ok(Some(waker)),
            _ => Ok(Some(None)),
        }
    }
}

impl Shared {
    /// Lets all streams go on that no longer wait.
    fn unblock(&self) -> Result<(), fulmar_h3_proto::Error> {
        loop {
            match self.with(State::unblock) {
                Ok(None) => return Ok(()),
                Ok(Some(waker)) => waker.into_iter().for_each(Waker::wake),
                Err(error) => {
                    self.on_error(&error);
                    return Err(error);
                }
            }
        }
    }
}
