//! The events of a trace, by the names that stacks give them.

use std::collections::BTreeMap;

use fulmar_base::Instant;
use fulmar_plot::{Lane, SentFrameInfo, SpaceKey, Timelines};
use serde_json::Value;

use super::requests::Requests;

/// The longest names of states that are kept.
const NAME_MAX: usize = 60;

/// What is made of events.
#[derive(Debug)]
pub(super) struct Events {
    name: String,
    timelines: Timelines,
    requests: Requests,
    sent: u64,
    received: u64,
    lost: u64,
    probe_timeouts: u64,
    rtt: Option<(f64, f64)>,
    /// By path.
    pto_counts: BTreeMap<u32, u64>,
    /// Milliseconds per unit of round-trip times.
    unit: f64,
    version: Option<String>,
    alpn: Option<String>,
    end: Option<String>,
    /// Whether the stack writes when its timers ring; otherwise probe timeouts are known by their count.
    tells_timers: bool,
}

impl Events {
    pub(super) fn new(name: String, unit: f64) -> Self {
        Self {
            name: shortened(&name),
            timelines: Timelines::default(),
            requests: Requests::default(),
            sent: 0,
            received: 0,
            lost: 0,
            probe_timeouts: 0,
            rtt: None,
            pto_counts: BTreeMap::new(),
            unit,
            version: None,
            alpn: None,
            end: None,
            tells_timers: false,
        }
    }

    /// Takes an event; `None` if it says nothing that is drawn. `tuple` is what the event, and not its data, says of its path.
    pub(super) fn take(
        &mut self,
        at: Instant,
        name: &str,
        data: &Value,
        tuple: Option<&Value>,
    ) -> Option<()> {
        let path = || data.get("path_id").and_then(path_number).or_else(|| tuple_number(tuple?)).unwrap_or(0);
        match name {
            "packet_sent" => self.packet_sent(at, data),
            "packet_received" => self.packet_received(at, data),
            "packet_lost" => {
                let (space, number) = packet(data)?;
                self.lost += 1;
                match data.get("is_mtu_probe_packet").and_then(Value::as_bool) {
                    Some(true) => self.timelines.probe_lost(space, number),
                    _ => self.timelines.packet_lost(at, space, number),
                }
                Some(())
            }
            "metrics_updated" | "recovery_metrics_updated" => self.metrics(at, path(), data),
            "congestion_state_updated" => {
                let new = data.get("new").or_else(|| data.get("state"))?.as_str()?;
                self.timelines.path(path())?.phase(at, &shortened(new));
                Some(())
            }
            "loss_timer_updated" | "timer_updated" | "loss_timer_expired" => self.timer(at, path(), data),
            "mtu_updated" => {
                let bytes = number(data.get("new").or_else(|| data.get("mtu"))?)?;
                self.timelines.path(path())?.mtu(at, bytes);
                Some(())
            }
            "key_discarded" => {
                let kind = data.get("key_type")?.as_str()?;
                let space = if kind.contains("initial") {
                    0
                } else if kind.contains("handshake") {
                    1
                } else {
                    return None;
                };
                self.timelines.space_discarded((space, 0));
                Some(())
            }
            // Of HTTP/3; those of other protocols have no streams.
            "frame_created" => self.requests.frame(at, true, data),
            "frame_parsed" => self.requests.frame(at, false, data),
            _ => self.agreement(name, data),
        }
    }

    /// What the ends agreed on, and how it ended: figures by name, of which the last one counts.
    fn agreement(&mut self, name: &str, data: &Value) -> Option<()> {
        match name {
            "version_information" => {
                let chosen = data.get("chosen_version")?;
                let by_number = || chosen.as_u64().map(|version| format!("{version:08x}"));
                self.version = chosen.as_str().map(shortened).or_else(by_number);
            }
            "alpn_information" => {
                let chosen = data.get("chosen_alpn")?;
                let text = chosen.as_str().or_else(|| chosen.get("string_value")?.as_str());
                self.alpn = Some(shortened(text?));
            }
            "connection_closed" => self.end = Some(shortened(&ending(data))),
            _ => return None,
        }
        Some(())
    }

