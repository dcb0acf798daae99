//! qlog files: whatever is in them, they are read or refused, and what is read becomes a page. Most inputs are events with
//! names and keys that the reader knows, as bytes alone hardly ever become JSON.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

const HEADERS: [&str; 4] = [
    r#"{"trace":{"vantage_point":{"type":"client"},"common_fields":{"time_format":"relative_to_previous_event"}}}"#,
    r#"{"trace":{"vantage_point":{"type":"server"},"common_fields":{"time_format":"absolute","reference_time":5}}}"#,
    r#"{"trace":{"common_fields":{"reference_time":{"clock_type":"monotonic","epoch":"unknown"}}}}"#,
    r#"{"trace":{"configuration":{"time_units":"us","time_offset":"-9"}}}"#,
];
const NAMES: [&str; 8] = [
    "quic:packet_sent",
    "transport:packet_received",
    "recovery:packet_lost",
    "recovery:metrics_updated",
    "quic:recovery_metrics_updated",
    "recovery:congestion_state_updated",
    "quic:timer_updated",
    "http:frame_parsed",
];
const KEYS: [&str; 14] = [
    "packet_number",
    "length",
    "offset",
    "stream_id",
    "congestion_window",
    "bytes_in_flight",
    "smoothed_rtt",
    "latest_rtt",
    "min_rtt",
    "ssthresh",
    "pacing_rate",
    "new",
    "timer_type",
    "event_type",
];

#[derive(Debug, Arbitrary)]
enum Scalar {
    Whole(i64),
    Large(u64),
    Real(f64),
    Quoted(u64),
    Word(u8),
    Null,
}

impl Scalar {
    fn json(&self) -> String {
        match self {
            Self::Whole(value) => value.to_string(),
            Self::Large(value) => value.to_string(),
            Self::Real(value) if value.is_finite() => value.to_string(),
            Self::Quoted(value) => format!("\"{value}\""),
            Self::Word(n) => format!("\"{}\"", ["pto", "expired", "recovery", "1RTT"][usize::from(n % 4)]),
            Self::Real(_) | Self::Null => "null".to_owned(),
        }
    }
}

#[derive(Debug, Arbitrary)]
struct Event {
    name: u8,
    time: Scalar,
    fields: Vec<(u8, Scalar)>,
    acked: Vec<[Scalar; 2]>,
}

impl Event {
    fn json(&self) -> String {
        let fields = self.fields.iter().take(8);
        let fields: Vec<String> = fields
            .map(|(key, value)| format!("\"{}\":{}", KEYS[usize::from(*key) % KEYS.len()], value.json()))
            .collect();
        let fields = fields.join(",");
        let acked = self.acked.iter().take(8);
        let acked: Vec<String> =
            acked.map(|[first, last]| format!("[{},{}]", first.json(), last.json())).collect();
        // The same fields wherever a reader may look for them.
        format!(
            "{{\"time\":{},\"name\":\"{}\",\"data\":{{\"header\":{{{fields}}},\"raw\":{{{fields}}},\"frames\":\
             [{{\"frame_type\":\"stream\",\"fin\":true{comma}{fields}}},{{\"frame_type\":\"ack\",\"acked_ranges\":[{}]}}]{comma}{fields}}}}}",
            self.time.json(),
            NAMES[usize::from(self.name) % NAMES.len()],
            acked.join(","),
            comma = if fields.is_empty() { "" } else { "," },
        )
    }
}

#[derive(Debug, Arbitrary)]
enum Input {
    Bytes(Vec<u8>),
    Events { header: u8, events: Vec<Event>, torn: u8 },
}

fn file(input: Input) -> Vec<u8> {
    match input {
        Input::Bytes(bytes) => bytes,
        Input::Events { header, events, torn } => {
            let header = HEADERS[usize::from(header) % HEADERS.len()].to_owned();
            let records = events.iter().take(100).map(Event::json);
            let mut text: String =
                std::iter::once(header).chain(records).map(|record| format!("\u{1e}{record}\n")).collect();
            // A file may end anywhere.
            text.truncate(text.len() - usize::from(torn).min(text.len()));
            text.into_bytes()
        }
    }
}

fuzz_target!(|input: Input| {
    let bytes = file(input);
    if let Ok(traces) = fulmar_qlog::read(&bytes) {
        let page = fulmar_qlog::page("fuzz", vec![("file".to_owned(), traces)]);
        assert!(page.html().len() < 16 << 20, "a small file makes a small page");
    }
});
