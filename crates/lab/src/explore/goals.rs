//! The fixed set of links that `fulmar lab check` runs, and what it is to reach.

use std::collections::BTreeMap;

use super::{ClassSummary, Exploration, Outcome, Space, summaries};
use crate::scenario::{ControllerName, Row, Verdict};

/// The name of the set in the table of goals.
pub(super) const NAME: &str = "explore/300-links";
const LINKS: u64 = 300;
const SEED: u64 = 1;

/// A figure of the set.
type Figure = (&'static str, fn(&ClassSummary) -> Option<f64>);

const MEDIAN: Figure = ("ratio_median", |summary| summary.median);
const P95: Figure = ("ratio_p95", |summary| summary.p95);
const WORST: Figure = ("ratio_worst", |summary| summary.worst);

/// Controllers, figures and what these are to be at most; those without are told only.
const GOALS: [(ControllerName, Figure, Option<f64>); 12] = [
    (ControllerName::Bbr, MEDIAN, Some(1.2)),
    (ControllerName::Bbr, P95, Some(2.0)),
    (ControllerName::Bbr, WORST, Some(4.0)),
    (ControllerName::Cubic, MEDIAN, None),
    (ControllerName::Cubic, P95, Some(2.5)),
    (ControllerName::Cubic, WORST, Some(8.0)),
    (ControllerName::Prague, MEDIAN, None),
    (ControllerName::Prague, P95, None),
    (ControllerName::Prague, WORST, None),
    (ControllerName::Newreno, MEDIAN, None),
    (ControllerName::Newreno, P95, None),
    (ControllerName::Newreno, WORST, None),
];

impl Exploration {
    /// The fixed set: 300 links of the default space, with the four controllers or `only` one.
    pub fn fixed(only: Option<ControllerName>) -> Self {
        let controllers =
            [ControllerName::Bbr, ControllerName::Cubic, ControllerName::Prague, ControllerName::Newreno];
        let wanted = controllers.into_iter().filter(|name| only.is_none_or(|only| only == *name));
        Self::new(&Space::default(), SEED, LINKS, wanted.collect())
    }
}

/// The rows of the fixed set in the table of goals. `outcomes` are those of its runs, in their order.
pub fn check_rows(fixed: &Exploration, outcomes: &[Outcome]) -> Vec<Row> {
    let all = summaries(fixed, outcomes);
    let rows = GOALS.into_iter().filter_map(|(controller, (metric, figure), goal)| {
        let summary =
            all.iter().find(|summary| summary.controller == controller && summary.class == "all")?;
        let measured = figure(summary);
        let verdict = match goal {
            None => Verdict::Told,
            Some(goal) if measured.is_some_and(|measured| measured <= goal) => Verdict::Met,
            Some(_) => Verdict::Missed,
        };
        let note = (summary.failed > 0).then(|| format!("{} runs went wrong", summary.failed));
        Some(Row {
            scenario: NAME.to_owned(),
            controller,
            metric: metric.into(),
            reference: None,
            goal,
            measured,
            verdict,
            alone_mbps: BTreeMap::new(),
            note,
            comparison: None,
        })
    });
    rows.collect()
}