    fn packet_sent(&mut self, at: Instant, data: &Value) -> Option<()> {
        let name = packet(data)?;
        let size = size(data);
        let (mut carried, mut in_flight, mut any) = (Vec::new(), false, false);
        for frame in frames(data) {
            let kind = frame_type(frame);
            any = true;
            in_flight |= !matches!(kind, "ack" | "path_ack" | "connection_close");
            match kind {
                "stream" => carried.extend(stream(frame)),
                "datagram" => carried.push(SentFrameInfo::Datagram(length(frame).unwrap_or(0))),
                _ => {}
            }
        }
        self.sent += 1;
        self.timelines.packet_sent(at, name, size, in_flight || !any, &carried);
        Some(())
    }

    fn packet_received(&mut self, at: Instant, data: &Value) -> Option<()> {
        let (space, _) = packet(data)?;
        self.received += 1;
        for frame in frames(data).filter(|frame| matches!(frame_type(frame), "ack" | "path_ack")) {
            // An acknowledgement may come over another path than that of its packets, which is path 0 if none is named (RFC 10069).
            let path = frame.get("path_id").and_then(path_number).unwrap_or(0);
            let space = (space.0, path);
            let ranges = frame.get("acked_ranges").and_then(Value::as_array);
            for range in ranges.into_iter().flatten() {
                let first = range.get(0).and_then(number);
                let last = range.get(1).and_then(number).or(first);
                if let (Some(first), Some(last)) = (first, last) {
                    self.timelines.packets_acked(at, space, first, last);
                }
            }
        }
        Some(())
    }

    fn metrics(&mut self, at: Instant, path: u32, data: &Value) -> Option<()> {
        let timeline = self.timelines.path(path)?;
        let get = |names: &[&str]| names.iter().find_map(|name| data.get(*name));
        let millis = |names: &[&str]| {
            let value = get(names)?;
            let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
            Some(number * self.unit).filter(|millis| (0.0..1e12).contains(millis))
        };
        let nanos = |millis: f64| (millis * 1e6) as u64;
        let latest = millis(&["latest_rtt"]);
        // Some stacks tell what they assume before the first sample, which is 0 until then.
        let is_assumed = latest == Some(0.0) && !timeline.has_rtt();
        let (smoothed, min) = (millis(&["smoothed_rtt"]), millis(&["min_rtt"]));
        if let Some(latest) = latest.filter(|_| !is_assumed) {
            timeline.rtt(at, nanos(latest));
            let (min, max) = self.rtt.unwrap_or((latest, latest));
            self.rtt = Some((min.min(latest), max.max(latest)));
        }
        if let Some(smoothed) = smoothed.filter(|_| !is_assumed) {
            timeline.rtt_smoothed(at, nanos(smoothed));
        }
        if let Some(min) = min.filter(|_| !is_assumed) {
            timeline.rtt_min(at, nanos(min));
        }
        if let Some(window) = get(&["congestion_window", "cwnd"]).and_then(number) {
            timeline.window(at, window);
        }
        if let Some(bytes) = get(&["bytes_in_flight"]).and_then(number) {
            timeline.in_flight(at, bytes);
        }
        // A threshold that is not set is written as the largest number there is.
        if let Some(bytes) = get(&["ssthresh"]).and_then(number).filter(|bytes| *bytes < 1 << 48) {
            timeline.ssthresh(at, bytes);
        }
        if let Some(rate) = get(&["pacing_rate"]).and_then(number) {
            timeline.pacing_rate(at, rate / 8);
        }
        if let Some(rate) = get(&["delivery_rate"]).and_then(number) {
            timeline.delivery_rate(at, rate / 8);
        }
        if let Some(count) = get(&["pto_count"]).and_then(number) {
            let last = self.pto_counts.insert(path, count).unwrap_or(0);
            if count > last && !self.tells_timers {
                self.probe_timeouts += 1;
                timeline.probe_timeout(at);
            }
        }
        Some(())
    }

    fn timer(&mut self, at: Instant, path: u32, data: &Value) -> Option<()> {
        let says = |key: &str, word: &str| data.get(key).and_then(Value::as_str) == Some(word);
        if says("event_type", "expired") && says("timer_type", "pto") {
            self.tells_timers = true;
            self.probe_timeouts += 1;
            self.timelines.path(path)?.probe_timeout(at);
        }
        Some(())
    }

