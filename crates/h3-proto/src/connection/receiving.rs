//! What comes on the stream of a request.

mod body;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use fulmar_qpack::{Decoded, Decoder, Excess, Field, FieldRef};

use self::body::Body;
use super::{Role, breach, is_of_request};
use crate::config::Config;
use crate::error::{Error, ErrorCode};
use crate::event::{Event, Received, RequestHead};
use crate::frame::{self, HeaderReader};
use crate::limits::Useless;
use crate::log::{Log, LogEvent, LogFrame};
use crate::message;
use crate::priority::Priority;

/// What all streams of a connection need to receive.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) role: Role,
    pub(super) config: Arc<Config>,
    pub(super) decoder: Decoder,
    pub(super) useless: Useless,
    /// What the parts of HEADERS frames take on all streams.
    pub(super) partial_bytes: usize,
    pub(super) log: Log,
}

/// The receiving side of the stream of a request.
#[derive(Debug)]
pub(super) struct RecvSide {
    state: State,
    phase: Phase,
    header: HeaderReader,
    /// The part of a HEADERS frame that has come.
    section: Vec<u8>,
    body: Body,
    /// Nothing has come.
    is_fresh: bool,
    is_early: bool,
    /// There is no message any more, but the bytes of a tunnel (RFC 9114 §4.4).
    is_tunnel: bool,
}

/// Where in a frame the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    /// Each with the bytes that are left.
    Data(u64),
    Section(u64),
    Skip(u64),
    /// A section waits for the encoder stream.
    Blocked,
    Done,
}

/// Where in a message the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
    Trailed,
}

impl RecvSide {
    pub(super) fn of_request(is_early: bool) -> Self {
        Self {
            state: State::Header,
            phase: Phase::Head,
            header: HeaderReader::default(),
            section: Vec::new(),
            body: Body::default(),
            is_fresh: true,
            is_early,
            is_tunnel: false,
        }
    }

    /// What answers a request of this method.
    pub(super) fn of_response(method: &http::Method) -> Self {
        let mut recv = Self::of_request(false);
        recv.is_tunnel = method == http::Method::CONNECT;
        recv.body.answers_head(method == http::Method::HEAD);
        recv
    }

    pub(super) fn is_over(&self) -> bool {
        self.state == State::Done
    }

    /// Whether nothing of a message has come that a server could have acted on.
    pub(super) fn is_before_head(&self) -> bool {
        self.phase == Phase::Head
    }

    /// How much of a section is kept.
    pub(super) fn partial_bytes(&self) -> usize {
        self.section.len()
    }

    /// Nothing more is received.
    pub(super) fn end(&mut self, shared: &mut Shared) {
        shared.partial_bytes -= self.section.len();
        self.section = Vec::new();
        self.state = State::Done;
    }

    pub(super) fn receive(
        &mut self,
        stream: u64,
        shared: &mut Shared,
        bytes: &mut Bytes,
        is_last: bool,
    ) -> Result<Received, Error> {
        loop {
            match self.state {
                State::Done => return Ok(Received::Done),
                State::Blocked => return Ok(Received::Blocked),
                State::Header => match self.header.read(bytes) {
                    Some((ty, len)) => {
                        if let Some(event) = self.begin(stream, shared, ty, len)? {
                            return Ok(Received::Event(event));
                        }
                    }
                    None if is_last => return self.finish(stream, shared),
                    None => return Ok(Received::More),
                },
                // Without even a prefix, which the decoder refuses.
                State::Section(0) => return self.end_of_section(stream, shared, Bytes::new()),
                State::Data(_) | State::Section(_) | State::Skip(_) if bytes.is_empty() => {
                    // RFC 9114 §7.1: a frame must not be cut short by the end of its stream.
                    let cut = breach(ErrorCode::FrameError, "a frame that is cut short");
                    return if is_last { Err(cut) } else { Ok(Received::More) };
                }
                State::Data(left) => {
                    let (data, left) = take(bytes, left);
                    self.state = if left == 0 { State::Header } else { State::Data(left) };
                    return Ok(Received::Event(Event::Data(data)));
                }
                State::Skip(left) => {
                    let (_, left) = take(bytes, left);
                    self.state = if left == 0 { State::Header } else { State::Skip(left) };
                }
                State::Section(left) => {
                    let (part, left) = take(bytes, left);
                    if left == 0 {
                        return self.end_of_section(stream, shared, part);
                    }
                    self.state = State::Section(left);
                    if shared.partial_bytes + part.len() > shared.config.sections_partial_max {
                        return self.refuse(stream, shared, Excess::Size);
                    }
                    shared.partial_bytes += part.len();
                    self.section.extend_from_slice(&part);
                }
            }
        }
    }

