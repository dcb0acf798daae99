//! A qlog file, written event by event.
//!
//! An event is text that is put together from numbers and known words; what others have chosen is escaped.
//!
//! | file | owns |
//! |---|---|
//! | `writer` | the file, and packets |
//! | `frames` | the frames of a packet |
//! | `connection` | the life of the connection: beginning, versions, parameters, keys, addresses, end |
//! | `recovery` | losses, timers, figures |
//! | `http3` | HTTP/3: settings, streams, frames with their fields, priorities, datagrams |
//! | `names` | the words of the drafts |

use std::fmt::Write as _;
use std::io;

use fulmar_base::Instant;
use fulmar_h3_proto::log::LogEvent as HttpEvent;
use fulmar_proto::log::{BarePacket, LogEntry, LogEvent};
use fulmar_proto::{Ecn, PathId, Side, SpaceId};
use serde_json::{Value, json};

mod connection;
mod frames;
mod http3;
mod names;
mod recovery;

pub(crate) use names::{blocked, repair_outcome};

/// The byte before each text of a sequence (RFC 7464 §2.2).
const RECORD_SEPARATOR: char = '\u{1e}';

/// The names that events go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavor {
    /// As qvis understands them, and as most stacks write them: the names of qlog 0.3, and a few keys beside those of the
    /// drafts.
    #[default]
    Qvis,
    /// To the letter of the drafts.
    Draft,
}

/// What a file says about itself.
#[derive(Debug, Clone)]
pub struct Header<'a> {
    /// The end that the file is about.
    pub side: Side,
    /// What the connection is known by: the connection ID that the client made up, in hexadecimal digits.
    pub group_id: &'a str,
    /// A few words.
    pub title: &'a str,
    /// When the file begins. Its times count from here.
    pub start: Instant,
    /// What a calendar and a clock showed then, as in `2026-11-01T12:00:00.000Z`; empty: unknown.
    pub wall_clock_time: &'a str,
    /// The names of events.
    pub flavor: Flavor,
}

/// Writes the qlog file of one end of a connection.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    start: Instant,
    flavor: Flavor,
    /// The frames of the packet that is not complete yet, and what was noted after the first of them.
    frames: frames::Frames,
    waiting: String,
    text: String,
    key_phase: u64,
    errors: names::ApplicationErrors,
    /// What is told with an event that follows.
    parts: connection::Parts,
}

/// A packet with a number.
struct Packet {
    space: SpaceId,
    number: u64,
    size: u16,
    early: bool,
    old_keys: bool,
    ecn: Ecn,
}

