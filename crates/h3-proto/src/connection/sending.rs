//! What this end sends on the streams of requests.

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_qpack::FieldRef;
use http::{HeaderMap, Method, StatusCode};

use super::receiving::RecvSide;
use super::{Connection, Request, Role, is_of_request};
use crate::error::SendError;
use crate::frame;
use crate::log::{LogEvent, LogFrame, StreamKind};
use crate::message::{self, Fields, Protocol};
use crate::priority::Priority;
use crate::varint;

/// The sending side of the stream of a request.
#[derive(Debug)]
pub(super) struct SendSide {
    phase: Phase,
    /// What has to follow of the body, if it is known.
    left: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
    Trailed,
    Done,
}

impl SendSide {
    /// A response, whose head is to come.
    pub(super) fn of_response() -> Self {
        Self { phase: Phase::Head, left: None }
    }

    /// Whether the head of the message was sent.
    pub(super) fn has_begun(&self) -> bool {
        self.phase != Phase::Head
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Done
    }

    pub(super) fn end(&mut self) {
        self.phase = Phase::Done;
    }
}

/// The header of a DATA frame: what is to be written before a part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    bytes: [u8; 9],
    len: u8,
}

impl DataHeader {
    fn new(len: u64) -> Self {
        let mut out = Vec::with_capacity(9);
        frame::write_header(frame::DATA, len, &mut out);
        let mut bytes = [0; 9];
        bytes[..out.len()].copy_from_slice(&out);
        Self { bytes, len: out.len() as u8 }
    }
}

impl AsRef<[u8]> for DataHeader {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Connection {
    /// Begins a request on a bidirectional stream that this client has opened, and returns what is to be written to it. Extended
    /// CONNECT has a [`Protocol`] among the extensions.
    ///
    /// Fields that only concern a connection of HTTP/1.1 are left out; Host becomes `:authority`.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn send_request(&mut self, stream: u64, parts: &http::request::Parts) -> Result<Bytes, SendError> {
        if self.role != Role::Client || !is_of_request(stream) || self.requests.contains_key(&stream) {
            return Err(SendError::OutOfOrder);
        }
        // RFC 9114 §5.2: also not with an ID that the server would still take.
        if self.refused_from.is_some() || self.peer.going_away.is_some() {
            return Err(SendError::GoingAway);
        }
        let takes_protocol = self.peer.settings.as_ref().is_some_and(|peer| peer.enable_connect_protocol);
        if parts.extensions.get::<Protocol>().is_some() && !takes_protocol {
            return Err(SendError::Unsupported);
        }
        let fields = message::request_fields(parts).map_err(SendError::Malformed)?;
        let left = message::content_length(&parts.headers).map_err(SendError::Malformed)?;
        let kind = StreamKind::Request;
        self.shared.log.note(|| LogEvent::StreamType { stream, is_local: true, kind });
        let mut headers = Vec::with_capacity(HEADERS_LEN);
        self.encode(stream, fields, &mut headers)?;
        let left = if parts.method == Method::CONNECT { None } else { left };
        let send = SendSide { phase: Phase::Body, left };
        let request = Request {
            recv: RecvSide::of_response(&parts.method),
            send,
            begun_at: Instant::ZERO,
            is_counted: false,
        };
        self.requests.insert(stream, request);
        self.next_request = self.next_request.max(stream + 4);
        Ok(headers.into())
    }

