//! Events of HTTP/3 (draft-ietf-quic-qlog-h3-events-13).

use fulmar_base::Instant;
use fulmar_h3_proto::log::{LogEvent, LogField, LogFrame, StreamKind};
use fulmar_h3_proto::{Priority, Settings};
use serde_json::{Map, Value, json};

use super::{Flavor, Writer};

/// The names of settings (RFC 9114 §7.2.4.1, RFC 9204 §5, RFC 9220 §3, RFC 9297 §2.1.1).
const SETTINGS: [(u64, &str); 5] = [
    (0x01, "settings_qpack_max_table_capacity"),
    (0x06, "settings_max_field_section_size"),
    (0x07, "settings_qpack_blocked_streams"),
    (0x08, "settings_enable_connect_protocol"),
    (0x33, "settings_h3_datagram"),
];

impl<W: std::io::Write> Writer<W> {
    /// Tells an event of HTTP/3, between packets.
    pub(super) fn of_http3(&mut self, at: Instant, event: &LogEvent) {
        let flavor = self.flavor;
        let names = match event {
            LogEvent::SettingsSet { .. } => ("http:parameters_set", "http3:parameters_set"),
            LogEvent::SettingsRestored(_) => ("http:parameters_restored", "http3:parameters_restored"),
            LogEvent::StreamType { .. } => ("http:stream_type_set", "http3:stream_type_set"),
            LogEvent::PrioritySet { .. } => ("http:priority_updated", "http3:priority_updated"),
            LogEvent::FrameCreated { .. } => ("http:frame_created", "http3:frame_created"),
            LogEvent::FrameParsed { .. } => ("http:frame_parsed", "http3:frame_parsed"),
            LogEvent::DatagramCreated { .. } => ("http:datagram_created", "http3:datagram_created"),
            LogEvent::DatagramParsed { .. } => ("http:datagram_parsed", "http3:datagram_parsed"),
            LogEvent::Missing(_) => ("loglevel:warning", "loglevel:warning"),
        };
        let Value::Object(data) = data(event, flavor) else { return };
        let text = Value::Object(data).to_string();
        // The braces are around the data of every event.
        let inside = text.trim_start_matches('{').strip_suffix('}').unwrap_or_default();
        self.event(at, names, |out| out.push_str(inside));
    }
}

fn data(event: &LogEvent, flavor: Flavor) -> Value {
    match event {
        LogEvent::SettingsSet { is_local, settings } => {
            let mut data = parameters(settings);
            with_initiator(&mut data, *is_local, flavor);
            Value::Object(data)
        }
        LogEvent::SettingsRestored(settings) => Value::Object(parameters(settings)),
        LogEvent::StreamType { stream, is_local, kind } => {
            let mut data = Map::new();
            with_initiator(&mut data, *is_local, flavor);
            data.insert("stream_id".to_owned(), (*stream).into());
            data.insert("stream_type".to_owned(), stream_type(*kind).into());
            if let StreamKind::Unknown(number) = kind {
                data.insert("stream_type_bytes".to_owned(), (*number).into());
            }
            Value::Object(data)
        }
        LogEvent::PrioritySet { stream, new, is_received } => {
            let trigger = if *is_received { "client_signal_received" } else { "local" };
            json!({"stream_id": stream, "new": priority(*new), "trigger": trigger})
        }
        LogEvent::FrameCreated { stream, frame } | LogEvent::FrameParsed { stream, frame } => {
            let mut data = json!({"stream_id": stream, "frame": self::frame(frame, flavor)});
            if let LogFrame::Headers { left_out: left_out @ 1.., .. } = frame {
                data["fulmar_fields_left_out"] = (*left_out).into();
            }
            data
        }
        LogEvent::DatagramCreated { stream, len } | LogEvent::DatagramParsed { stream, len } => {
            json!({"quarter_stream_id": stream / 4, "raw": {"payload_length": len}})
        }
        LogEvent::Missing(count) => json!({"message": format!("{count} events of HTTP/3 are missing here")}),
    }
}

/// Which end it was. The drafts had another word for it before.
fn with_initiator(data: &mut Map<String, Value>, is_local: bool, flavor: Flavor) {
    let end = if is_local { "local" } else { "remote" };
    data.insert("initiator".to_owned(), end.into());
    if flavor == Flavor::Qvis {
        data.insert("owner".to_owned(), end.into());
    }
}