    /// What is drawn of the connection, and of each further path, and figures by name.
    pub(super) fn finish(self) -> (Lane, Vec<Lane>, Vec<(String, String)>) {
        let mut facts = Vec::new();
        let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
        fact("bytes", self.timelines.bytes().to_string());
        fact("packets sent", self.sent.to_string());
        fact("packets received", self.received.to_string());
        fact("lost", self.lost.to_string());
        fact("probe timeouts", self.probe_timeouts.to_string());
        if let Some((min, max)) = self.rtt {
            fact("round-trip time", format!("{min:.1} to {max:.1} ms"));
        }
        for (name, value) in [("version", self.version), ("protocol", self.alpn), ("end", self.end)] {
            facts.extend(value.map(|value| (name.to_owned(), value)));
        }
        let requests = self.requests.finish();
        if !requests.is_empty() {
            facts.push(("requests".to_owned(), requests.len().to_string()));
        }
        let (timeline, others) = self.timelines.finish();
        let name = self.name;
        let paths = others.into_iter().map(|(path, timeline)| Lane {
            name: format!("{name}, path {path}"),
            timeline,
            ..Lane::default()
        });
        let paths = paths.collect();
        (Lane { name, timeline, requests, ..Lane::default() }, paths, facts)
    }
}

/// The space and the number of the packet that an event is about.
fn packet(data: &Value) -> Option<(SpaceKey, u64)> {
    let header = data.get("header").unwrap_or(data);
    let kind = header.get("packet_type").or_else(|| data.get("packet_type"))?.as_str()?;
    let space = match kind.to_ascii_lowercase().as_str() {
        "initial" => 0,
        "handshake" => 1,
        "1rtt" | "0rtt" => 2,
        _ => return None,
    };
    let number = header.get("packet_number").or_else(|| data.get("packet_number")).and_then(number)?;
    let path = header.get("path_id").or_else(|| data.get("path_id")).and_then(path_number);
    Some(((space, path.unwrap_or(0)), number))
}

fn path_number(value: &Value) -> Option<u32> {
    u32::try_from(number(value)?).ok()
}

/// The path that a tuple is named after: by its number, with a letter before it in noq's files. Names of other kinds tell nothing.
fn tuple_number(value: &Value) -> Option<u32> {
    path_number(value).or_else(|| value.as_str()?.strip_prefix('p')?.parse().ok())
}

/// The size of a packet in bytes; 0 if it is not told.
fn size(data: &Value) -> u64 {
    let places = ["/raw/length", "/header/packet_size", "/packet_size", "/raw/payload_length"];
    let told = places.iter().find_map(|place| data.pointer(place).and_then(number));
    // A packet fits a datagram.
    told.unwrap_or(0).min(1 << 16)
}

/// How a connection ended, in the words of the file.
fn ending(data: &Value) -> String {
    let words = ["trigger", "connection_error", "connection_code", "application_error", "application_code"];
    let fields = words.into_iter().chain(["error_code", "reason"]).filter_map(|key| data.get(key));
    let texts = fields.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let texts: Vec<String> = texts.filter(|text| text != "unknown" && !text.is_empty()).collect();
    if texts.is_empty() { "closed".to_owned() } else { texts.join(", ") }
}

fn frames(data: &Value) -> impl Iterator<Item = &Value> {
    data.get("frames").and_then(Value::as_array).into_iter().flatten()
}

fn frame_type(frame: &Value) -> &str {
    frame.get("frame_type").and_then(Value::as_str).unwrap_or("")
}

fn stream(frame: &Value) -> Option<SentFrameInfo> {
    let id = frame.get("stream_id").or_else(|| frame.get("id")).and_then(number)?;
    let offset = frame.get("offset").and_then(number).unwrap_or(0);
    Some(SentFrameInfo::Stream { id, offset, len: length(frame)? })
}

pub(super) fn length(frame: &Value) -> Option<u64> {
    let places = ["/length", "/raw/payload_length", "/raw/length"];
    places.iter().find_map(|place| frame.pointer(place).and_then(number))
}

/// A number that is not negative, also one that is written as text, as some stacks do.
pub(super) fn number(value: &Value) -> Option<u64> {
    let by_float =
        || value.as_f64().filter(|number| (0.0..1.8e19).contains(number)).map(|number| number as u64);
    value.as_u64().or_else(by_float).or_else(|| value.as_str()?.parse().ok())
}

pub(super) fn shortened(text: &str) -> String {
    text.chars().take(NAME_MAX).collect()
}
