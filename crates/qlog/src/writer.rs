//! A qlog file, written event by event.
//!
//! An event is text that is put together from numbers and known words; nothing in it needs to be escaped but what stands
//! in the header.

use std::fmt::Write as _;
use std::io;

use fulmar_base::Instant;
use fulmar_proto::log::{BlockedReason, ConnectionState, EcnState, LogEntry, LogEvent};
use fulmar_proto::{Ecn, Side, SpaceId};
use serde_json::json;

mod frames;

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
    /// The time at the beginning of the clock, as in `2026-11-01T12:00:00Z`; empty: unknown.
    pub wall_clock_time: &'a str,
    /// The names of events.
    pub flavor: Flavor,
}

/// Writes the qlog file of one end of a connection.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    flavor: Flavor,
    /// The frames of the packet that is not complete yet, and what was noted after the first of them.
    frames: frames::Frames,
    waiting: String,
    text: String,
    key_phase: u64,
}

impl<W: io::Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// `out` takes nothing.
    pub fn new(mut out: W, header: &Header<'_>) -> io::Result<Self> {
        let side = if header.side.is_client() { "client" } else { "server" };
        let mut reference_time = json!({"clock_type": "monotonic", "epoch": "unknown"});
        if !header.wall_clock_time.is_empty() {
            reference_time["wall_clock_time"] = header.wall_clock_time.into();
        }
        let trace = json!({
            "title": header.title,
            "vantage_point": {"type": side},
            "common_fields": {
                "group_id": header.group_id,
                "time_format": "relative_to_epoch",
                "reference_time": reference_time,
            },
            "event_schemas": ["urn:ietf:params:qlog:events:quic-13"],
        });
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
            flavor: header.flavor,
            frames: frames::Frames::new(header.flavor),
            waiting: String::new(),
            text: String::new(),
            key_phase: 0,
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

    /// Tells that so many entries are missing here, since they came faster than they could be written.
    ///
    /// # Errors
    /// The file takes no more.
    pub fn note_missing(&mut self, at: Instant, count: u64) -> io::Result<()> {
        // What is left of a packet belongs to none.
        self.frames.clear();
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
        if self.frames.take(&entry.event) {
            return;
        }
        match entry.event {
            LogEvent::PacketSent { space, number, size, mtu_probe, ecn, .. } => {
                let names = ("transport:packet_sent", "quic:packet_sent");
                let probe = if mtu_probe { ",\"is_mtu_probe_packet\":true" } else { "" };
                self.packet(at, names, (space, number), size, ecn, probe);
            }
            LogEvent::PacketReceived { space, number, size, ecn } => {
                let names = ("transport:packet_received", "quic:packet_received");
                self.packet(at, names, (space, number), size, ecn, "");
            }
            // What an acknowledgement brings about is noted before its packet is complete, and told after it.
            ref event if self.frames.is_empty() => self.other(at, event),
            ref event => {
                let text = std::mem::take(&mut self.text);
                self.other(at, event);
                let own = std::mem::replace(&mut self.text, text);
                self.waiting.push_str(&own);
            }
        }
    }

    fn packet(
        &mut self,
        at: Instant,
        names: (&str, &str),
        (space, number): (SpaceId, u64),
        size: u16,
        ecn: Ecn,
        more: &str,
    ) {
        let frames = self.frames.finish();
        let phase = match space {
            SpaceId::Data(_) => format!(",\"key_phase\":{}", self.key_phase),
            SpaceId::Initial | SpaceId::Handshake => String::new(),
        };
        let mark = match (self.flavor, ecn) {
            (Flavor::Draft, _) | (_, Ecn::NotEct) => "",
            (Flavor::Qvis, Ecn::Ect0) => ",\"ecn\":\"ECT(0)\"",
            (Flavor::Qvis, Ecn::Ect1) => ",\"ecn\":\"ECT(1)\"",
            (Flavor::Qvis, Ecn::Ce) => ",\"ecn\":\"CE\"",
        };
        self.event(at, names, |text| {
            let kind = packet_type(space);
            let _ = write!(
                text,
                "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}{phase}}},\
                 \"raw\":{{\"length\":{size}}},\"frames\":[{frames}]{mark}{more}"
            );
        });
        self.release();
    }

    /// Writes what waited for its packet.
    fn release(&mut self) {
        self.text.push_str(&self.waiting);
        self.waiting.clear();
    }

    fn other(&mut self, at: Instant, event: &LogEvent) {
        match *event {
            LogEvent::PacketLost { space, number, mtu_probe, .. } => {
                let probe = if mtu_probe { ",\"is_mtu_probe_packet\":true" } else { "" };
                self.event(at, ("recovery:packet_lost", "quic:packet_lost"), |text| {
                    let kind = packet_type(space);
                    let _ = write!(
                        text,
                        "\"header\":{{\"packet_type\":\"{kind}\",\"packet_number\":{number}}}{probe}"
                    );
                });
            }
            LogEvent::PacketSpurious { space, number, .. } => {
                let names = ("recovery:spurious_loss", "fulmar:spurious_loss");
                self.event(at, names, |text| {
                    let kind = number_space(space);
                    let _ = write!(text, "\"packet_number_space\":\"{kind}\",\"packet_number\":{number}");
                });
            }
            LogEvent::PacketDropped { unauthenticated, size } => {
                let trigger = if unauthenticated { "decryption_failure" } else { "general" };
                self.event(at, ("transport:packet_dropped", "quic:packet_dropped"), |text| {
                    let _ = write!(text, "\"raw\":{{\"length\":{size}}},\"trigger\":\"{trigger}\"");
                });
            }
            LogEvent::ProbeTimeout { space, count } => {
                self.timer(at, "pto", Some(space));
                self.metrics(at, &[("pto_count", f64::from(count.min(u32::from(u16::MAX))))]);
            }
            LogEvent::LossTimeout => self.timer(at, "loss_timeout", None),
            LogEvent::Phase(name) => self.text_event(
                at,
                ("recovery:congestion_state_updated", "quic:congestion_state_updated"),
                name,
            ),
            LogEvent::Mtu(mtu) => {
                self.event(at, ("recovery:mtu_updated", "quic:mtu_updated"), |text| {
                    let _ = write!(text, "\"new\":{mtu}");
                });
            }
            LogEvent::EcnState(state) => {
                let names = ("recovery:ecn_state_updated", "quic:ecn_state_updated");
                self.text_event(at, names, ecn_state(state));
            }
            LogEvent::KeyGeneration(generation) => self.key_update(at, generation),
            LogEvent::PeerAddress { ip, port } => self.peer_address(at, ip, port),
            LogEvent::Blocked(reason) => {
                self.text_event(at, ("fulmar:blocked", "fulmar:blocked"), blocked(reason));
            }
            LogEvent::State(state) => self.state(at, state),
            LogEvent::ObservedAddress { ip, port } => {
                let ip = std::net::Ipv6Addr::from(ip).to_canonical();
                let name = "fulmar:observed_address";
                self.event(at, (name, name), |text| {
                    let _ = write!(text, "\"ip\":\"{ip}\",\"port\":{port}");
                });
            }
            LogEvent::Queues { forward, back } => {
                let (name, millis) = ("fulmar:one_way_queues", |nanos: u64| nanos as f64 / 1e6);
                let (forward, back) = (millis(forward), millis(back));
                self.event(at, (name, name), |text| {
                    let _ = write!(text, "\"forward\":{forward},\"return\":{back}");
                });
            }
            LogEvent::DatagramsDropped { late, other } => {
                let name = "fulmar:datagrams_dropped";
                self.event(at, (name, name), |text| {
                    let _ = write!(text, "\"late\":{late},\"other\":{other}");
                });
            }
            ref figure => self.figures(at, figure),
        }
    }

    fn figures(&mut self, at: Instant, event: &LogEvent) {
        let millis = |nanos: u64| nanos as f64 / 1e6;
        match *event {
            LogEvent::Window { window, in_flight } => self
                .metrics(at, &[("congestion_window", window as f64), ("bytes_in_flight", in_flight as f64)]),
            LogEvent::SlowStartThreshold(Some(bytes)) => self.metrics(at, &[("ssthresh", bytes as f64)]),
            LogEvent::Rates { pacing, delivery } => {
                let rates = [("pacing_rate", pacing as f64 * 8.0), ("delivery_rate", delivery as f64 * 8.0)];
                // The drafts know no delivery rate.
                self.metrics(at, if self.flavor == Flavor::Qvis { &rates } else { &rates[..1] });
            }
            LogEvent::Rtt { latest, smoothed } => {
                self.metrics(at, &[("latest_rtt", millis(latest)), ("smoothed_rtt", millis(smoothed))]);
            }
            LogEvent::RttBounds { min, variance } => {
                self.metrics(at, &[("min_rtt", millis(min)), ("rtt_variance", millis(variance))]);
            }
            _ => {}
        }
    }

    fn metrics(&mut self, at: Instant, values: &[(&str, f64)]) {
        let names = ("recovery:metrics_updated", "quic:recovery_metrics_updated");
        self.event(at, names, |text| {
            for (place, (name, value)) in values.iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                let _ = write!(text, "{comma}\"{name}\":{value}");
            }
        });
    }

    fn timer(&mut self, at: Instant, kind: &str, space: Option<SpaceId>) {
        let space = space.map(|space| format!(",\"packet_number_space\":\"{}\"", number_space(space)));
        self.event(at, ("recovery:loss_timer_updated", "quic:timer_updated"), |text| {
            let space = space.unwrap_or_default();
            let _ = write!(text, "\"timer_type\":\"{kind}\",\"event_type\":\"expired\"{space}");
        });
    }

    fn key_update(&mut self, at: Instant, generation: u64) {
        self.key_phase = generation;
        for kind in ["server_1rtt_secret", "client_1rtt_secret"] {
            self.event(at, ("security:key_updated", "quic:key_updated"), |text| {
                let _ = write!(text, "\"key_type\":\"{kind}\",\"key_phase\":{generation}");
            });
        }
    }

    fn peer_address(&mut self, at: Instant, ip: [u8; 16], port: u16) {
        let ip = std::net::Ipv6Addr::from(ip);
        let remote = match ip.to_ipv4_mapped() {
            Some(ip) => format!("\"ip_v4\":\"{ip}\",\"port_v4\":{port}"),
            None => format!("\"ip_v6\":\"{ip}\",\"port_v6\":{port}"),
        };
        self.event(at, ("transport:tuple_assigned", "quic:tuple_assigned"), |text| {
            let _ = write!(text, "\"tuple_id\":\"\",\"tuple_remote\":{{{remote}}}");
        });
    }

    fn state(&mut self, at: Instant, state: ConnectionState) {
        let name = match state {
            ConnectionState::Established => "handshake_complete",
            ConnectionState::Confirmed => "handshake_confirmed",
            ConnectionState::Closing => "closing",
            ConnectionState::Draining => "draining",
            ConnectionState::TimedOut | ConnectionState::Drained => "closed",
        };
        let names = ("transport:connection_state_updated", "quic:connection_state_updated");
        self.text_event(at, names, name);
        if state == ConnectionState::TimedOut {
            self.event(at, ("transport:connection_closed", "quic:connection_closed"), |text| {
                text.push_str("\"initiator\":\"local\",\"trigger\":\"idle_timeout\"");
            });
        }
    }

    /// An event that says the name of something new.
    fn text_event(&mut self, at: Instant, names: (&str, &str), new: &str) {
        // Names of states come from controllers, also of others.
        let new = json!(new);
        self.event(at, names, |text| {
            let _ = write!(text, "\"new\":{new}");
        });
    }

    fn event(&mut self, at: Instant, (qvis, draft): (&str, &str), data: impl FnOnce(&mut String)) {
        let name = if self.flavor == Flavor::Qvis { qvis } else { draft };
        let millis = at.as_nanos() as f64 / 1e6;
        let _ = write!(self.text, "{RECORD_SEPARATOR}{{\"time\":{millis},\"name\":\"{name}\",\"data\":{{");
        data(&mut self.text);
        self.text.push_str("}}\n");
    }
}

fn packet_type(space: SpaceId) -> &'static str {
    match space {
        SpaceId::Initial => "initial",
        SpaceId::Handshake => "handshake",
        SpaceId::Data(_) => "1RTT",
    }
}

fn number_space(space: SpaceId) -> &'static str {
    match space {
        SpaceId::Initial => "initial",
        SpaceId::Handshake => "handshake",
        SpaceId::Data(_) => "application_data",
    }
}

fn ecn_state(state: EcnState) -> &'static str {
    match state {
        EcnState::Testing => "testing",
        EcnState::Unknown => "unknown",
        EcnState::Capable => "capable",
        EcnState::Failed => "failed",
    }
}

/// Why no more is sent, as the log tells it.
pub(crate) fn blocked(reason: BlockedReason) -> &'static str {
    match reason {
        BlockedReason::NothingToSend => "nothing_to_send",
        BlockedReason::Window => "congestion_window",
        BlockedReason::Pacer => "pacing",
        BlockedReason::Credit => "amplification_limit",
    }
}

#[cfg(test)]
mod tests;
