//! How streams and connections begin and end.

use std::time::Duration;

use fulmar_base::Instant;

use super::receiving::RecvSide;
use super::sending::SendSide;
use super::{Connection, Request, Role, breach, is_bidirectional, is_of_client};
use crate::error::{Error, ErrorCode, SendError};
use crate::frame;
use crate::log::{LogEvent, StreamKind};
use crate::varint;

/// A client that gives up a request has waited for its response if that took so long: with 100 requests at a time it makes no more than
/// 2,000 of these a second.
const WAITED_MIN: Duration = Duration::from_millis(50);

impl Connection {
    /// The peer has opened a stream; `is_early` says that it did so by early data (0-RTT).
    ///
    /// # Errors
    ///
    /// H3_STREAM_CREATION_ERROR for a stream that the peer must not open; of the stream: H3_REQUEST_REJECTED for a request after
    /// GOAWAY, or for one beyond [`Config::requests`](crate::Config::requests).
    pub fn accept(&mut self, stream: u64, is_early: bool, now: Instant) -> Result<(), Error> {
        let is_of_peer = is_of_client(stream) == (self.role == Role::Server);
        if !is_of_peer {
            return Err(breach(ErrorCode::InternalError, "a stream that this end opens"));
        }
        self.now = self.now.max(now);
        if !(is_bidirectional(stream) && self.role == Role::Server) {
            let side_stream = self.new_side_stream(stream)?;
            self.side_streams.insert(stream, side_stream);
            return Ok(());
        }
        // After GOAWAY its number is not counted: what was said of it must remain true.
        if self.refused_from.is_some_and(|from| stream >= from) {
            return Err(self.rejected(stream, "the connection takes no more requests"));
        }
        self.next_request = self.next_request.max(stream + 4);
        if self.requests_left.as_mut().is_some_and(|bucket| !bucket.take(now)) {
            return Err(self.rejected(stream, "too many requests"));
        }
        let request = Request {
            recv: RecvSide::of_request(is_early),
            send: SendSide::of_response(),
            begun_at: now,
            is_counted: false,
        };
        self.requests.insert(stream, request);
        self.shared.log.note(|| LogEvent::StreamType { stream, is_local: false, kind: StreamKind::Request });
        Ok(())
    }

    fn rejected(&mut self, stream: u64, reason: &'static str) -> Error {
        // A decoder that reads nothing of a stream says so. If that fails, so does the next thing that is decoded.
        match self.shared.decoder.cancel(stream) {
            Ok(()) => Error::stream(stream, ErrorCode::RequestRejected, reason),
            Err(error) => error.into(),
        }
    }

    /// The peer has reset a stream (RESET_STREAM): nothing more comes on it.
    ///
    /// # Errors
    ///
    /// H3_CLOSED_CRITICAL_STREAM; H3_EXCESSIVE_LOAD beyond [`Config::resets`](crate::Config::resets).
    pub fn on_reset(&mut self, stream: u64, now: Instant) -> Result<(), Error> {
        let side_stream = self.side_streams.remove(&stream);
        if side_stream.is_some_and(|side_stream| side_stream.is_critical()) {
            return Err(breach(ErrorCode::ClosedCriticalStream, "a critical stream was reset"));
        }
        self.count_cancellation(stream, now)?;
        self.stop_receiving(stream)
    }

    /// The peer wants no more of a stream that this end sends (STOP_SENDING). The transport resets it. `None` stands for one of the
    /// three streams of [`take_output`](Self::take_output).
    ///
    /// # Errors
    ///
    /// As [`on_reset`](Self::on_reset).
    pub fn on_stop_sending(&mut self, stream: Option<u64>, now: Instant) -> Result<(), Error> {
        let Some(stream) = stream else {
            return Err(breach(ErrorCode::ClosedCriticalStream, "a critical stream was stopped"));
        };
        self.count_cancellation(stream, now)?;
        self.stop_sending(stream);
        Ok(())
    }

    /// This end reads no more of a stream, and asks the peer to stop (STOP_SENDING).
    ///
    /// # Errors
    ///
    /// H3_EXCESSIVE_LOAD where the peer does not read its decoder stream.
    pub fn stop_receiving(&mut self, stream: u64) -> Result<(), Error> {
        self.side_streams.remove(&stream);
        let Some(request) = self.requests.get_mut(&stream) else { return Ok(()) };
        if !request.recv.is_over() {
            request.recv.end(&mut self.shared);
            // RFC 9204 §2.2.2.2.
            self.shared.decoder.cancel(stream)?;
        }
        self.forget_if_over(stream);
        Ok(())
    }

    /// This end sends no more of a stream, and resets it (RESET_STREAM).
    pub fn stop_sending(&mut self, stream: u64) {
        if let Some(request) = self.requests.get_mut(&stream) {
            request.send.end();
        }
        self.forget_if_over(stream);
    }

    /// A client that gives up requests as soon as it has made them makes a server work for nothing, and never waits for the limit of
    /// streams; each counts once. One that has waited, or takes a part of the response, asks for no more than who takes all of it.
    fn count_cancellation(&mut self, stream: u64, now: Instant) -> Result<(), Error> {
        self.now = self.now.max(now);
        let Some(request) = self.requests.get_mut(&stream) else { return Ok(()) };
        let has_waited = now.saturating_since(request.begun_at) >= WAITED_MIN;
        let is_rapid = !request.send.has_begun() && !has_waited;
        if self.role == Role::Client || !is_rapid || std::mem::replace(&mut request.is_counted, true) {
            return Ok(());
        }
        if self.resets_left.take(now) {
            return Ok(());
        }
        Err(breach(ErrorCode::ExcessiveLoad, "too many requests are given up at once"))
    }

    /// A request that becomes malformed behind its head has begun work for nothing as well, and its client makes this end give it up. Who
    /// receives tells no time: the latest that is known is that of the newest request or later, and never counts a request as older
    /// than it is.
    pub(super) fn count_malformed(&mut self, stream: u64) -> Result<(), Error> {
        match self.requests.get(&stream) {
            Some(request) if !request.recv.is_before_head() => self.count_cancellation(stream, self.now),
            _ => Ok(()),
        }
    }

    /// Says that the connection will be closed (RFC 9114 §5.2), while requests are still taken: those that are on their way must
    /// not be lost. To be followed by [`finish_shutdown`](Self::finish_shutdown) a round trip later or more.
    ///
    /// # Errors
    ///
    /// [`SendError::QueueFull`] if the control stream is not read.
    pub fn start_shutdown(&mut self) -> Result<(), SendError> {
        match self.role {
            // The largest ID that a request can have.
            Role::Server => self.go_away(varint::MAX & !3),
            // The ID of a push, of which there are none.
            Role::Client => self.go_away(0),
        }
    }

    /// Takes no more requests, and says which the last one was. What has begun goes on: [`is_idle`](Self::is_idle) says when the
    /// connection can be closed.
    ///
    /// # Errors
    ///
    /// [`SendError::QueueFull`] if the control stream is not read.
    pub fn finish_shutdown(&mut self) -> Result<(), SendError> {
        match self.role {
            Role::Server => self.go_away(self.next_request)?,
            Role::Client => self.go_away(0)?,
        }
        self.refused_from.get_or_insert(self.next_request);
        Ok(())
    }

    /// Whether no request is open.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// How many requests are open.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    fn go_away(&mut self, id: u64) -> Result<(), SendError> {
        if self.refused_from.is_some() {
            return Ok(());
        }
        let mut payload = Vec::new();
        varint::write(id, &mut payload);
        self.send_control(frame::GOAWAY, &payload)
    }
}