impl<W: io::Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// `out` takes nothing.
    pub fn new(mut out: W, header: &Header<'_>) -> io::Result<Self> {
        let trace = trace(header);
        // Whoever reads looks for these within the first bytes (main-schema §3), so they come first.
        write!(
            out,
            "{RECORD_SEPARATOR}{{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\
             \"serialization_format\":\"application/qlog+json-seq\","
        )?;
        if header.flavor == Flavor::Qvis {
            write!(out, "\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\",")?;
        }
        writeln!(out, "\"trace\":{trace}}}")?;
        Ok(Self {
            out,
            start: header.start,
            flavor: header.flavor,
            frames: frames::Frames::new(header.flavor),
            waiting: String::new(),
            text: String::new(),
            key_phase: 0,
            errors: names::ApplicationErrors::default(),
            parts: connection::Parts::default(),
        })
    }

    /// Writes entries of the log.
    ///
    /// # Errors
    /// The file takes no more.
    pub fn write(&mut self, entries: &[LogEntry]) -> io::Result<()> {
        for entry in entries {
            self.take(entry);
        }
        let result = self.out.write_all(self.text.as_bytes());
        self.text.clear();
        result
    }

    /// Writes entries of the log, and what HTTP/3 has noted meanwhile, in the order of their times. Both are in order themselves.
    ///
    /// # Errors
    /// The file takes no more.
    pub fn write_with_http3(
        &mut self,
        entries: &[LogEntry],
        http3: &[(Instant, &HttpEvent)],
    ) -> io::Result<()> {
        let mut http3 = http3.iter().peekable();
        for entry in entries {
            while let Some((at, event)) = http3.next_if(|(at, _)| *at < entry.at) {
                self.take_http3(*at, event);
            }
            self.take(entry);
        }
        http3.for_each(|(at, event)| self.take_http3(*at, event));
        self.write(&[])
    }

    /// Tells that so many entries are missing here, since they came faster than they could be written.
    ///
    /// # Errors
    /// The file takes no more.
    pub fn note_missing(&mut self, at: Instant, count: u64) -> io::Result<()> {
        // What is left of a packet, or of a list, belongs to none.
        self.frames.clear();
        self.parts = connection::Parts::default();
        self.release();
        self.event(at, ("loglevel:warning", "loglevel:warning"), |text| {
            let _ = write!(text, "\"message\":\"{count} events are missing here\"");
        });
        self.write(&[])
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The file takes no more.
    pub fn finish(mut self) -> io::Result<W> {
        self.release();
        self.write(&[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn take(&mut self, entry: &LogEntry) {
        let at = entry.at;
        if self.frames.take(&entry.event, self.errors) {
            return;
        }
        match entry.event {
            LogEvent::PacketSent { space, number, size, mtu_probe, early, ecn, .. } => {
                let names = ("transport:packet_sent", "quic:packet_sent");
                let more = if mtu_probe { ",\"is_mtu_probe_packet\":true" } else { "" };
                let packet = Packet { space, number, size, early, old_keys: false, ecn };
                self.packet(at, names, &packet, more);
            }
            LogEvent::PacketReceived { space, number, size, early, waited, old_keys, ecn } => {
                let names = ("transport:packet_received", "quic:packet_received");
                let more = if waited { ",\"trigger\":\"keys_available\"" } else { "" };
                self.packet(at, names, &Packet { space, number, size, early, old_keys, ecn }, more);
            }
            LogEvent::BareReceived { packet, size } => self.bare(at, packet, size),
            // What an acknowledgement brings about is noted before its packet is complete.
            ref event => self.between_packets(|writer| writer.other(at, event)),
        }
    }

    fn take_http3(&mut self, at: Instant, event: &HttpEvent) {
        self.between_packets(|writer| writer.of_http3(at, event));
    }

    /// Writes something that is no part of a packet: behind the one that is not complete yet, if there is one.
    fn between_packets(&mut self, write: impl FnOnce(&mut Self)) {
        if self.frames.is_empty() {
            return write(self);
        }
        let text = std::mem::take(&mut self.text);
        write(self);
        let own = std::mem::replace(&mut self.text, text);
        self.waiting.push_str(&own);
    }

    fn packet(&mut self, at: Instant, names: (&str, &str), packet: &Packet, more: &str) {
        let Packet { space, number, size, early, old_keys, ecn } = *packet;
        let frames = self.frames.finish();
        let phase = match space {
            SpaceId::Data(_) if !early => {
                format!(",\"key_phase\":{}", self.key_phase.saturating_sub(old_keys.into()))
            }
            _ => String::new(),
        };
        // The drafts tell it with datagrams, which the log does not know.
        let mark = match (self.flavor, ecn) {
            (Flavor::Draft, _) | (_, Ecn::NotEct) => "",
            (Flavor::Qvis, Ecn::Ect0) => ",\"ecn\":\"ECT(0)\"",
            (Flavor::Qvis, Ecn::Ect1) => ",\"ecn\":\"ECT(1)\"",
            (Flavor::Qvis, Ecn::Ce) => ",\"ecn\":\"CE\"",
        };
        let path = space.path();
        self.event_on(at, path, names, |text| {
            let kind = if early { "0RTT" } else { names::packet_type(space) };
            let path_id = names::path_id(path);
            let _ = write!(
                text,
                "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}{path_id}{phase}}},\
                 \"raw\":{{\"length\":{size}}},\"frames\":[{frames}]{mark}{more}"
            );
        });
        self.release();
    }

    /// A packet without a number.
    fn bare(&mut self, at: Instant, packet: BarePacket, size: u16) {
        let kind = match packet {
            BarePacket::Retry => "retry",
            BarePacket::VersionNegotiation => "version_negotiation",
            BarePacket::StatelessReset => "stateless_reset",
        };
        self.event(at, ("transport:packet_received", "quic:packet_received"), |text| {
            let _ = write!(text, "\"header\":{{\"packet_type\":\"{kind}\"}},\"raw\":{{\"length\":{size}}}");
        });
    }

    /// Writes what waited for its packet.
    fn release(&mut self) {
        self.text.push_str(&self.waiting);
        self.waiting.clear();
    }

    fn other(&mut self, at: Instant, event: &LogEvent) {
        if !self.of_connection(at, event) {
            self.of_recovery(at, event);
        }
    }

    /// An event of the connection.
    fn event(&mut self, at: Instant, names: (&str, &str), data: impl FnOnce(&mut String)) {
        self.event_on(at, PathId::ZERO, names, data);
    }

    /// An event on a path. What belongs to another one than the first has the path's number for its tuple: events without a tuple
    /// belong to the one with which the connection began (main-schema §7.2).
    fn event_on(
        &mut self,
        at: Instant,
        path: PathId,
        (qvis, draft): (&str, &str),
        data: impl FnOnce(&mut String),
    ) {
        let name = if self.flavor == Flavor::Qvis { qvis } else { draft };
        // With a decimal point in any case: the drafts tell numbers of different kinds apart.
        let millis = at.saturating_since(self.start).as_nanos() as f64 / 1e6;
        let _ = write!(self.text, "{RECORD_SEPARATOR}{{\"time\":{millis:?},\"name\":\"{name}\",");
        if path != PathId::ZERO {
            let _ = write!(self.text, "\"tuple\":\"{}\",", path.0);
        }
        self.text.push_str("\"data\":{");
        data(&mut self.text);
        self.text.push_str("}}\n");
    }
}

/// The description of the trace.
fn trace(header: &Header<'_>) -> Value {
    let side = if header.side.is_client() { "client" } else { "server" };
    let mut reference_time = json!({"clock_type": "monotonic", "epoch": "unknown"});
    if !header.wall_clock_time.is_empty() {
        reference_time["wall_clock_time"] = header.wall_clock_time.into();
    }
    json!({
        "title": header.title,
        "vantage_point": {"type": side},
        "common_fields": {
            "group_id": header.group_id,
            "time_format": "relative_to_epoch",
            "reference_time": reference_time,
        },
        "event_schemas": [
            "urn:ietf:params:qlog:events:quic-13",
            "urn:ietf:params:qlog:events:http3-13",
        ],
    })
}

#[cfg(test)]
mod tests;
