//! What happens in the course of a run because the scenario says so, in words.

use fulmar_base::Instant;

use super::Scenario;
use super::link::ScheduleSpec;

/// The most that are told; a schedule may repeat a change without end.
const EVENTS_MAX: usize = 500;

/// A change of the link or of the client's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioEvent {
    /// When it begins.
    pub start: Instant,
    /// When it ends; `start` if it is for good.
    pub end: Instant,
    /// What it is, as the file says it.
    pub what: String,
}

impl Scenario {
    /// What happens, by `[[schedule]]` and `[[shift]]`; of long series only the first ones.
    pub fn events(&self) -> Vec<ScenarioEvent> {
        let table = self.table().unwrap_or_default();
        let entries =
            |name: &str| table.get(name).and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let mut events = Vec::new();
        events.extend(of_schedule("", &self.file.schedule, &entries("schedule")));
        let tables = entries("path");
        for (number, path) in self.paths() {
            let schedule = tables.get(number).and_then(|table| table.get("schedule")?.as_array());
            let prefix = format!("{}: ", path.name());
            events.extend(of_schedule(&prefix, &path.schedule, schedule.map_or(&[], Vec::as_slice)));
        }
        for (spec, entry) in self.file.shift.iter().zip(entries("shift")) {
            let (start, what) =
                (Instant::ZERO + spec.at(), format!("the client: {}", words(&entry, &["kind"])));
            events.push(ScenarioEvent { start, end: start, what });
        }
        events.sort_by_key(|event| event.start);
        events.truncate(EVENTS_MAX);
        events
    }
}

/// What a schedule does; `entries` are its tables as they are written.
fn of_schedule(prefix: &str, schedule: &[ScheduleSpec], entries: &[toml::Value]) -> Vec<ScenarioEvent> {
    let mut events = Vec::new();
    for (spec, entry) in schedule.iter().zip(entries) {
        let what = format!("{prefix}{}", words(entry, &["direction", "set", "suspend"]));
        let times = spec.times().take(EVENTS_MAX);
        events.extend(times.map(|(start, end)| ScenarioEvent { start, end, what: what.clone() }));
    }
    events
}

/// The values of these keys, as they are written.
fn words(entry: &toml::Value, keys: &[&str]) -> String {
    let values = keys.iter().filter_map(|key| Some((*key, entry.get(key)?)));
    let told = values.map(|(key, value)| match value {
        toml::Value::String(text) => text.clone(),
        value => format!("{key} = {value}"),
    });
    told.collect::<Vec<_>>().join(", ")
}
