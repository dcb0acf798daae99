//! The control stream of the peer (RFC 9114 §6.2.1).

use bytes::Bytes;

use super::{Connection, EARLY_PRIORITIES_MAX, Role, breach, is_of_request, qpack_settings};
use crate::error::{Error, ErrorCode};
use crate::event::{Event, Received};
use crate::frame::{self, HeaderReader};
use crate::log::{LogEvent, LogFrame};
use crate::origin;
use crate::priority::Priority;
use crate::settings::Settings;
use crate::varint;

/// The longest frame of a control stream that is read, in bytes. Longer ones end the connection with H3_EXCESSIVE_LOAD, but for
/// ORIGIN, which is skipped then.
pub(super) const FRAME_MAX: u64 = 16 * 1024;

/// What has come of a control stream.
#[derive(Debug, Default)]
pub(super) struct Control {
    header: HeaderReader,
    /// The frame that the stream is in.
    inside: Option<Inside>,
    payload: Vec<u8>,
    has_settings: bool,
    /// A server's: the largest push ID that the client allows. Nothing is pushed, but it must not sink.
    max_push_id: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Inside {
    ty: u64,
    left: u64,
    is_skipped: bool,
}

impl Connection {
    pub(super) fn receive_on_control(
        &mut self,
        stream: u64,
        bytes: &mut Bytes,
        is_last: bool,
    ) -> Result<Received, Error> {
        loop {
            let control = &mut self.peer.control;
            let inside = match &mut control.inside {
                Some(inside) => inside,
                None => match control.header.read(bytes) {
                    Some((ty, len)) => {
                        self.begin_control_frame(stream, ty, len)?;
                        continue;
                    }
                    None if is_last => return Err(closed()),
                    None => return Ok(Received::More),
                },
            };
            let len = usize::try_from(inside.left).unwrap_or(usize::MAX).min(bytes.len());
            let part = bytes.split_to(len);
            inside.left -= len as u64;
            let (ty, is_whole, is_skipped) = (inside.ty, inside.left == 0, inside.is_skipped);
            if !is_skipped {
                control.payload.extend_from_slice(&part);
            }
            if !is_whole {
                return if is_last { Err(closed()) } else { Ok(Received::More) };
            }
            control.inside = None;
            let payload = std::mem::take(&mut control.payload);
            if !is_skipped {
                self.shared
                    .log
                    .note(|| LogEvent::FrameParsed { stream, frame: LogFrame::control(ty, &payload) });
            }
            if !is_skipped && let Some(event) = self.control_frame(ty, &payload)? {
                return Ok(Received::Event(event));
            }
        }
    }

    fn begin_control_frame(&mut self, stream: u64, ty: u64, len: u64) -> Result<(), Error> {
        let control = &mut self.peer.control;
        match (control.has_settings, ty) {
            (false, frame::SETTINGS) => control.has_settings = true,
            // RFC 9114 §6.2.1, §7.2.4.
            (false, _) => {
                return Err(breach(ErrorCode::MissingSettings, "a control stream without SETTINGS first"));
            }
            (true, frame::SETTINGS) => {
                return Err(breach(ErrorCode::FrameUnexpected, "SETTINGS comes twice"));
            }
            (true, frame::DATA | frame::HEADERS | frame::PUSH_PROMISE) => {
                return Err(breach(ErrorCode::FrameUnexpected, "a frame of a request on the control stream"));
            }
            _ if frame::is_of_http2(ty) => {
                return Err(breach(ErrorCode::FrameUnexpected, "a frame of HTTP/2"));
            }
            _ => self.shared.useless.count()?,
        }
        let is_known = match ty {
            frame::SETTINGS
            | frame::GOAWAY
            | frame::CANCEL_PUSH
            | frame::MAX_PUSH_ID
            | frame::PRIORITY_UPDATE
            | frame::PRIORITY_UPDATE_PUSH => true,
            // A server ignores it (RFC 8336 §2.1).
            frame::ORIGIN => self.role == Role::Client && len <= FRAME_MAX,
            _ => false,
        };
        if is_known && len > FRAME_MAX {
            return Err(breach(ErrorCode::ExcessiveLoad, "a control frame that is too long"));
        }
        control.inside = Some(Inside { ty, left: len, is_skipped: !is_known });
        if !is_known {
            self.shared.log.note(|| LogEvent::FrameParsed { stream, frame: LogFrame::other(ty, len) });
        }
        Ok(())
    }

