//! The times of events.

use fulmar_base::Instant;
use serde_json::Value;

/// The longest time that is believed: a century in milliseconds.
const MILLIS_MAX: f64 = 3.2e12;

/// How the times of a trace are to be read. The first event is at the beginning.
#[derive(Debug)]
pub(super) struct Clock {
    /// Whether each time counts from the event before.
    delta: bool,
    /// Milliseconds per unit.
    unit: f64,
    first: Option<f64>,
    last: f64,
}

impl Clock {
    pub(super) fn of(trace: &Value) -> Self {
        let format = trace.pointer("/common_fields/time_format").and_then(Value::as_str);
        let columns = trace.get("event_fields").and_then(Value::as_array).into_iter().flatten();
        let by_delta = columns.filter_map(Value::as_str).any(|column| column == "delta_time");
        let units = trace.pointer("/configuration/time_units").and_then(Value::as_str);
        Self {
            delta: by_delta || matches!(format, Some("delta" | "relative_to_previous_event")),
            unit: if units == Some("us") { 1e-3 } else { 1.0 },
            first: None,
            last: 0.0,
        }
    }

    /// Milliseconds per unit of time, for round-trip times, too (before qlog 0.3).
    pub(super) fn unit(&self) -> f64 {
        self.unit
    }

    /// When an event was; `None` if that is no time.
    pub(super) fn at(&mut self, time: &Value) -> Option<Instant> {
        let number = time.as_f64().or_else(|| time.as_str()?.parse().ok())?;
        let mut millis = number * self.unit;
        if self.delta {
            millis += self.last;
        }
        if !(-MILLIS_MAX..=MILLIS_MAX).contains(&millis) {
            return None;
        }
        self.last = millis;
        // Where times count from each event to the next, the first counts from the beginning.
        let first = *self.first.get_or_insert(if self.delta { 0.0 } else { millis });
        Some(Instant::from_nanos(((millis - first).max(0.0) * 1e6) as u64))
    }
}