    /// A section of this stream that has waited was decoded.
    pub(super) fn unblocked(
        &mut self,
        stream: u64,
        shared: &mut Shared,
        decoded: Decoded,
    ) -> Result<Received, Error> {
        self.decoded(stream, shared, decoded)
    }

    /// A frame begins.
    fn begin(&mut self, stream: u64, shared: &mut Shared, ty: u64, len: u64) -> Result<Option<Event>, Error> {
        let is_first = std::mem::replace(&mut self.is_fresh, false);
        shared.log_header(stream, ty, len, is_first);
        match ty {
            frame::DATA => self.begin_data(stream, shared, len)?,
            frame::HEADERS => return self.begin_section(stream, shared, len),
            _ if is_first && shared.config.session_streams.bidirectional.contains(&ty) => {
                if shared.role == Role::Client || !is_of_request(len) {
                    return Err(breach(ErrorCode::IdError, "a session that is no request"));
                }
                self.end(shared);
                return Ok(Some(Event::SessionStream { kind: ty, session: len }));
            }
            frame::PUSH_PROMISE if shared.role == Role::Client => {
                // No push was ever allowed (RFC 9114 §7.2.5).
                return Err(breach(ErrorCode::IdError, "a push that was not allowed"));
            }
            frame::CANCEL_PUSH
            | frame::SETTINGS
            | frame::PUSH_PROMISE
            | frame::GOAWAY
            | frame::MAX_PUSH_ID
            | frame::PRIORITY_UPDATE
            | frame::PRIORITY_UPDATE_PUSH => {
                return Err(breach(ErrorCode::FrameUnexpected, "a frame of another stream"));
            }
            _ if frame::is_of_http2(ty) => {
                return Err(breach(ErrorCode::FrameUnexpected, "a frame of HTTP/2"));
            }
            _ => {
                shared.useless.count()?;
                self.state = if len == 0 { State::Header } else { State::Skip(len) };
            }
        }
        Ok(None)
    }

    fn begin_data(&mut self, stream: u64, shared: &mut Shared, len: u64) -> Result<(), Error> {
        if self.phase != Phase::Body {
            return Err(breach(ErrorCode::FrameUnexpected, "DATA before or after a body"));
        }
        if len == 0 {
            return shared.useless.count();
        }
        shared.useless.make_up();
        self.body.take(len).map_err(|reason| malformed(stream, reason))?;
        self.state = State::Data(len);
        Ok(())
    }

    fn begin_section(&mut self, stream: u64, shared: &mut Shared, len: u64) -> Result<Option<Event>, Error> {
        let is_tunnel_open = self.is_tunnel && self.phase == Phase::Body;
        if self.phase == Phase::Trailed || is_tunnel_open {
            return Err(breach(ErrorCode::FrameUnexpected, "HEADERS after a message"));
        }
        if len > shared.config.section_encoded_max as u64 {
            let Received::Event(event) = self.refuse(stream, shared, Excess::Size)? else { return Ok(None) };
            return Ok(Some(event));
        }
        self.state = State::Section(len);
        Ok(None)
    }

    fn end_of_section(&mut self, stream: u64, shared: &mut Shared, part: Bytes) -> Result<Received, Error> {
        let section = if self.section.is_empty() {
            part
        } else {
            shared.partial_bytes -= self.section.len();
            self.section.extend_from_slice(&part);
            Bytes::from(std::mem::take(&mut self.section))
        };
        let decoded = shared.decoder.decode(stream, section)?;
        self.decoded(stream, shared, decoded)
    }

    fn decoded(&mut self, stream: u64, shared: &mut Shared, decoded: Decoded) -> Result<Received, Error> {
        match decoded {
            Decoded::Blocked => {
                self.state = State::Blocked;
                Ok(Received::Blocked)
            }
            Decoded::Refused(excess) => self.refused(stream, shared, excess),
            Decoded::Fields(fields) => {
                self.state = State::Header;
                shared.log_fields(stream, &fields);
                let event = self.message(shared, fields)?;
                Ok(Received::Event(event.map_err(|reason| malformed(stream, reason))?))
            }
        }
    }

    /// Refuses a section that was not given to the decoder, which has to say so (RFC 9204 §2.2.2.2).
    fn refuse(&mut self, stream: u64, shared: &mut Shared, excess: Excess) -> Result<Received, Error> {
        let refused = self.refused(stream, shared, excess)?;
        shared.decoder.cancel(stream)?;
        Ok(refused)
    }