    /// The head of a response, or an informational one, which leaves the response to come. `has_body` says whether the request
    /// has one in its answer: that of HEAD has none, whatever its Content-Length.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn send_response(
        &mut self,
        stream: u64,
        parts: &http::response::Parts,
        has_body: bool,
    ) -> Result<Bytes, SendError> {
        let mut headers = Vec::with_capacity(HEADERS_LEN);
        self.write_response(stream, parts, has_body, &mut headers)?;
        Ok(headers.into())
    }

    /// The same, appended to `out`: what follows of the message may be written behind it.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing is appended then.
    pub fn write_response(
        &mut self,
        stream: u64,
        parts: &http::response::Parts,
        has_body: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        self.expect_phase(stream, Phase::Head)?;
        let fields = message::response_fields(parts).map_err(SendError::Malformed)?;
        let length = message::content_length(&parts.headers).map_err(SendError::Malformed)?;
        self.encode(stream, fields, out)?;
        let is_informational = parts.status.is_informational();
        if !is_informational && let Some(request) = self.requests.get_mut(&stream) {
            let has_none =
                !has_body || matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
            request.send = SendSide { phase: Phase::Body, left: if has_none { Some(0) } else { length } };
        }
        Ok(())
    }

    /// The header for `len` bytes of the body, which are to be written behind it.
    ///
    /// # Errors
    ///
    /// [`SendError::ContentLength`] if the body becomes longer than it should be; see [`SendError`].
    pub fn send_data(&mut self, stream: u64, len: u64) -> Result<DataHeader, SendError> {
        self.expect_phase(stream, Phase::Body)?;
        let request = self.requests.get_mut(&stream).ok_or(SendError::Closed)?;
        if len > varint::MAX {
            return Err(SendError::ContentLength);
        }
        if let Some(left) = &mut request.send.left {
            *left = left.checked_sub(len).ok_or(SendError::ContentLength)?;
        }
        self.shared.log.note(|| LogEvent::FrameCreated { stream, frame: LogFrame::Data { len } });
        Ok(DataHeader::new(len))
    }

    /// The trailers, behind which only the end can come.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn send_trailers(&mut self, stream: u64, trailers: &HeaderMap) -> Result<Bytes, SendError> {
        self.expect_phase(stream, Phase::Body)?;
        let mut headers = Vec::with_capacity(HEADERS_LEN);
        self.encode(stream, message::trailer_fields(trailers), &mut headers)?;
        if let Some(request) = self.requests.get_mut(&stream) {
            request.send.phase = Phase::Trailed;
        }
        Ok(headers.into())
    }

    /// Whether the message may end here: see [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// As those of [`finish`](Self::finish).
    pub fn check_finish(&self, stream: u64) -> Result<(), SendError> {
        let request = self.requests.get(&stream).ok_or(SendError::Closed)?;
        match request.send.phase {
            Phase::Done => Err(SendError::Closed),
            Phase::Head => Err(SendError::OutOfOrder),
            Phase::Body | Phase::Trailed if request.send.left.is_some_and(|left| left > 0) => {
                Err(SendError::ContentLength)
            }
            Phase::Body | Phase::Trailed => Ok(()),
        }
    }

    /// The message is complete; the stream is to be ended behind what was written. Who waits for the transport to take a message
    /// may ask [`check_finish`](Self::check_finish) before, and call this when it has.
    ///
    /// # Errors
    ///
    /// [`SendError::ContentLength`] if the body is shorter than it should be: the stream is to be reset then, as the peer would
    /// otherwise take it for a fault of its own.
    pub fn finish(&mut self, stream: u64) -> Result<(), SendError> {
        self.check_finish(stream)?;
        if let Some(request) = self.requests.get_mut(&stream) {
            request.send.end();
        }
        self.forget_if_over(stream);
        Ok(())
    }

    /// Tells the server another priority of a request (RFC 9218 §7.1), on the control stream.
    ///
    /// # Errors
    ///
    /// [`SendError::QueueFull`] if the control stream is not read; [`SendError::OutOfOrder`] at a server.
    pub fn send_priority_update(&mut self, stream: u64, priority: Priority) -> Result<(), SendError> {
        if self.role != Role::Client || !is_of_request(stream) {
            return Err(SendError::OutOfOrder);
        }
        let mut payload = Vec::new();
        varint::write(stream, &mut payload);
        payload.extend_from_slice(priority.encode().as_bytes());
        self.send_control(frame::PRIORITY_UPDATE, &payload)?;
        self.shared.log.note(|| LogEvent::PrioritySet { stream, new: priority, is_received: false });
        Ok(())
    }

    /// What a stream that this end opens for a session begins with: the kind of the stream, and the session's request.
    #[must_use]
    pub fn session_stream_prefix(kind: u64, session: u64) -> Bytes {
        let mut out = Vec::new();
        frame::write_header(kind, session, &mut out);
        out.into()
    }

    fn expect_phase(&self, stream: u64, phase: Phase) -> Result<(), SendError> {
        match self.requests.get(&stream).map(|request| request.send.phase) {
            None | Some(Phase::Done) => Err(SendError::Closed),
            Some(found) if found == phase => Ok(()),
            Some(_) => Err(SendError::OutOfOrder),
        }
    }

    /// Appends a HEADERS frame to `out`.
    fn encode(&mut self, stream: u64, fields: Fields<'_>, out: &mut Vec<u8>) -> Result<(), SendError> {
        let peer = self.peer.settings.as_ref();
        if let Some(size_max) = peer.and_then(|settings| settings.max_field_section_size) {
            let size: usize = fields.iter().map(FieldRef::size).sum();
            if size as u64 > size_max {
                return Err(SendError::TooLarge);
            }
        }
        self.encoder.set_encoder_stream_room(self.output.encoder_room());
        let waiting = self.output.encoder.len();
        let start = out.len();
        // Room for the type and a length of two bytes, which nearly all sections have.
        let section = start + 3;
        out.extend_from_slice(&[frame::HEADERS as u8, 0, 0]);
        self.encoder.encode(stream, fields.iter().copied(), out, &mut self.output.encoder);
        self.output.took_encoder_room(self.output.encoder.len() - waiting);
        let len = out.len() - section;
        self.shared.log.note(|| {
            let frame = LogFrame::headers(Some(len as u64), fields.iter().copied());
            LogEvent::FrameCreated { stream, frame }
        });
        if let Ok(short) = u16::try_from(len)
            && short < 0x4000
        {
            out[start + 1..section].copy_from_slice(&(0x4000 | short).to_be_bytes());
            return Ok(());
        }
        let mut header = Vec::new();
        frame::write_header(frame::HEADERS, len as u64, &mut header);
        out.splice(start..section, header);
        Ok(())
    }
}

/// How much memory a HEADERS frame gets at first, in bytes.
const HEADERS_LEN: usize = 128;
