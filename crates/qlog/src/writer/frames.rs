//! The frames of a packet, which come before it.

use std::fmt::Write as _;

use fulmar_proto::FrameType;
use fulmar_proto::log::LogEvent;

use super::Flavor;

/// The default exponent of the delay in ACK frames (RFC 9000 §18.2), which is also ours.
const ACK_DELAY_EXPONENT: u32 = 3;

/// The text of frames, as the elements of an array.
#[derive(Debug)]
pub(super) struct Frames {
    flavor: Flavor,
    text: String,
    /// An ACK whose ranges are still to come.
    ack: Option<Ack>,
}

#[derive(Debug)]
struct Ack {
    delay: u64,
    ce: Option<u32>,
    ranges: Vec<(u64, u64)>,
}

impl Frames {
    pub(super) fn new(flavor: Flavor) -> Self {
        Self { flavor, text: String::new(), ack: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.ack.is_none()
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ack = None;
    }

    /// All frames since the last call.
    pub(super) fn finish(&mut self) -> String {
        self.end_ack();
        std::mem::take(&mut self.text)
    }

    /// Takes an event if it is a frame, or a part of one.
    pub(super) fn take(&mut self, event: &LogEvent) -> bool {
        if let LogEvent::AckRange { first, last } = *event {
            if let Some(ack) = &mut self.ack {
                ack.ranges.push((first, last));
            }
            return true;
        }
        let more = |flavor: Flavor, len: u16| match flavor {
            Flavor::Qvis => format!("\"length\":{len},"),
            Flavor::Draft => String::new(),
        };
        match *event {
            LogEvent::Ack { delay, ce } => {
                self.end_ack();
                self.ack = Some(Ack { delay, ce, ranges: Vec::new() });
            }
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
            LogEvent::NewConnectionId { sequence, retire_prior_to } => {
                // The log keeps no connection IDs.
                self.frame("new_connection_id", |text| {
                    let _ = write!(
                        text,
                        ",\"sequence_number\":{sequence},\"retire_prior_to\":{retire_prior_to},\"connection_id\":\"\""
                    );
                });
            }
            LogEvent::Close { application, code } => {
                let space = if application { "application" } else { "transport" };
                self.frame("connection_close", |text| {
                    let _ = write!(
                        text,
                        ",\"error_space\":\"{space}\",\"error\":\"unknown\",\"error_code\":{code}"
                    );
                });
            }
            LogEvent::StreamFrame { kind, id, value } => self.about_stream(kind, id.as_u64(), value),
            LogEvent::Frame { kind, value } => self.plain(kind, value),
            _ => return false,
        }
        true
    }

    fn about_stream(&mut self, kind: u8, id: u64, value: u64) {
        let (name, rest) = match FrameType(kind.into()) {
            FrameType::RESET_STREAM => {
                ("reset_stream", format!(",\"error\":\"unknown\",\"final_size\":{value}"))
            }
            // The drafts leave it to extensions to name their frames.
            FrameType::RESET_STREAM_AT => {
                ("reset_stream_at", format!(",\"error\":\"unknown\",\"reliable_size\":{value}"))
            }
            FrameType::STOP_SENDING => {
                ("stop_sending", format!(",\"error\":\"unknown\",\"error_code\":{value}"))
            }
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
            FrameType::TIMESTAMP => ("timestamp", format!(",\"timestamp\":{value}")),
            FrameType::OBSERVED_ADDRESS_V4 | FrameType::OBSERVED_ADDRESS_V6 => {
                ("observed_address", format!(",\"sequence_number\":{value}"))
            }
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
        let Some(Ack { delay, ce, ranges }) = self.ack.take() else { return };
        let millis = delay.saturating_mul(1 << ACK_DELAY_EXPONENT) as f64 / 1e3;
        self.frame("ack", |text| {
            let _ = write!(text, ",\"ack_delay\":{millis},\"acked_ranges\":[");
            // The drafts list them in ascending order.
            for (place, (first, last)) in ranges.iter().rev().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                let _ = match first == last {
                    true => write!(text, "{comma}[{first}]"),
                    false => write!(text, "{comma}[{first},{last}]"),
                };
            }
            text.push(']');
            if let Some(ce) = ce {
                let _ = write!(text, ",\"ce\":{ce}");
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

fn streams(kind: &str, limit: &str, value: u64) -> String {
    format!(",\"stream_type\":\"{kind}\",\"{limit}\":{value}")
}
