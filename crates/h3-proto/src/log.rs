//! What a connection notes of HTTP/3, for files such as those of qlog. Nothing is formatted here, and nothing is noted unless
//! [`Connection::start_log`](crate::Connection::start_log) was called.

use bytes::Bytes;
use fulmar_qpack::FieldRef;

use crate::frame::{self, HeaderReader, stream_type};
use crate::origin;
use crate::priority::Priority;
use crate::settings::Settings;
use crate::varint;

/// The most events that wait to be taken. What comes while so many wait is counted ([`LogEvent::Missing`]) and forgotten.
pub const LOG_WAITING_MAX: usize = 1_024;

/// The longest value of a field that is noted, in bytes. Of longer ones there is the length.
pub const LOG_VALUE_MAX: usize = 1_024;

/// What the fields of one section take in the log, in bytes. Those beyond it are counted.
pub const LOG_SECTION_MAX: usize = 8 * 1_024;

/// Fields whose values are secrets: of them there is the length.
const SECRET_FIELDS: [&[u8]; 4] = [b"authorization", b"proxy-authorization", b"cookie", b"set-cookie"];

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEvent {
    /// An end has said its settings.
    SettingsSet {
        /// This end.
        is_local: bool,
        /// What it said.
        settings: Box<Settings>,
    },
    /// A client sends early data by what it remembers of the server.
    SettingsRestored(Box<Settings>),
    /// It is known what a stream is for.
    StreamType {
        /// The stream.
        stream: u64,
        /// This end has opened it.
        is_local: bool,
        /// What it is for.
        kind: StreamKind,
    },
    /// A request has a priority, or another one.
    PrioritySet {
        /// The stream of the request.
        stream: u64,
        /// What it is.
        new: Priority,
        /// The client said so to this end, a server.
        is_received: bool,
    },
    /// A frame was made.
    FrameCreated {
        /// The stream it goes by.
        stream: u64,
        /// What it is.
        frame: LogFrame,
    },
    /// A frame was read; of one with a body of its own, its header.
    FrameParsed {
        /// The stream it came by.
        stream: u64,
        /// What it is.
        frame: LogFrame,
    },
    /// An HTTP datagram was made.
    DatagramCreated {
        /// The stream of its request.
        stream: u64,
        /// Its length in bytes, without that of the stream's number.
        len: u64,
    },
    /// An HTTP datagram has come.
    DatagramParsed {
        /// The stream of its request.
        stream: u64,
        /// Its length in bytes, without that of the stream's number.
        len: u64,
    },
    /// So many events before this one were forgotten.
    Missing(u64),
}

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// A request and its response.
    Request,
    /// The control stream.
    Control,
    /// The stream of the QPACK encoder.
    Encoder,
    /// The stream of the QPACK decoder.
    Decoder,
    /// A push, which nobody allows here.
    Push,
    /// Nothing: a type that peers are to ignore.
    Reserved,
    /// Something else, by its number: streams of sessions among others.
    Unknown(u64),
}

/// A frame. Lengths are those of payloads on the wire, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFrame {
    /// A part of a body.
    Data {
        /// Its length.
        len: u64,
    },
    /// A field section.
    Headers {
        /// The length of the section as it is encoded, if it is known where this is noted.
        len: Option<u64>,
        /// The fields, pseudo-header fields first.
        fields: Vec<LogField>,
        /// Fields that are not among them.
        left_out: usize,
    },
    /// Settings, also those of which nothing is known.
    Settings(Vec<(u64, u64)>),
    /// GOAWAY, with the ID of a request or of a push.
    GoAway(u64),
    /// CANCEL_PUSH, with the ID of a push.
    CancelPush(u64),
    /// MAX_PUSH_ID, likewise.
    MaxPushId(u64),
    /// PRIORITY_UPDATE.
    PriorityUpdate {
        /// The ID of a request's stream or of a push.
        id: u64,
        /// It is of a push.
        is_push: bool,
        /// The value of the field, as it came.
        value: Bytes,
    },
    /// ORIGIN.
    Origin(Vec<String>),
    /// A type that peers are to ignore.
    Reserved {
        /// Its number.
        ty: u64,
        /// Its length.
        len: u64,
    },
    /// A type of which nothing is known, or one whose payload makes no sense.
    Unknown {
        /// Its number.
        ty: u64,
        /// Its length.
        len: u64,
    },
}

/// A field of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogField {
    /// The name, as it came.
    pub name: Box<[u8]>,
    /// The value, as it came; nothing if it is longer than [`LOG_VALUE_MAX`] or a secret.
    pub value: Option<Box<[u8]>>,
    /// The length of the value in bytes.
    pub value_len: usize,
}

impl StreamKind {
    /// By the type that a unidirectional stream begins with.
    pub(crate) fn of(ty: u64) -> Self {
        match ty {
            stream_type::CONTROL => Self::Control,
            stream_type::PUSH => Self::Push,
            stream_type::ENCODER => Self::Encoder,
            stream_type::DECODER => Self::Decoder,
            ty if frame::is_reserved(ty) => Self::Reserved,
            ty => Self::Unknown(ty),
        }
    }
}

impl LogEvent {
    /// About what it takes in memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let own = match self {
            Self::FrameCreated { frame, .. } | Self::FrameParsed { frame, .. } => frame.size(),
            Self::SettingsSet { settings, .. } | Self::SettingsRestored(settings) => {
                size_of::<Settings>() + size_of_val(&settings.others[..])
            }
            _ => 0,
        };
        size_of::<Self>() + own
    }
}

