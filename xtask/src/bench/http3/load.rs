//! One run of the load generator, and what it tells.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::bench::results::Latency;

/// The report of `shb --json`, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    duration_seconds: f64,
    requests: Requests,
    status_codes: BTreeMap<String, u64>,
    latency_seconds: Option<Latencies>,
}

#[derive(Debug, Deserialize)]
struct Requests {
    ok: u64,
    errors: u64,
}

#[derive(Debug, Deserialize)]
struct Latencies {
    max: f64,
    percentiles: BTreeMap<String, f64>,
}

/// What a run without any error came to.
#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) seconds: f64,
    pub(super) requests: u64,
    pub(super) latency: Option<Latency>,
}

impl Report {
    /// The load, or why the run does not count.
    pub(super) fn load(&self) -> Result<Load, String> {
        let Requests { ok, errors } = self.requests;
        if errors > 0 || ok == 0 {
            return Err(format!("{errors} of {} requests failed", ok + errors));
        }
        if let Some((code, count)) = self.status_codes.iter().find(|(code, _)| *code != "200") {
            return Err(format!("{count} responses had the status {code}"));
        }
        let latency = self.latency_seconds.as_ref().and_then(Latencies::in_microseconds);
        Ok(Load { seconds: self.duration_seconds, requests: ok, latency })
    }
}

impl Latencies {
    fn in_microseconds(&self) -> Option<Latency> {
        let percentile = |name| Some(self.percentiles.get(name)? * 1e6);
        Some(Latency { p50: percentile("p50")?, p99: percentile("p99")?, max: self.max * 1e6 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ok: u64, errors: u64, code: &str) -> Report {
        let text = format!(
            r#"{{"durationSeconds": 2.0, "requests": {{"total": 9, "ok": {ok}, "errors": {errors}, "connectErrors": 0}},
                "statusCodes": {{"{code}": {ok}}},
                "latencySeconds": {{"min": 0.0, "mean": 0.1, "max": 0.3, "percentiles": {{"p50": 0.001, "p99": 0.002}}}}}}"#
        );
        serde_json::from_str(&text).expect("a report")
    }

    #[test]
    fn a_report_gives_requests_seconds_and_microseconds() {
        let load = report(8, 0, "200").load().expect("all went well");
        assert_eq!((load.requests, load.seconds), (8, 2.0));
        let latency = load.latency.expect("there are percentiles");
        assert_eq!((latency.p50, latency.p99, latency.max), (1_000.0, 2_000.0, 300_000.0));
    }

    #[test]
    fn a_run_with_errors_or_other_responses_does_not_count() {
        assert_eq!(report(8, 1, "200").load().unwrap_err(), "1 of 9 requests failed");
        assert_eq!(report(8, 0, "404").load().unwrap_err(), "8 responses had the status 404");
        assert!(report(0, 0, "200").load().is_err());
    }
}
