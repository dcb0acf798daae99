//! Traces of links as Mahimahi records them, as schedules of scenarios.
//!
//! Each line of such a trace is a time in milliseconds at which the link lets a packet of 1,500 bytes through; several lines
//! with the same time are several packets. At its end the trace begins again. (R. Netravali et al., "Mahimahi: Accurate
//! Record-and-Replay for HTTP", USENIX ATC 2015; its manual page mm-link.)

use std::fmt::Write;

use super::ScenarioError;

/// What a packet of 1,500 bytes carries behind the headers of IPv4 and UDP: rates of scenarios are of that.
const PAYLOAD_BYTES: f64 = 1_472.0;
/// The most entries that a schedule is made of.
const ENTRIES_MAX: u64 = 100_000;

/// The entries `[[schedule]]` that change the rate of a `direction` (`up`, `down` or `both`) as the trace does, for so long:
/// the mean rate of each `step_ms`. Where the rate stays the same there is no entry.
///
/// # Errors
/// The first line of the trace that is no time or comes before the one above it, with its place; or too many steps.
pub fn schedule_of_trace(
    name: &str,
    trace: &str,
    direction: &str,
    step_ms: u64,
    duration_ms: u64,
) -> Result<String, ScenarioError> {
    let times = times(name, trace)?;
    let step_ms = step_ms.max(1);
    if duration_ms / step_ms > ENTRIES_MAX {
        return Err(ScenarioError::new(name, format!("more than {ENTRIES_MAX} steps: take longer ones")));
    }
    // A packet at the time 0 is one of the end before.
    let period = times.last().copied().unwrap_or_default().max(1);
    let count_until = |at: u64| {
        let within = times.partition_point(|time| *time <= at % period) as u64;
        at / period * times.len() as u64 + within
    };
    let (mut text, mut last) = (String::new(), None);
    let mut at = 0;
    while at < duration_ms {
        let end = at + step_ms;
        let packets = count_until(end - 1) - at.checked_sub(1).map_or(0, count_until);
        let rate = packets as f64 * PAYLOAD_BYTES * 8.0 / (step_ms as f64 * 1e3);
        if last.replace(rate) != Some(rate) {
            let seconds = at as f64 / 1e3;
            let _ = write!(
                text,
                "[[schedule]]\nat_s = {seconds}\ndirection = \"{direction}\"\nset = {{ rate_mbps = {rate:.3} }}\n\n"
            );
        }
        at = end;
    }
    Ok(text)
}

/// The times in milliseconds, ascending.
fn times(name: &str, trace: &str) -> Result<Vec<u64>, ScenarioError> {
    let mut times: Vec<u64> = Vec::new();
    for (number, line) in trace.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: &str| ScenarioError::new(name, format!("line {}: {what}", number + 1));
        let time = line.trim().parse().map_err(|_| wrong("a time in milliseconds is expected"))?;
        if times.last().is_some_and(|last| *last > time) {
            return Err(wrong("this time is before the one above it"));
        }
        times.push(time);
    }
    match times.last() {
        Some(last) if *last > 0 => Ok(times),
        _ => Err(ScenarioError::new(name, "a trace has at least one time after 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn rates(trace: &str, step_ms: u64, duration_ms: u64) -> Vec<(f64, f64)> {
        let text = schedule_of_trace("t", trace, "down", step_ms, duration_ms).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let entries = table["schedule"].as_array().unwrap();
        let number = |value: &toml::Value| {
            value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64)).unwrap()
        };
        entries.iter().map(|entry| (number(&entry["at_s"]), number(&entry["set"]["rate_mbps"]))).collect()
    }

    #[test]
    fn packets_of_a_step_are_its_rate_and_the_trace_begins_again() {
        // One packet in each of the first five milliseconds, then none, and one at the end.
        let trace = "1\n2\n3\n4\n5\n10\n";
        // 1,472 bytes in a millisecond are 11.776 Mbit/s.
        assert_eq!(rates(trace, 5, 20), [(0.0, 9.421), (0.005, 2.355), (0.01, 11.776), (0.015, 2.355)]);
    }

    #[test]
    fn a_link_carries_what_its_trace_says() {
        let trace: String = (1..=1_000).step_by(2).map(|time| format!("{time}\n")).collect();
        let schedule = schedule_of_trace("t", &trace, "down", 100, 20_000).unwrap();
        let head = "title = \"x\"\n[link]\nrate_mbps = 100\ndelay_ms = 10\nqueue_ms = 100\n[[connection]]\ndownload_bytes = 2_000_000\n";
        let figures = Scenario::parse("s", &format!("{head}{schedule}")).unwrap().run(None, 1).unwrap();
        // A packet in two milliseconds are 5.9 Mbit/s, of which headers take a little.
        let goodput = figures.metrics["goodput_mbps"];
        assert!((5.2..5.9).contains(&goodput), "{goodput}");
    }

    #[test]
    fn what_is_no_trace_is_told_with_its_line() {
        for (trace, expected) in [
            ("1\nx\n", "t: line 2: a time in milliseconds is expected"),
            ("5\n4\n", "t: line 2: this time is before the one above it"),
            ("", "t: a trace has at least one time after 0"),
        ] {
            let error = schedule_of_trace("t", trace, "up", 100, 1_000).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