    fn control_frame(&mut self, ty: u64, payload: &[u8]) -> Result<Option<Event>, Error> {
        match ty {
            frame::SETTINGS => self.on_settings(Settings::decode(payload)?).map(Some),
            frame::GOAWAY => self.on_goaway(id(payload)?).map(Some),
            frame::CANCEL_PUSH => {
                id(payload)?;
                // Neither end ever promised or allowed one (RFC 9114 §7.2.3).
                Err(breach(ErrorCode::IdError, "a push that was not promised"))
            }
            frame::MAX_PUSH_ID => self.on_max_push_id(id(payload)?),
            frame::PRIORITY_UPDATE | frame::PRIORITY_UPDATE_PUSH => self.on_priority_update(ty, payload),
            frame::ORIGIN => {
                let origins = origin::decode(payload);
                let broken = breach(ErrorCode::FrameError, "ORIGIN is cut short");
                Ok(Some(Event::Origins(origins.ok_or(broken)?)))
            }
            _ => Ok(None),
        }
    }

    fn on_settings(&mut self, settings: Settings) -> Result<Event, Error> {
        if let Some(remembered) = self.peer.remembered.take() {
            settings.check_not_less_than(&remembered)?;
        }
        self.encoder.on_settings(qpack_settings(&settings))?;
        self.peer.settings = Some(settings.clone());
        self.shared
            .log
            .note(|| LogEvent::SettingsSet { is_local: false, settings: Box::new(settings.clone()) });
        Ok(Event::Settings(Box::new(settings)))
    }

    fn on_goaway(&mut self, id: u64) -> Result<Event, Error> {
        if self.role == Role::Client && !is_of_request(id) {
            return Err(breach(ErrorCode::IdError, "GOAWAY with an ID that no request has"));
        }
        // RFC 9114 §5.2: what was refused cannot be taken after all.
        if self.peer.going_away.is_some_and(|before| id > before) {
            return Err(breach(ErrorCode::IdError, "GOAWAY with a larger ID than before"));
        }
        self.peer.going_away = Some(id);
        Ok(Event::GoAway(id))
    }

    fn on_max_push_id(&mut self, id: u64) -> Result<Option<Event>, Error> {
        if self.role == Role::Client {
            return Err(breach(ErrorCode::FrameUnexpected, "MAX_PUSH_ID from a server"));
        }
        let control = &mut self.peer.control;
        if control.max_push_id.is_some_and(|before| id < before) {
            return Err(breach(ErrorCode::IdError, "a MAX_PUSH_ID that is smaller than before"));
        }
        control.max_push_id = Some(id);
        Ok(None)
    }

    fn on_priority_update(&mut self, ty: u64, mut payload: &[u8]) -> Result<Option<Event>, Error> {
        if self.role == Role::Client {
            return Err(breach(ErrorCode::FrameUnexpected, "PRIORITY_UPDATE from a server"));
        }
        let cut = breach(ErrorCode::FrameError, "PRIORITY_UPDATE is cut short");
        let stream = varint::read(&mut payload).ok_or(cut)?;
        // RFC 9218 §7.2: nothing was promised, so that no push can be meant.
        if ty == frame::PRIORITY_UPDATE_PUSH || !is_of_request(stream) {
            return Err(breach(ErrorCode::IdError, "PRIORITY_UPDATE of what is no request"));
        }
        let priority = Priority::parse(payload);
        let is_before_head = self
            .requests
            .get(&stream)
            .map_or(stream >= self.next_request, |request| request.recv.is_before_head());
        if is_before_head {
            if self.early_priorities.len() < EARLY_PRIORITIES_MAX
                || self.early_priorities.contains_key(&stream)
            {
                self.early_priorities.insert(stream, priority);
            }
            return Ok(None);
        }
        self.shared.log.note(|| LogEvent::PrioritySet { stream, new: priority, is_received: true });
        let is_sent = self.requests.get(&stream).is_some_and(|request| !request.send.is_over());
        Ok(is_sent.then_some(Event::PriorityUpdate { stream, priority }))
    }
}

/// The payload of a frame that is an ID.
fn id(payload: &[u8]) -> Result<u64, Error> {
    varint::read_alone(payload).ok_or(breach(ErrorCode::FrameError, "a frame that should hold an ID"))
}

fn closed() -> Error {
    breach(ErrorCode::ClosedCriticalStream, "the control stream was closed")
}
