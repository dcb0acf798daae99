//! Spans of time, as people write and read them.

use std::fmt;
use std::time::Duration;

/// Parses a span of time: `10s`, `500ms`, `20us`, `2m`, `1h`, `1.5s` or plain seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let malformed = || format!("`{text}` is no time: write for example 10s, 500ms or 2m");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(malformed()),
    };
    let number: f64 = number.parse().map_err(|_| malformed())?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| malformed())
}

/// A span of time to print, in the unit that suits it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_secs_f64() * 1e6;
        match micros {
            ..1e3 => write!(f, "{micros:.0} µs"),
            ..1e6 => write!(f, "{:.2} ms", micros / 1e3),
            _ => write!(f, "{:.2} s", micros / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, micros) in [
            ("10s", 10_000_000),
            ("500ms", 500_000),
            ("20us", 20),
            ("20µs", 20),
            ("2m", 120_000_000),
            ("1.5s", 1_500_000),
            ("3", 3_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "s", "-1s", "1d", "1.2.3s", "10 lightyears", "99999999999999999999999h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_choose_their_unit() {
        for (micros, text) in [(12, "12 µs"), (1_234, "1.23 ms"), (2_500_000, "2.50 s")] {
            assert_eq!(Span(Duration::from_micros(micros)).to_string(), text);
        }
    }
}
