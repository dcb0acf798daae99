//! Percentiles of the ratios to the ideal, by controller and class of links.

use serde::Serialize;

use super::link::{DrawnJitter, DrawnLink, DrawnLoss};
use super::{Exploration, Outcome};
use crate::scenario::ControllerName;

/// The ratios of a controller on the links of a class. A percentile is a ratio that was measured: the smallest that
/// is not exceeded by that share of the runs. It is `None` where that run went wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassSummary {
    /// The controller.
    pub controller: ControllerName,
    /// The class: `all`, or a property of its links.
    pub class: &'static str,
    /// How many links it has.
    pub links: usize,
    /// The ratio that half of them do not exceed.
    pub median: Option<f64>,
    /// The same of 90 %.
    pub p90: Option<f64>,
    /// The same of 95 %.
    pub p95: Option<f64>,
    /// The same of 99 %.
    pub p99: Option<f64>,
    /// The largest ratio.
    pub worst: Option<f64>,
    /// Runs that were given up because they took too long; their ratios are lower bounds.
    pub given_up: usize,
    /// Runs that went wrong.
    pub failed: usize,
}

/// Which links belong to a class.
type Member = fn(&DrawnLink) -> bool;

const CLASSES: [(&str, Member); 19] = [
    ("all", |_| true),
    ("no loss", |link| link.loss == DrawnLoss::None),
    ("single loss", |link| link.loss == DrawnLoss::Single),
    ("loss in bursts", |link| link.loss == DrawnLoss::Bursts),
    ("bell jitter", |link| link.jitter == DrawnJitter::Bell),
    ("Wi-Fi jitter", |link| link.jitter == DrawnJitter::Wifi),
    ("slow return path", |link| link.return_rate_mbps < link.rate_mbps),
    ("RTT under 20 ms", |link| link.rtt_ms < 20.0),
    ("RTT 20 to 100 ms", |link| (20.0..100.0).contains(&link.rtt_ms)),
    ("RTT from 100 ms", |link| link.rtt_ms >= 100.0),
    ("under 10 Mbit/s", |link| link.rate_mbps < 10.0),
    ("10 to 100 Mbit/s", |link| (10.0..100.0).contains(&link.rate_mbps)),
    ("from 100 Mbit/s", |link| link.rate_mbps >= 100.0),
    ("queue under 0.5 BDP", |link| link.queue_bdp < 0.5),
    ("queue 0.5 to 1 BDP", |link| (0.5..1.0).contains(&link.queue_bdp)),
    ("queue from 1 BDP", |link| link.queue_bdp >= 1.0),
    ("under 300 kB", |link| link.bytes < 300_000),
    ("300 kB to 3 MB", |link| (300_000..3_000_000).contains(&link.bytes)),
    ("from 3 MB", |link| link.bytes >= 3_000_000),
];

/// The percentiles of each controller, for all links and for each class that has some. `outcomes` are those of the
/// runs, in their order.
pub fn summaries(exploration: &Exploration, outcomes: &[Outcome]) -> Vec<ClassSummary> {
    let mut all = Vec::new();
    for &controller in exploration.controllers() {
        let own = || outcomes.iter().enumerate().filter(|(_, outcome)| outcome.controller == controller);
        for (class, is_member) in CLASSES {
            let members = own().filter(|(number, _)| is_member(exploration.task(*number).0));
            let members: Vec<&Outcome> = members.map(|(_, outcome)| outcome).collect();
            if !members.is_empty() {
                all.push(ClassSummary::of(controller, class, &members));
            }
        }
    }
    all
}

impl ClassSummary {
    fn of(controller: ControllerName, class: &'static str, outcomes: &[&Outcome]) -> Self {
        let mut ratios: Vec<f64> = outcomes.iter().map(|outcome| outcome.ratio_or_infinite()).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (ratios.len() as f64 * share).ceil() as usize;
            Some(ratios[rank.clamp(1, ratios.len()) - 1]).filter(|ratio| ratio.is_finite())
        };
        Self {
            controller,
            class,
            links: outcomes.len(),
            median: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            worst: at(1.0),
            given_up: outcomes.iter().filter(|outcome| outcome.given_up).count(),
            failed: outcomes.iter().filter(|outcome| outcome.ratio.is_none()).count(),
        }
    }
}