    fn refused(&mut self, stream: u64, shared: &mut Shared, excess: Excess) -> Result<Received, Error> {
        if shared.role == Role::Client || self.phase != Phase::Head {
            return Err(Error::stream(stream, ErrorCode::ExcessiveLoad, "larger fields than this end takes"));
        }
        self.end(shared);
        Ok(Received::Event(Event::Refused(excess)))
    }

    /// What the fields of a section say, or why they are malformed.
    fn message(
        &mut self,
        shared: &mut Shared,
        fields: Vec<Field>,
    ) -> Result<Result<Event, message::Malformed>, Error> {
        if self.phase == Phase::Body {
            self.phase = Phase::Trailed;
            return Ok(message::trailers(fields).map(|trailers| Event::Trailers(Box::new(trailers))));
        }
        if shared.role == Role::Server {
            shared.useless.make_up_for_message();
            return Ok(self.request(shared, fields));
        }
        let event = self.response(fields);
        match event {
            Ok(Event::Informational(_)) => shared.useless.count()?,
            _ => shared.useless.make_up_for_message(),
        }
        Ok(event)
    }

    fn request(&mut self, shared: &Shared, fields: Vec<Field>) -> Result<Event, message::Malformed> {
        let parts = message::request(fields, shared.config.enable_connect_protocol)?;
        self.is_tunnel = parts.method == http::Method::CONNECT;
        self.body.begin(if self.is_tunnel { None } else { message::content_length(&parts.headers)? });
        self.phase = Phase::Body;
        let priority = priority(&parts.headers);
        Ok(Event::Request(Box::new(RequestHead { parts, priority, is_early: self.is_early })))
    }

    fn response(&mut self, fields: Vec<Field>) -> Result<Event, message::Malformed> {
        let parts = message::response(fields)?;
        if parts.status.is_informational() {
            return Ok(Event::Informational(Box::new(parts)));
        }
        self.is_tunnel &= parts.status.is_success();
        let length = if self.is_tunnel { None } else { message::content_length(&parts.headers)? };
        self.body.begin_response(length, parts.status);
        self.phase = Phase::Body;
        Ok(Event::Response(Box::new(parts)))
    }

    /// The stream has ended.
    fn finish(&mut self, stream: u64, shared: &mut Shared) -> Result<Received, Error> {
        if self.header.is_inside() {
            return Err(breach(ErrorCode::FrameError, "a frame that is cut short"));
        }
        if self.phase == Phase::Head {
            // RFC 9114 §4.1.
            return Err(match shared.role {
                Role::Server => {
                    Error::stream(stream, ErrorCode::RequestIncomplete, "a stream without a request")
                }
                Role::Client => malformed(stream, "a stream without a response"),
            });
        }
        self.body.end().map_err(|reason| malformed(stream, reason))?;
        self.end(shared);
        Ok(Received::Event(Event::Finished))
    }
}

impl Shared {
    /// Notes a frame of which there is no more to note than its header.
    fn log_header(&mut self, stream: u64, ty: u64, len: u64, is_first: bool) {
        let is_session = || is_first && self.config.session_streams.bidirectional.contains(&ty);
        if !self.log.is_on() || ty == frame::HEADERS || is_session() {
            return;
        }
        self.log.note(|| {
            let frame = if ty == frame::DATA { LogFrame::Data { len } } else { LogFrame::other(ty, len) };
            LogEvent::FrameParsed { stream, frame }
        });
    }

    fn log_fields(&mut self, stream: u64, fields: &[Field]) {
        self.log.note(|| {
            let frame = LogFrame::headers(None, fields.iter().map(FieldRef::from));
            LogEvent::FrameParsed { stream, frame }
        });
    }
}

/// The priority that a request asks for. Several lines of the field are one value (RFC 9651 §4.2).
fn priority(headers: &http::HeaderMap) -> Priority {
    let mut lines = headers.get_all("priority").iter().map(http::HeaderValue::as_bytes);
    let mut value = Cow::Borrowed(lines.next().unwrap_or_default());
    for line in lines {
        value.to_mut().extend_from_slice(b", ");
        value.to_mut().extend_from_slice(line);
    }
    Priority::parse(&value)
}

/// Takes at most `left` bytes, and says how many are left then.
fn take(bytes: &mut Bytes, left: u64) -> (Bytes, u64) {
    let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    let part = bytes.split_to(len);
    (part, left - len as u64)
}

fn malformed(stream: u64, reason: message::Malformed) -> Error {
    Error::stream(stream, ErrorCode::MessageError, reason)
}
