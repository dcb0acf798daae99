//! The page of courses in time.

use fulmar_base::Instant;
use serde::Serialize;

use crate::html;
use crate::series::Points;
use crate::timeline::Timeline;

const SCRIPT: &str = include_str!("../assets/page.js");

/// About so many points are in a page, all series together, so that it stays at a few megabytes.
const POINTS_TARGET: usize = 400_000;
/// Columns into which a series is thinned out, at least and at most.
const COLUMNS: std::ops::RangeInclusive<u64> = 300..=4_000;

/// What a page shows.
#[derive(Debug, Default)]
pub struct Page {
    /// The heading.
    pub title: String,
    /// A sentence below it.
    pub subtitle: String,
    /// The runs, which are drawn over each other.
    pub runs: Vec<Run>,
}

/// A run of a scenario, or a file.
#[derive(Debug, Default)]
pub struct Run {
    /// What tells it from the others.
    pub name: String,
    /// Figures by name.
    pub facts: Vec<(String, String)>,
    /// Its ends of connections.
    pub lanes: Vec<Lane>,
    /// What the schedule of its link did, and when.
    pub events: Vec<Event>,
    /// The text of its scenario; empty if there is none.
    pub scenario: String,
    /// What was changed of that, each as `key=value`.
    pub settings: Vec<String>,
}

/// A change of the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When it begins.
    pub start: Instant,
    /// When it ends; `start` if it is for good.
    pub end: Instant,
    /// What it is.
    pub what: String,
}

/// One end of a connection.
#[derive(Debug, Default)]
pub struct Lane {
    /// The end, as in `server`.
    pub name: String,
    /// What it did.
    pub timeline: Timeline,
    /// Bytes in the queue of the bottleneck into which it sends.
    pub queue: Points,
    /// Where in that queue packets were dropped.
    pub drops: Points,
    /// Where packets were marked with ECN-CE.
    pub marks: Points,
    /// The requests that it made or answered, in the order in which they began.
    pub requests: Vec<Request>,
}

/// A request of HTTP, as one end saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its stream.
    pub stream: u64,
    /// Its method.
    pub method: String,
    /// What it asks for.
    pub path: String,
    /// The status of the response, the last one if there are informational ones; empty if there is none.
    pub status: String,
    /// When its fields were there.
    pub start: Instant,
    /// When those of the response were.
    pub answered: Option<Instant>,
    /// When the last frame began.
    pub end: Instant,
    /// The body of the request, in bytes.
    pub sent: u64,
    /// That of the response.
    pub received: u64,
}

#[derive(Serialize)]
struct PageData<'a> {
    title: &'a str,
    subtitle: &'a str,
    runs: Vec<RunData<'a>>,
}

#[derive(Serialize)]
struct RunData<'a> {
    name: &'a str,
    facts: &'a [(String, String)],
    lanes: Vec<LaneData<'a>>,
    /// Microseconds of the beginning and the end, and what it is.
    events: Vec<(u64, u64, &'a str)>,
    scenario: &'a str,
    settings: &'a [String],
}

#[derive(Serialize)]
struct LaneData<'a> {
    name: &'a str,
    bytes: u64,
    series: Vec<SeriesData>,
    /// Microseconds and the name of each state of the controller.
    phases: Vec<(u64, &'a str)>,
    requests: Vec<RequestData<'a>>,
}

/// Times are microseconds.
#[derive(Serialize)]
struct RequestData<'a> {
    stream: u64,
    method: &'a str,
    path: &'a str,
    status: &'a str,
    start: u64,
    answered: Option<u64>,
    end: u64,
    sent: u64,
    received: u64,
}

/// A series: times in microseconds and values, each as the difference from the one before.
#[derive(Serialize)]
struct SeriesData {
    key: &'static str,
    t: Vec<i64>,
    v: Vec<i64>,
}

/// From what is recorded to what is drawn.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    /// Nanoseconds to microseconds.
    Time,
    /// Bytes per second to bits per second.
    Rate,
}

impl Unit {
    fn convert(self, value: u64) -> i64 {
        let converted = match self {
            Self::Bytes => value,
            Self::Time => value / 1_000,
            Self::Rate => value.saturating_mul(8),
        };
        // Numbers in the page are doubles, and exact up to here.
        converted.min((1 << 53) - 1) as i64
    }
}

