//! qlog files of any stack, as courses in time.
//!
//! Files are of others and may be anything: what is not understood is counted and passed over, numbers are taken where
//! they make sense, and nothing is kept but what is drawn.

use fulmar_plot::{Lane, Page, Run};
use serde_json::Value;
use thiserror::Error;

mod event;
mod requests;
mod time;
mod torn;

use event::Events;
use time::Clock;

/// The most traces of a file that are read.
const TRACES_MAX: usize = 64;

/// The most connections of a trace that are told apart; events of others are passed over.
const GROUPS_MAX: usize = 64;

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QlogError {
    /// It is no JSON.
    #[error("line {line}: {what}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// It is JSON, but says nothing of a connection.
    #[error("there is no trace with events of QUIC in it")]
    NoTrace,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Trace {
    /// Its title, or its place in the file; its group, where a trace of the file tells of several connections.
    pub title: String,
    /// What happened. Where there are several paths, the figures are those of the first.
    pub lane: Lane,
    /// What happened on each path beside the first.
    pub paths: Vec<Lane>,
    /// Figures by name.
    pub facts: Vec<(String, String)>,
    /// Events that were taken.
    pub events: usize,
    /// Events that were passed over.
    pub passed_over: usize,
}

/// Reads a file: JSON, JSON text sequences (RFC 7464) or one JSON text per line.
///
/// # Errors
/// See [`QlogError`].
pub fn read(bytes: &[u8]) -> Result<Vec<Trace>, QlogError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let traces = match serde_json::from_slice::<Value>(bytes) {
        Ok(file) => contained(&file),
        Err(_) => sequence(bytes).or_else(|error| salvaged(bytes).ok_or(error))?,
    };
    let is_known = |trace: &Trace| {
        let Trace { lane, paths, .. } = trace;
        !lane.timeline.is_empty() || !lane.requests.is_empty() || !paths.is_empty()
    };
    let known: Vec<Trace> = traces.into_iter().filter(is_known).collect();
    if known.is_empty() { Err(QlogError::NoTrace) } else { Ok(known) }
}

/// The page of what some files tell, each with a name.
pub fn page(title: &str, files: Vec<(String, Vec<Trace>)>) -> Page {
    let mut runs = Vec::new();
    for (name, traces) in files {
        let several = traces.len() > 1;
        for trace in traces {
            let name = if several { format!("{name}: {}", trace.title) } else { name.clone() };
            let lanes = std::iter::once(trace.lane).chain(trace.paths).collect();
            runs.push(Run { name, facts: trace.facts, lanes, ..Run::default() });
        }
    }
    Page { title: title.to_owned(), subtitle: "from qlog".to_owned(), runs }
}

/// A file that is one JSON text.
fn contained(file: &Value) -> Vec<Trace> {
    let traces = file.get("traces").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let traces = traces.iter().take(TRACES_MAX).enumerate().flat_map(|(number, trace)| {
        let mut building = Building::new(trace, number);
        for event in trace.get("events").and_then(Value::as_array).into_iter().flatten() {
            building.take(event);
        }
        building.finish()
    });
    traces.collect()
}

/// A file of one JSON text after another: the first describes the trace, the others are its events.
fn sequence(bytes: &[u8]) -> Result<Vec<Trace>, QlogError> {
    let mut building: Option<Building> = None;
    let mut texts = texts(bytes).peekable();
    while let Some((line, text)) = texts.next() {
        let value: Value = match serde_json::from_slice(text) {
            Ok(value) => value,
            // Whoever writes may have been interrupted.
            Err(_) if texts.peek().is_none() && building.is_some() => break,
            Err(error) => return Err(QlogError::Json { line, what: error.to_string() }),
        };
        match &mut building {
            Some(building) => building.take(&value),
            None => building = Some(Building::new(value.get("trace").unwrap_or(&value), 0)),
        }
    }
    Ok(building.into_iter().flat_map(Building::finish).collect())
}

/// What can be read of one JSON text that is broken.
fn salvaged(bytes: &[u8]) -> Option<Vec<Trace>> {
    let text = String::from_utf8_lossy(bytes);
    let (trace, events) = torn::salvage(&text)?;
    let mut building = Building::new(&trace, 0);
    for event in events {
        match event {
            Some(event) => building.take(&event),
            None => building.pass_over(),
        }
    }
    Some(building.finish())
}