fn parameters(settings: &Settings) -> Map<String, Value> {
    let mut data = Map::new();
    let mut put = |name: &str, value: u64| data.insert(name.to_owned(), value.into());
    if let Some(size) = settings.max_field_section_size {
        put("max_field_section_size", size);
    }
    put("max_table_capacity", settings.qpack_max_table_capacity);
    put("blocked_streams_count", settings.qpack_blocked_streams);
    put("extended_connect", settings.enable_connect_protocol.into());
    put("h3_datagram", settings.h3_datagram.into());
    data
}

fn stream_type(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Request => "request",
        StreamKind::Control => "control",
        StreamKind::Encoder => "qpack_encode",
        StreamKind::Decoder => "qpack_decode",
        StreamKind::Push => "push",
        StreamKind::Reserved => "reserved",
        StreamKind::Unknown(_) => "unknown",
    }
}

/// The value that says this, in full.
fn priority(priority: Priority) -> String {
    let Priority { urgency, incremental } = priority;
    if incremental { format!("u={urgency}, i") } else { format!("u={urgency}") }
}

fn frame(frame: &LogFrame, flavor: Flavor) -> Value {
    let raw = |len: u64| json!({"payload_length": len});
    match frame {
        LogFrame::Data { len } => with_length(json!({"frame_type": "data", "raw": raw(*len)}), *len, flavor),
        LogFrame::Headers { len, fields, .. } => {
            let fields: Vec<Value> = fields.iter().map(|one| field(one, flavor)).collect();
            let frame = json!({"frame_type": "headers", "headers": fields});
            let Some(len) = *len else { return frame };
            let mut frame = with_length(frame, len, flavor);
            frame["raw"] = raw(len);
            frame
        }
        LogFrame::Settings(pairs) => {
            let settings: Vec<Value> = pairs.iter().map(|(id, value)| setting(*id, *value)).collect();
            json!({"frame_type": "settings", "settings": settings})
        }
        LogFrame::GoAway(id) => json!({"frame_type": "goaway", "id": id}),
        LogFrame::CancelPush(id) => json!({"frame_type": "cancel_push", "push_id": id}),
        LogFrame::MaxPushId(id) => json!({"frame_type": "max_push_id", "push_id": id}),
        LogFrame::PriorityUpdate { id, is_push, value } => {
            let of = if *is_push { "push_id" } else { "stream_id" };
            let value = String::from_utf8_lossy(value);
            json!({"frame_type": "priority_update", of: id, "priority_field_value": value})
        }
        LogFrame::Origin(origins) => {
            let entry = |origin: &String| json!({"origin_len": origin.len(), "ascii_origin": origin});
            let entries: Vec<Value> = origins.iter().map(entry).collect();
            json!({"frame_type": "origin", "origin_entries": entries})
        }
        LogFrame::Reserved { ty, len } => {
            json!({"frame_type": "reserved", "frame_type_bytes": ty, "raw": raw(*len)})
        }
        LogFrame::Unknown { ty, len } => {
            json!({"frame_type": "unknown", "frame_type_bytes": ty, "raw": raw(*len)})
        }
    }
}

/// Lengths stood beside the type of a frame before.
fn with_length(mut frame: Value, len: u64, flavor: Flavor) -> Value {
    if flavor == Flavor::Qvis {
        frame["length"] = len.into();
    }
    frame
}

/// A field. What is no text is told in hexadecimal digits; of a value that the log does not have, the drafts have no word for its length.
fn field(field: &LogField, flavor: Flavor) -> Value {
    let mut told = Map::new();
    put_bytes(&mut told, "name", &field.name);
    match &field.value {
        Some(value) => put_bytes(&mut told, "value", value),
        None if flavor == Flavor::Qvis => {
            told.insert("value_length".to_owned(), field.value_len.into());
        }
        None => {}
    }
    Value::Object(told)
}

fn put_bytes(told: &mut Map<String, Value>, key: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => told.insert(key.to_owned(), text.into()),
        Err(_) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            told.insert(format!("{key}_bytes"), digits.into())
        }
    };
}

fn setting(id: u64, value: u64) -> Value {
    // RFC 9114 §7.2.4.1: of the form 0x1f * N + 0x21.
    let is_reserved = id >= 0x21 && (id - 0x21).is_multiple_of(0x1f);
    match SETTINGS.iter().find(|(known, _)| *known == id) {
        Some((_, name)) => json!({"name": name, "value": value}),
        None if is_reserved => json!({"name": "reserved", "value": value}),
        None => json!({"name": "unknown", "name_bytes": id, "value": value}),
    }
}