impl Page {
    /// The page as a file of its own.
    pub fn html(&self) -> String {
        let data = self.data();
        html::page(&self.title, &data, SCRIPT)
    }

    fn data(&self) -> PageData<'_> {
        let lanes = || self.runs.iter().flat_map(|run| &run.lanes);
        let series: usize =
            lanes().map(|lane| lane.series().iter().filter(|(.., s)| !s.is_empty()).count()).sum();
        let columns = (POINTS_TARGET / 4 / series.max(1)) as u64;
        let columns = columns.clamp(*COLUMNS.start(), *COLUMNS.end());
        let runs = self.runs.iter().map(|run| run.data(columns)).collect();
        PageData { title: &self.title, subtitle: &self.subtitle, runs }
    }
}

impl Run {
    fn data(&self, columns: u64) -> RunData<'_> {
        let end = self.lanes.iter().filter_map(Lane::end).max().unwrap_or(0);
        let lanes = self.lanes.iter().map(|lane| LaneData {
            name: &lane.name,
            bytes: lane.timeline.bytes(),
            series: lane.series_data(columns, end),
            phases: lane.phases(),
            requests: lane.requests.iter().map(Request::data).collect(),
        });
        let micros = |at: Instant| at.as_nanos() / 1_000;
        let events = self.events.iter();
        let events = events.map(|event| (micros(event.start), micros(event.end), event.what.as_str()));
        RunData {
            name: &self.name,
            facts: &self.facts,
            lanes: lanes.collect(),
            events: events.collect(),
            scenario: &self.scenario,
            settings: &self.settings,
        }
    }
}

impl Request {
    fn data(&self) -> RequestData<'_> {
        let micros = |at: Instant| at.as_nanos() / 1_000;
        RequestData {
            stream: self.stream,
            method: &self.method,
            path: &self.path,
            status: &self.status,
            start: micros(self.start),
            answered: self.answered.map(micros),
            end: micros(self.end),
            sent: self.sent,
            received: self.received,
        }
    }
}

impl Lane {
    fn series(&self) -> [(&'static str, Unit, &Points); 18] {
        let Self { timeline, queue, drops, marks, .. } = self;
        [
            ("sent", Unit::Bytes, &timeline.sent),
            ("resent", Unit::Bytes, &timeline.resent),
            ("acked", Unit::Bytes, &timeline.acked),
            ("lost", Unit::Bytes, &timeline.lost),
            ("spurious", Unit::Bytes, &timeline.spurious),
            ("window", Unit::Bytes, &timeline.window),
            ("in_flight", Unit::Bytes, &timeline.in_flight),
            ("ssthresh", Unit::Bytes, &timeline.ssthresh),
            ("probe_timeouts", Unit::Bytes, &timeline.probe_timeouts),
            ("rtt_latest", Unit::Time, &timeline.rtt_latest),
            ("rtt_smoothed", Unit::Time, &timeline.rtt_smoothed),
            ("rtt_min", Unit::Time, &timeline.rtt_min),
            ("pacing", Unit::Rate, &timeline.pacing),
            ("delivery", Unit::Rate, &timeline.delivery),
            ("mtu", Unit::Bytes, &timeline.mtu),
            ("queue", Unit::Bytes, queue),
            ("drops", Unit::Bytes, drops),
            ("marks", Unit::Bytes, marks),
        ]
    }

    /// When its last point is, in nanoseconds.
    fn end(&self) -> Option<u64> {
        self.series().iter().filter_map(|(.., points)| Some(points.as_slice().last()?.at)).max()
    }

    fn series_data(&self, columns: u64, end: u64) -> Vec<SeriesData> {
        let all = self.series();
        let some = all.into_iter().filter(|(.., points)| !points.is_empty());
        some.map(|(key, unit, points)| {
            let thinned = points.thinned(columns, 0, end);
            let t = differences(thinned.iter().map(|point| Unit::Time.convert(point.at)));
            let v = differences(thinned.iter().map(|point| unit.convert(point.value)));
            SeriesData { key, t, v }
        })
        .collect()
    }

    fn phases(&self) -> Vec<(u64, &str)> {
        let phases = self.timeline.phases.iter();
        phases.map(|(at, name)| (at.as_nanos() / 1_000, name.as_str())).collect()
    }
}

fn differences(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut last = 0;
    values.map(|value| value - std::mem::replace(&mut last, value)).collect()
}

#[cfg(test)]
mod tests;