/// The texts of a sequence with the lines on which they begin: after each record separator, or one per line.
fn texts(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let separator = if bytes.contains(&0x1e) { 0x1e } else { b'\n' };
    let mut line = 1;
    bytes
        .split(move |byte| *byte == separator)
        .map(move |text| {
            let at = line;
            line += text.iter().filter(|byte| **byte == b'\n').count() + usize::from(separator == b'\n');
            (at, text)
        })
        .filter(|(_, text)| !text.trim_ascii().is_empty())
}

/// A trace that is being read.
struct Building {
    title: String,
    side: String,
    clock: Clock,
    /// The names of the columns, where events are arrays (before qlog 0.3).
    fields: Vec<String>,
    /// What the connections did, in the order of their first events. The first is that of events which name none.
    groups: Vec<Group>,
}

/// The events of one connection: some stacks write those of all connections of an endpoint to one trace.
struct Group {
    id: String,
    events: Events,
    taken: usize,
    passed_over: usize,
}

impl Building {
    fn new(trace: &Value, number: usize) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let side = trace.pointer("/vantage_point/type").and_then(text);
        let name = trace.pointer("/vantage_point/name").and_then(text);
        let title = trace.get("title").and_then(text).filter(|title| !title.is_empty());
        let fields = trace.get("event_fields").and_then(Value::as_array).into_iter().flatten();
        let common = trace.pointer("/common_fields/group_id").and_then(text);
        let mut building = Self {
            title: title.or(name).or(side.clone()).unwrap_or_else(|| format!("trace {}", number + 1)),
            side: side.unwrap_or_else(|| "connection".to_owned()),
            clock: Clock::of(trace),
            fields: fields.filter_map(|field| Some(field.as_str()?.to_ascii_lowercase())).collect(),
            groups: Vec::new(),
        };
        building.groups.push(building.group(common.unwrap_or_default()));
        building
    }

    fn group(&self, id: String) -> Group {
        let events = Events::new(self.side.clone(), self.clock.unit());
        Group { id, events, taken: 0, passed_over: 0 }
    }

    fn take(&mut self, event: &Value) {
        if self.try_take(event).is_none() {
            self.pass_over();
        }
    }

    fn pass_over(&mut self) {
        self.groups[0].passed_over += 1;
    }

    fn try_take(&mut self, event: &Value) -> Option<()> {
        let named = |name: &str| event.get(name);
        let column = |names: &[&str]| {
            let place = self.fields.iter().position(|field| names.contains(&field.as_str()))?;
            event.get(place)
        };
        let (time, name, data, group, tuple) = match event {
            Value::Array(_) => (
                column(&["relative_time", "time", "delta_time"]),
                column(&["event", "event_type", "name"]),
                column(&["data"]),
                column(&["group_id"]),
                column(&["path_id"]),
            ),
            _ => (
                named("time"),
                named("name"),
                named("data"),
                named("group_id"),
                named("tuple").or_else(|| named("path")),
            ),
        };
        let at = self.clock.at(time?)?;
        let name = name?.as_str()?;
        // `transport:packet_sent`, `quic:packet_sent`, or the name alone.
        let name = name.rsplit(':').next()?;
        let group = self.group_of(group.and_then(Value::as_str))?;
        group.events.take(at, name, data?, tuple)?;
        group.taken += 1;
        Some(())
    }

    /// The connection of an event that names `id`, or none; `None` for one too many.
    fn group_of(&mut self, id: Option<&str>) -> Option<&mut Group> {
        let place = id.map_or(Some(0), |id| self.groups.iter().position(|group| group.id == id));
        let place = match (place, id) {
            (Some(place), _) => place,
            (None, Some(id)) if self.groups.len() < GROUPS_MAX => {
                self.groups.push(self.group(id.to_owned()));
                self.groups.len() - 1
            }
            (None, _) => return None,
        };
        self.groups.get_mut(place)
    }

    /// A trace for each connection of which something is known. Where there are several, their names are what tells them apart.
    fn finish(self) -> Vec<Trace> {
        let several = self.groups.iter().filter(|group| group.taken > 0).count() > 1;
        let groups = self.groups.into_iter().enumerate();
        let known = groups.filter(|(number, group)| *number == 0 || group.taken > 0);
        let traces = known.map(|(_, group)| {
            let (lane, paths, facts) = group.events.finish();
            let title = if several { group.id } else { self.title.clone() };
            Trace { title, lane, paths, facts, events: group.taken, passed_over: group.passed_over }
        });
        traces.collect()
    }
}

#[cfg(test)]
mod tests;
