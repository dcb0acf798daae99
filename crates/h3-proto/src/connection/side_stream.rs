//! Streams of the peer that carry no request: those of the connection, and those of sessions (RFC 9114 §6.2).

use bytes::Bytes;

use super::{Connection, Role, breach, is_bidirectional, is_of_request};
use crate::error::{Error, ErrorCode};
use crate::event::{Event, Received};
use crate::frame::{HeaderReader, stream_type};
use crate::log::{LogEvent, StreamKind};
use crate::varint;

/// What a stream is for.
#[derive(Debug)]
pub(super) enum SideStream {
    /// A unidirectional one of which the type has not come.
    Type(varint::Reader),
    Control,
    /// The encoder stream of the peer, for the decoder here.
    Encoder,
    Decoder,
    /// A unidirectional one of a session, which has not come.
    Session {
        kind: u64,
        id: varint::Reader,
    },
    /// A bidirectional one of a server, which begins as those of sessions do.
    Signal(HeaderReader),
    /// A session has it.
    Claimed,
}

impl SideStream {
    /// Whether the connection cannot go on without it.
    pub(super) fn is_critical(&self) -> bool {
        matches!(self, Self::Control | Self::Encoder | Self::Decoder)
    }
}

impl Connection {
    pub(super) fn receive_on_side_stream(
        &mut self,
        stream: u64,
        bytes: &mut Bytes,
        is_last: bool,
    ) -> Result<Received, Error> {
        loop {
            match self.side_streams.get_mut(&stream) {
                None => return Ok(Received::Done),
                Some(SideStream::Claimed) => return Ok(Received::Claimed),
                Some(SideStream::Control) => return self.receive_on_control(stream, bytes, is_last),
                Some(SideStream::Encoder) => {
                    self.shared.decoder.on_encoder_stream(&std::mem::take(bytes))?;
                    return end_of_qpack_stream(is_last);
                }
                Some(SideStream::Decoder) => {
                    self.encoder.on_decoder_stream(&std::mem::take(bytes))?;
                    return end_of_qpack_stream(is_last);
                }
                Some(SideStream::Type(reader)) => match reader.read(bytes) {
                    Some(ty) => self.begin_side_stream(stream, ty)?,
                    // RFC 9114 §6.2: a stream that ends before its type is no error.
                    None => return Ok(self.ended_early(stream, is_last)),
                },
                Some(SideStream::Session { kind, id }) => match id.read(bytes) {
                    Some(session) => {
                        let kind = *kind;
                        return self.claim(stream, kind, session);
                    }
                    None => return Ok(self.ended_early(stream, is_last)),
                },
                Some(SideStream::Signal(header)) => match header.read(bytes) {
                    Some((kind, session)) if self.config.session_streams.bidirectional.contains(&kind) => {
                        return self.claim(stream, kind, session);
                    }
                    Some(_) => return Err(unexpected_bidirectional()),
                    None => return Ok(self.ended_early(stream, is_last)),
                },
            }
        }
    }

    /// The type of a unidirectional stream is known.
    fn begin_side_stream(&mut self, stream: u64, ty: u64) -> Result<(), Error> {
        self.shared.log.note(|| LogEvent::StreamType { stream, is_local: false, kind: StreamKind::of(ty) });
        let (is_there, kind) = match ty {
            stream_type::CONTROL => (&mut self.peer.has_control, SideStream::Control),
            stream_type::ENCODER => (&mut self.peer.has_encoder, SideStream::Encoder),
            stream_type::DECODER => (&mut self.peer.has_decoder, SideStream::Decoder),
            stream_type::PUSH => {
                return Err(match self.role {
                    // RFC 9114 §4.6: no push was allowed, so that its ID is too large.
                    Role::Client => breach(ErrorCode::IdError, "a push that was not allowed"),
                    Role::Server => breach(ErrorCode::StreamCreationError, "a push of a client"),
                });
            }
            kind if self.config.session_streams.unidirectional.contains(&kind) => {
                let id = varint::Reader::default();
                self.side_streams.insert(stream, SideStream::Session { kind, id });
                return Ok(());
            }
            _ => {
                self.side_streams.remove(&stream);
                self.shared.useless.count()?;
                return Err(Error::stream(
                    stream,
                    ErrorCode::StreamCreationError,
                    "a stream of an unknown type",
                ));
            }
        };
        if std::mem::replace(is_there, true) {
            return Err(breach(
                ErrorCode::StreamCreationError,
                "a stream that must be there once comes twice",
            ));
        }
        self.side_streams.insert(stream, kind);
        Ok(())
    }

    fn claim(&mut self, stream: u64, kind: u64, session: u64) -> Result<Received, Error> {
        if !is_of_request(session) {
            return Err(breach(ErrorCode::IdError, "a session that is no request"));
        }
        self.side_streams.insert(stream, SideStream::Claimed);
        Ok(Received::Event(Event::SessionStream { kind, session }))
    }

    /// There is not enough of a stream to know what it is for.
    fn ended_early(&mut self, stream: u64, is_last: bool) -> Received {
        if !is_last {
            return Received::More;
        }
        self.side_streams.remove(&stream);
        Received::Done
    }

    /// What a stream of the peer that carries no request begins with.
    pub(super) fn new_side_stream(&self, stream: u64) -> Result<SideStream, Error> {
        if !is_bidirectional(stream) {
            return Ok(SideStream::Type(varint::Reader::default()));
        }
        // RFC 9114 §6.1: a server opens none, unless something else was agreed on.
        if self.config.session_streams.bidirectional.is_empty() {
            return Err(unexpected_bidirectional());
        }
        Ok(SideStream::Signal(HeaderReader::default()))
    }
}

fn end_of_qpack_stream(is_last: bool) -> Result<Received, Error> {
    if is_last {
        return Err(breach(ErrorCode::ClosedCriticalStream, "a stream of QPACK was closed"));
    }
    Ok(Received::More)
}

fn unexpected_bidirectional() -> Error {
    breach(ErrorCode::StreamCreationError, "a bidirectional stream of a server")
}
