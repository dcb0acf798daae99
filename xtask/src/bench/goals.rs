//! What Fulmar is to reach, and whether it did.

use super::plan::Stack;
use super::results::{Figures, Results, Row};

/// A goal: what it says, and the figure that must be at least or at most a number.
pub(crate) struct Goal {
    pub(crate) text: String,
    case: String,
    figure: Figure,
    bound: Bound,
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Clone)]
enum Figure {
    /// The main figure as a multiple of another stack's.
    Times(Stack),
    /// The main figure as a multiple of that of another case.
    TimesCase(&'static str),
    /// CPU of both ends as a multiple of another stack's.
    Cpu(Stack),
    /// CPU of the server for each thing done, as a multiple of another stack's.
    ServerCpu(Stack),
    ServerMicros,
    ClientMicros,
    TailToMedian,
    Spread,
    Main,
}

/// What became of a goal.
pub(crate) struct Verdict {
    /// `None`: not measured in this run.
    pub(crate) figure: Option<f64>,
    pub(crate) met: Option<bool>,
}

fn goal(text: &str, case: &str, figure: Figure, bound: Bound) -> Goal {
    Goal { text: format!("{case}: {text}"), case: case.to_owned(), figure, bound }
}

/// All goals of this benchmark.
pub(crate) fn goals() -> Vec<Goal> {
    use Bound::{AtLeast, AtMost};
    use Figure::{ClientMicros, Cpu, Main, ServerMicros, Spread, TailToMedian, Times, TimesCase};
    use Stack::{Limit, Quinn, S2n};
    let mut goals = Vec::new();
    for direction in ["download", "upload"] {
        let runtimes = ["current-main", "current-tasks", "multi-main", "multi-tasks"];
        let names = runtimes.iter().map(|runtime| format!("runtimes-{direction}-{runtime}"));
        for case in names.chain([direction.to_owned()]) {
            // The limit is measured downwards alone: it knows no direction.
            if direction == "download" {
                goals.push(goal("share of the limit, at least 0.70", &case, Times(Limit), AtLeast(0.70)));
            }
            goals.push(goal("times s2n-quic, at least 1.7", &case, Times(S2n), AtLeast(1.7)));
            goals.push(goal("times quinn, at least 2", &case, Times(Quinn), AtLeast(2.0)));
            goals.push(goal("CPU of both sides, of s2n-quic's at most 0.55", &case, Cpu(S2n), AtMost(0.55)));
        }
    }
    for (case, figure, bound, text) in [
        ("streams-download", TimesCase("download"), AtLeast(0.95), "of one stream, at least 0.95"),
        ("long-download", TimesCase("download"), AtLeast(0.97), "of 1 GB, at least 0.97"),
        ("controllers-bbr", TimesCase("controllers-cubic"), AtLeast(0.97), "of cubic, at least 0.97"),
        ("chacha-download", Times(Quinn), AtLeast(1.5), "times quinn, at least 1.5"),
        ("controllers-newreno", Spread, AtMost(0.15), "spread, at most 0.15"),
        ("controllers-cubic", Spread, AtMost(0.15), "spread, at most 0.15"),
        ("controllers-bbr", Spread, AtMost(0.15), "spread, at most 0.15"),
        ("controllers-prague", Spread, AtMost(0.15), "spread, at most 0.15"),
        ("jumbo-download", Times(S2n), AtLeast(1.2), "times s2n-quic, at least 1.2"),
        ("requests-100", Times(Quinn), AtLeast(1.5), "times quinn, at least 1.5"),
        ("requests-100", ServerMicros, AtMost(1.5), "us of the server, at most 1.5"),
        ("requests-100", ClientMicros, AtMost(1.5), "us of the client, at most 1.5"),
        ("requests-100", TailToMedian, AtMost(2.0), "p99 as a multiple of p50, at most 2"),
        ("requests-16x100", Times(Quinn), AtLeast(1.5), "times quinn, at least 1.5"),
        ("latency", Times(Quinn), AtLeast(1.2), "times quinn, at least 1.2"),
        ("handshakes-parallel", Times(S2n), AtLeast(1.3), "times s2n-quic, at least 1.3"),
        ("handshakes-parallel", ServerMicros, AtMost(120.0), "us of the server, at most 120"),
        ("memory-idle", Main, AtMost(6.0), "KB of the server, at most 6"),
        ("in-process", Main, AtLeast(12.0), "Gbit/s, at least 12 (1.5 GB/s)"),
        ("in-process", Times(Quinn), AtLeast(2.0), "times quinn-proto, at least 2"),
    ] {
        goals.push(goal(text, case, figure, bound));
    }
    goals.extend(http3_goals());
    goals
}

fn http3_goals() -> Vec<Goal> {
    use Bound::{AtLeast, AtMost};
    use Figure::{ServerCpu, ServerMicros, TimesCase};
    let mut goals = Vec::new();
    for case in ["http3-13b", "http3-1kb", "http3-20kb", "http3-128kb", "http3-each-1kb", "http3-1gb"] {
        for (other, most, text) in [
            (Stack::Nginx, 1.0, "CPU of the server, of nginx's at most 1"),
            (Stack::H3Quinn, 0.5, "CPU of the server, of h3-on-quinn's at most 0.5"),
            (Stack::Http2, 1.0, "CPU of the server, of our HTTP/2's at most 1"),
        ] {
            goals.push(goal(text, case, ServerCpu(other), AtMost(most)));
        }
    }
    // 131,072 bytes at 1.5 s/GB.
    let text = "us of the server, at most 196.6 (1.5 s/GB)";
    goals.push(goal(text, "http3-128kb", ServerMicros, AtMost(196.6)));
    goals.push(goal("of the raw stream, at least 0.95", "http3-get", TimesCase("http3-raw"), AtLeast(0.95)));
    goals
}

impl Goal {
    pub(crate) fn judge(&self, results: &Results) -> Verdict {
        let figure = results.row(&self.case).and_then(|row| self.figure.of(row, results));
        let met = figure.map(|figure| match self.bound {
            Bound::AtLeast(bound) => figure >= bound,
            Bound::AtMost(bound) => figure <= bound,
        });
        Verdict { figure, met }
    }
}

impl Figure {
    fn of(&self, row: &Row, results: &Results) -> Option<f64> {
        let ours = Stack::Fulmar;
        match self {
            Self::Times(other) => Some(row.main(ours)? / row.main(*other)?),
            Self::TimesCase(case) => Some(row.main(ours)? / results.row(case)?.main(ours)?),
            Self::Cpu(other) => Some(row.median(ours, both)? / row.median(*other, both)?),
            Self::ServerCpu(other) => row.server_cpu_of(*other),
            Self::ServerMicros => row.median(ours, Figures::server_micros),
            Self::ClientMicros => row.median(ours, |figures| Some(figures.client_micros())),
            Self::TailToMedian => row
                .median(ours, |figures| figures.latency_us.as_ref().map(|latency| latency.p99 / latency.p50)),
            Self::Spread => row.spread(ours),
            Self::Main => row.main(ours),
        }
    }
}

/// CPU of both ends for each thing done.
pub(crate) fn both(figures: &Figures) -> Option<f64> {
    Some(figures.server_micros()? + figures.client_micros())
}