impl LogFrame {
    /// A field section that is sent.
    pub(crate) fn headers<'a>(len: Option<u64>, all: impl Iterator<Item = FieldRef<'a>>) -> Self {
        let (mut fields, mut left_out, mut size) = (Vec::new(), 0, 0);
        for field in all {
            let is_secret = field.sensitive || SECRET_FIELDS.contains(&field.name);
            let value = (!is_secret && field.value.len() <= LOG_VALUE_MAX).then_some(field.value);
            let this = size_of::<LogField>() + field.name.len() + value.map_or(0, <[u8]>::len);
            if left_out > 0 || size + this > LOG_SECTION_MAX {
                left_out += 1;
                continue;
            }
            size += this;
            fields.push(LogField {
                name: field.name.into(),
                value: value.map(Into::into),
                value_len: field.value.len(),
            });
        }
        Self::Headers { len, fields, left_out }
    }

    /// A frame of which nothing is known but its type.
    pub(crate) fn other(ty: u64, len: u64) -> Self {
        if frame::is_reserved(ty) { Self::Reserved { ty, len } } else { Self::Unknown { ty, len } }
    }

    /// A frame of the control stream.
    pub(crate) fn control(ty: u64, payload: &[u8]) -> Self {
        Self::known(ty, payload).unwrap_or_else(|| Self::other(ty, payload.len() as u64))
    }

    fn known(ty: u64, mut payload: &[u8]) -> Option<Self> {
        Some(match ty {
            frame::SETTINGS => Self::Settings(Settings::pairs(payload)?),
            frame::GOAWAY => Self::GoAway(varint::read_alone(payload)?),
            frame::CANCEL_PUSH => Self::CancelPush(varint::read_alone(payload)?),
            frame::MAX_PUSH_ID => Self::MaxPushId(varint::read_alone(payload)?),
            frame::PRIORITY_UPDATE | frame::PRIORITY_UPDATE_PUSH => {
                let (id, is_push) = (varint::read(&mut payload)?, ty == frame::PRIORITY_UPDATE_PUSH);
                let value = Bytes::copy_from_slice(&payload[..payload.len().min(LOG_VALUE_MAX)]);
                Self::PriorityUpdate { id, is_push, value }
            }
            frame::ORIGIN => Self::Origin(origin::decode(payload)?),
            _ => return None,
        })
    }

    fn size(&self) -> usize {
        match self {
            Self::Headers { fields, .. } => {
                let of = |field: &LogField| field.name.len() + field.value.as_ref().map_or(0, |v| v.len());
                fields.iter().map(of).sum::<usize>() + size_of_val(&fields[..])
            }
            Self::Settings(pairs) => size_of_val(&pairs[..]),
            Self::PriorityUpdate { value, .. } => value.len(),
            Self::Origin(origins) => origins.iter().map(|origin| size_of::<String>() + origin.len()).sum(),
            _ => 0,
        }
    }
}

/// The log of a connection: nothing, unless it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Log(Option<Box<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    waiting: Vec<LogEvent>,
    missing: u64,
    /// The control stream of this end, once it is open.
    control: Option<u64>,
    /// Frames for it that were made before.
    before_control: Vec<LogFrame>,
}

impl Log {
    pub(crate) fn start(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Notes what `event` says. It is not asked if there is no log.
    #[inline]
    pub(crate) fn note(&mut self, event: impl FnOnce() -> LogEvent) {
        if let Some(entries) = &mut self.0 {
            entries.add(event());
        }
    }

    /// A frame was put on the control stream of this end.
    pub(crate) fn control_created(&mut self, ty: u64, payload: &[u8]) {
        let Some(entries) = &mut self.0 else { return };
        let frame = LogFrame::control(ty, payload);
        match entries.control {
            Some(stream) => entries.add(LogEvent::FrameCreated { stream, frame }),
            None if entries.before_control.len() < LOG_WAITING_MAX => entries.before_control.push(frame),
            None => entries.missing += 1,
        }
    }

    /// Frames were put on the control stream of this end, behind its type.
    pub(crate) fn control_began(&mut self, bytes: &[u8]) {
        if self.0.is_none() {
            return;
        }
        let mut rest = Bytes::copy_from_slice(bytes);
        let _ = varint::Reader::default().read(&mut rest);
        let mut header = HeaderReader::default();
        while let Some((ty, len)) = header.read(&mut rest) {
            let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
            self.control_created(ty, &rest.split_to(len));
        }
    }

    /// The control stream of this end is open.
    pub(crate) fn control_opened(&mut self, stream: u64) {
        let Some(entries) = &mut self.0 else { return };
        entries.control = Some(stream);
        for frame in std::mem::take(&mut entries.before_control) {
            entries.add(LogEvent::FrameCreated { stream, frame });
        }
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Vec<LogEvent> {
        self.0.as_mut().map_or_else(Vec::new, |entries| entries.take())
    }
}

impl Entries {
    fn add(&mut self, event: LogEvent) {
        if self.waiting.len() < LOG_WAITING_MAX {
            self.waiting.push(event);
        } else {
            self.missing += 1;
        }
    }

    fn take(&mut self) -> Vec<LogEvent> {
        let mut taken = std::mem::take(&mut self.waiting);
        match std::mem::take(&mut self.missing) {
            0 => {}
            missing => taken.push(LogEvent::Missing(missing)),
        }
        taken
    }
}
