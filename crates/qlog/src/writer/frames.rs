//! The frames of a packet, which come before it.

use std::collections::VecDeque;
use std::fmt::Write as _;

use fulmar_proto::log::LogEvent;
use fulmar_proto::{FrameType, PathId};

use super::Flavor;
use super::names::{self, ApplicationErrors, error, transport_error};

/// The text of frames, as the elements of an array.
#[derive(Debug)]
pub(super) struct Frames {
    flavor: Flavor,
    text: String,
    /// Those of packets of a datagram that is not complete yet.
    ended: VecDeque<String>,
    /// An ACK whose ranges are still to come.
    ack: Option<Ack>,
    /// What the reset that follows says besides: its error code, and the bytes that are delivered all the same.
    reset: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Ack {
    /// In microseconds.
    delay: u32,
    /// ECT(0), ECT(1), CE.
    marks: Option<[u32; 3]>,
    /// Whose packets it acknowledges.
    path: PathId,
    ranges: Vec<(u64, u64)>,
}

impl Frames {
    pub(super) fn new(flavor: Flavor) -> Self {
        Self { flavor, text: String::new(), ended: VecDeque::new(), ack: None, reset: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.ended.is_empty() && self.ack.is_none() && self.reset.is_none()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ended.clear();
        self.ack = None;
        self.reset = None;
    }

    /// The frames of the packet that is complete now.
    pub(super) fn finish(&mut self) -> String {
        self.ended.pop_front().unwrap_or_else(|| self.end())
    }

    fn end(&mut self) -> String {
        self.end_ack();
        std::mem::take(&mut self.text)
    }

    /// Takes an event if it is a frame, or a part of one.
    pub(super) fn take(&mut self, event: &LogEvent, errors: ApplicationErrors) -> bool {
        if let LogEvent::AckRange { path, first, last } = *event {
            if let Some(ack) = &mut self.ack {
                ack.path = path;
                ack.ranges.push((first, last));
            }
            return true;
        }
        let more = |flavor: Flavor, len: u16| match flavor {
            Flavor::Qvis => format!("\"length\":{len},"),
            Flavor::Draft => String::new(),
        };
        match *event {
            LogEvent::FramesEnd => {
                let text = self.end();
                self.ended.push_back(text);
            }
            LogEvent::Ack { delay, marks } => {
                self.end_ack();
                self.ack = Some(Ack { delay, marks, path: PathId::ZERO, ranges: Vec::new() });
            }
            LogEvent::Reset { code, reliable_size } => self.reset = Some((code, reliable_size)),
            LogEvent::Stream { id, offset, len, fin } => {
                let (id, fin) = (id.as_u64(), if fin { ",\"fin\":true" } else { "" });
                let length = more(self.flavor, len);
                self.frame("stream", |text| {
                    let _ = write!(
                        text,
                        ",\"stream_id\":{id},\"offset\":{offset},{length}\"raw\":{{\"payload_length\":{len}}}{fin}"
                    );
                });
            }
            LogEvent::Crypto { offset, len } => {
                let length = more(self.flavor, len);
                self.frame("crypto", |text| {
                    let _ = write!(text, ",\"offset\":{offset},{length}\"raw\":{{\"payload_length\":{len}}}");
                });
            }
            LogEvent::NewConnectionId { sequence, retire_prior_to, len } => {
                // The log keeps no connection IDs.
                self.frame("new_connection_id", |text| {
                    let _ = write!(
                        text,
                        ",\"sequence_number\":{sequence},\"retire_prior_to\":{retire_prior_to},\"connection_id_length\":{len},\"connection_id\":\"\""
                    );
                });
            }
            LogEvent::Close { application, code } => {
                let (space, error) = match application {
                    true => ("application", error("error", errors.name(code), code)),
                    false => ("transport", error("error", transport_error(code).as_deref(), code)),
                };
                self.frame("connection_close", |text| {
                    let _ = write!(text, ",\"error_space\":\"{space}\",{error}");
                });
            }
            LogEvent::StreamFrame { kind, id, value } => self.about_stream(kind, id.as_u64(), value, errors),
            LogEvent::Frame { kind, value } => self.plain(kind, value),
            _ => return false,
        }
        true
    }

    fn about_stream(&mut self, kind: u8, id: u64, value: u64, errors: ApplicationErrors) {
        // Of a log that begins in the middle, it may be missing.
        let (code, reliable_size) = self.reset.take().unwrap_or_default();
        let error = |code: u64| format!(",{}", error("error", errors.name(code), code));
        let (name, rest) = match FrameType(kind.into()) {
            FrameType::RESET_STREAM => ("reset_stream", format!("{},\"final_size\":{value}", error(code))),
            FrameType::RESET_STREAM_AT => (
                "reset_stream_at",
                format!("{},\"final_size\":{value},\"reliable_size\":{reliable_size}", error(code)),
            ),
            FrameType::STOP_SENDING => ("stop_sending", error(value)),
            FrameType::MAX_STREAM_DATA => ("max_stream_data", format!(",\"maximum\":{value}")),
            FrameType::STREAM_DATA_BLOCKED => ("stream_data_blocked", format!(",\"limit\":{value}")),
            other => return self.unknown(other),
        };
        self.frame(name, |text| {
            let _ = write!(text, ",\"stream_id\":{id}{rest}");
        });
    }

    fn plain(&mut self, kind: FrameType, value: u64) {
        let (name, rest) = match kind {
            FrameType::PADDING => ("padding", String::new()),
            FrameType::PING => ("ping", String::new()),
            FrameType::HANDSHAKE_DONE => ("handshake_done", String::new()),
            FrameType::PATH_CHALLENGE => ("path_challenge", String::new()),
            FrameType::PATH_RESPONSE => ("path_response", String::new()),
            FrameType::NEW_TOKEN => ("new_token", ",\"token\":{}".to_owned()),
            FrameType::MAX_DATA => ("max_data", format!(",\"maximum\":{value}")),
            FrameType::DATA_BLOCKED => ("data_blocked", format!(",\"limit\":{value}")),
            FrameType::MAX_STREAMS_BIDI => ("max_streams", streams("bidirectional", "maximum", value)),
            FrameType::MAX_STREAMS_UNI => ("max_streams", streams("unidirectional", "maximum", value)),
            FrameType::STREAMS_BLOCKED_BIDI => ("streams_blocked", streams("bidirectional", "limit", value)),
            FrameType::STREAMS_BLOCKED_UNI => ("streams_blocked", streams("unidirectional", "limit", value)),
            FrameType::RETIRE_CONNECTION_ID => {
                ("retire_connection_id", format!(",\"sequence_number\":{value}"))
            }
            FrameType::DATAGRAM | FrameType::DATAGRAM_WITH_LENGTH => {
                ("datagram", format!(",\"raw\":{{\"payload_length\":{value}}}"))
            }
            // The drafts leave it to extensions to name their frames.
            FrameType::ACK_FREQUENCY => ("ack_frequency", format!(",\"sequence_number\":{value}")),
            FrameType::IMMEDIATE_ACK => ("immediate_ack", String::new()),
            FrameType::FEC_SID => ("fec_sid", format!(",\"symbol_id\":{value}")),
            FrameType::FEC_REPAIR => ("fec_repair", format!(",\"symbol_id\":{value}")),
            FrameType::FEC_RECOVERED => ("fec_recovered", format!(",\"symbol_id\":{value}")),
            FrameType::SOURCE_SYMBOL => ("source_symbol", format!(",\"symbol_id\":{value}")),
            FrameType::REPAIR => ("repair", format!(",\"block_id\":{value}")),
            FrameType::SYMBOL_ACK => ("symbol_ack", format!(",\"symbol_id\":{value}")),
            FrameType::FEC_WINDOW => ("fec_window", format!(",\"window_size\":{value}")),
            FrameType::TIMESTAMP => ("timestamp", format!(",\"timestamp\":{value}")),
            FrameType::OBSERVED_ADDRESS_V4 | FrameType::OBSERVED_ADDRESS_V6 => {
                ("observed_address", format!(",\"sequence_number\":{value}"))
            }
            FrameType::PATH_ABANDON => ("path_abandon", path_id(value)),
            FrameType::PATH_STATUS_AVAILABLE => ("path_status_available", path_id(value)),
            FrameType::PATH_STATUS_BACKUP => ("path_status_backup", path_id(value)),
            FrameType::MAX_PATH_ID => ("max_path_id", format!(",\"maximum_path_id\":{value}")),
            FrameType::PATHS_BLOCKED => ("paths_blocked", format!(",\"maximum_path_id\":{value}")),
            FrameType::PATH_CIDS_BLOCKED => ("path_cids_blocked", path_id(value)),
            other => return self.unknown(other),
        };
        self.frame(name, |text| text.push_str(&rest));
    }

    fn unknown(&mut self, kind: FrameType) {
        self.frame("unknown", |text| {
            let _ = write!(text, ",\"frame_type_bytes\":{}", kind.0);
        });
    }

    fn end_ack(&mut self) {
        let Some(Ack { delay, marks, path, ranges }) = self.ack.take() else { return };
        let millis = f64::from(delay) / 1e3;
        let (name, path) = (if path == PathId::ZERO { "ack" } else { "path_ack" }, names::path_id(path));
        self.frame(name, |text| {
            let _ = write!(text, "{path},\"ack_delay\":{millis:?}");
            // Of a log that begins in the middle, they may be missing.
            if !ranges.is_empty() {
                text.push_str(",\"acked_ranges\":[");
            }
            // The drafts list them in ascending order.
            for (place, (first, last)) in ranges.iter().rev().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                let _ = match first == last {
                    true => write!(text, "{comma}[{first}]"),
                    false => write!(text, "{comma}[{first},{last}]"),
                };
            }
            if !ranges.is_empty() {
                text.push(']');
            }
            if let Some([ect0, ect1, ce]) = marks {
                let _ = write!(text, ",\"ect1\":{ect1},\"ect0\":{ect0},\"ce\":{ce}");
            }
        });
    }

    fn frame(&mut self, name: &str, rest: impl FnOnce(&mut String)) {
        self.end_ack();
        let comma = if self.text.is_empty() { "" } else { "," };
        let _ = write!(self.text, "{comma}{{\"frame_type\":\"{name}\"");
        rest(&mut self.text);
        self.text.push('}');
    }
}

fn path_id(value: u64) -> String {
    format!(",\"path_id\":{value}")
}

fn streams(kind: &str, limit: &str, value: u64) -> String {
    format!(",\"stream_type\":\"{kind}\",\"{limit}\":{value}")
}
