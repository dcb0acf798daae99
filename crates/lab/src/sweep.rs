//! Sweeps: a scenario at many values of one setting, and where its time leaps.
//!
//! A rule with a threshold shows as a step in such a curve. Chance must not: a point is the median over some seeds, and
//! where two neighbours differ by more than [`STEP_MAX`] both are run with [`SEEDS_SURE`] seeds before that counts, and with
//! [`SEEDS_DOUBT`] where the difference is not large.

use std::collections::BTreeMap;

use fulmar_sim::Loss;
use serde::Serialize;

use crate::scenario::{ControllerName, Row, RunError, Scenario, ScenarioError, Verdict, median};

/// The largest change of the time from a point to the next one, as a share of the smaller time.
pub const STEP_MAX: f64 = 0.1;
/// From each value to the next one.
pub const RATIO: f64 = 1.05;
/// Seeds of each point.
pub const SEEDS: u32 = 3;
/// Seeds of a point at a step.
pub const SEEDS_SURE: u32 = 15;
/// Seeds of a point at a step that is still there and not large: chance could have made it.
pub const SEEDS_DOUBT: u32 = 45;
/// From this change on a step is large.
const LARGE: f64 = 0.3;
/// The most points of a sweep.
const POINTS_MAX: usize = 10_000;

/// A scenario and the setting in which its points differ.
#[derive(Debug, Clone)]
pub struct Sweep {
    name: String,
    points: Vec<(f64, Scenario)>,
}

/// The time at a value of the setting.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SweepPoint {
    /// The value.
    pub x: f64,
    /// The median of the times in seconds; `None` if half of its runs or more went wrong or were given up.
    pub completion_s: Option<f64>,
    /// The times by seed, from 1 on.
    #[serde(skip)]
    times: Vec<Option<f64>>,
    /// How many seeds there are.
    pub seeds: usize,
}

/// The times of a controller along a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The sweep.
    pub sweep: String,
    /// The controller.
    pub controller: ControllerName,
    /// The points by ascending value.
    pub points: Vec<SweepPoint>,
    /// The largest change from a point to the next one, as a share; `None` where one of the two has no time, or none has.
    pub largest_step: Option<f64>,
    /// The numbers of the points behind which the time leaps.
    pub steps: Vec<usize>,
}

/// A run that a curve needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepTask {
    /// The number of the point.
    pub point: usize,
    /// The seed.
    pub seed: u64,
}

/// The link of the fixed sweeps, with a queue of a bandwidth-delay product.
const LINK: &str = "\
title = \"A sweep: 10 MB down at 20 Mbit/s\"
limit_s = 3600
[link]
rate_mbps = 20
delay_ms = 50
queue_ms = 100
[[connection]]
download_bytes = 10_000_000
";
/// The same with 1 % of loss.
const LOSS: &str = "link.loss={ uniform = { probability = 0.01 } }";
const RTT: [&str; 2] = ["link.delay_ms={x*0.5}", "link.queue_ms={x}"];

impl Sweep {
    /// The scenario at the values from `from` to `to`, each `ratio` times the one before. In `settings`, `{x}` stands for
    /// the value, and `{x*2}` for a multiple of it; where only whole numbers make sense, for the next one.
    ///
    /// # Errors
    /// The range makes no sense, or a setting does not, or none has an `{x}`.
    pub fn new<'a>(
        name: &str,
        scenario: &Scenario,
        settings: impl IntoIterator<Item = &'a str> + Clone,
        (from, to): (f64, f64),
        ratio: f64,
    ) -> Result<Self, ScenarioError> {
        let wrong = |message: String| ScenarioError::new(name, message);
        if !settings.clone().into_iter().any(|setting| setting.contains("{x")) {
            return Err(wrong("no setting has an `{x}`, for which the values of a sweep stand".to_owned()));
        }
        Self::along(name, (from, to), ratio, |x| {
            let own = settings.clone().into_iter().map(|setting| fitting(scenario, setting, x));
            let own: Vec<String> = own.collect::<Result<_, _>>().map_err(wrong)?;
            scenario.with_settings(own.iter().map(String::as_str))
        })
    }

    /// What `at` makes of the values from `from` to `to`.
    fn along(
        name: &str,
        (from, to): (f64, f64),
        ratio: f64,
        at: impl Fn(f64) -> Result<Scenario, ScenarioError>,
    ) -> Result<Self, ScenarioError> {
        let wrong = |message: String| ScenarioError::new(name, message);
        if !(from > 0.0 && from <= to && to.is_finite()) {
            return Err(wrong(format!(
                "a sweep is from a positive value to a larger one, not {from} to {to}"
            )));
        }
        if !(ratio > 1.0 && (to / from).ln() / ratio.ln() < POINTS_MAX as f64) {
            return Err(wrong(format!("a sweep has at most {POINTS_MAX} points, and a ratio above 1")));
        }
        let mut points = Vec::new();
        let mut value = from;
        while value <= to * (1.0 + 1e-9) {
            // Four digits: machines need not agree on more.
            let x: f64 = format!("{value:.3e}").parse().unwrap_or(value);
            points.push((x, at(x)?));
            value *= ratio;
        }
        Ok(Self { name: name.to_owned(), points })
    }

    /// The sweeps that `fulmar lab check` looks at: the round-trip time without and with loss, loss one by one and in bursts,
    /// and the queue.
    ///
    /// # Errors
    /// A setting does not exist, which would be a defect of ours.
    pub fn fixed() -> Result<Vec<Self>, ScenarioError> {
        let link = Scenario::parse("sweep", LINK)?;
        let lossy = link.with_settings([LOSS])?;
        let uniform = "link.loss={ uniform = { probability = {x} } }";
        // Bursts of four in the mean, and the share that they lose.
        let bursts = |share: f64| {
            let begins = Loss::burst_probability(share, 4.0);
            let loss = format!("{{ burst = {{ probability = {begins}, length_min = 1, length_max = 7 }} }}");
            link.with_settings([format!("link.loss={loss}").as_str()])
        };
        Ok(vec![
            Self::new("sweep/rtt", &link, RTT, (5.0, 600.0), RATIO)?,
            Self::new("sweep/rtt-with-loss", &lossy, RTT, (5.0, 600.0), RATIO)?,
            Self::new("sweep/loss", &link, [uniform], (0.0005, 0.1), RATIO)?,
            Self::along("sweep/burst-loss", (0.0005, 0.1), RATIO, bursts)?,
            Self::new("sweep/queue", &link, ["link.queue_ms={x*100}"], (0.1, 4.0), RATIO)?,
        ])
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A curve without any time.
    pub fn curve(&self, controller: ControllerName) -> Curve {
        let points = self.points.iter().map(|(x, _)| SweepPoint { x: *x, ..SweepPoint::default() });
        Curve {
            sweep: self.name.clone(),
            controller,
            points: points.collect(),
            largest_step: None,
            steps: Vec::new(),
        }
    }

    /// Does one run; `None` if it went wrong or was given up.
    ///
    /// # Errors
    /// This version does not have the controller.
    ///
    /// # Panics
    /// Panics if there is no such point.
    pub fn run(&self, controller: ControllerName, task: SweepTask) -> Result<Option<f64>, ScenarioError> {
        match self.points[task.point].1.run(Some(controller), task.seed) {
            Ok(figures) => Ok(figures.completion_s),
            Err(RunError::Failed { .. }) => Ok(None),
            Err(RunError::Scenario(error)) => Err(error),
        }
    }
}

impl Curve {
    /// The runs that are needed next; none if the curve is complete. First each point with `seeds` seeds, then those at
    /// steps with as many as make it sure.
    pub fn next_tasks(&self, seeds: u32) -> Vec<SweepTask> {
        let (seeds, sure) = (seeds as usize, SEEDS_SURE.max(seeds) as usize);
        let lacking = |point: usize, wanted: usize| {
            (self.points[point].times.len()..wanted)
                .map(move |done| SweepTask { point, seed: done as u64 + 1 })
        };
        let first: Vec<SweepTask> = (0..self.points.len()).flat_map(|point| lacking(point, seeds)).collect();
        if !first.is_empty() {
            return first;
        }
        let at_steps = |steps: &mut dyn Iterator<Item = &usize>, wanted: usize| -> Vec<SweepTask> {
            let mut points: Vec<usize> = steps.flat_map(|&step| [step, step + 1]).collect();
            points.dedup();
            points.into_iter().flat_map(|point| lacking(point, wanted)).collect()
        };
        let next = at_steps(&mut self.steps.iter(), sure);
        if !next.is_empty() {
            return next;
        }
        let mut doubtful = self.steps.iter().filter(|&&step| {
            change(&self.points[step], &self.points[step + 1]).is_some_and(|change| change < LARGE)
        });
        at_steps(&mut doubtful, sure.max(SEEDS_DOUBT as usize))
    }

    /// Takes the times of runs that were asked for, in their order.
    pub fn add(&mut self, tasks: &[SweepTask], times: &[Option<f64>]) {
        for (task, time) in tasks.iter().zip(times) {
            self.points[task.point].times.push(*time);
        }
        for point in &mut self.points {
            point.seeds = point.times.len();
            point.completion_s = median_time(&point.times);
        }
        let changes: Vec<Option<f64>> =
            self.points.windows(2).map(|pair| change(&pair[0], &pair[1])).collect();
        let is_step = |change: &Option<f64>| change.is_none_or(|change| change > STEP_MAX);
        self.steps = (0..changes.len()).filter(|&number| is_step(&changes[number])).collect();
        let all: Option<Vec<f64>> = changes.into_iter().collect();
        let all = all.filter(|_| !self.is_without_times());
        self.largest_step = all.map(|all| all.into_iter().fold(0.0, f64::max));
    }

    /// Whether no point has a time, so that there is no curve.
    pub fn is_without_times(&self) -> bool {
        self.points.iter().all(|point| point.completion_s.is_none())
    }

    /// Its row in the table of goals.
    pub fn row(&self) -> Row {
        let met = self.steps.is_empty() && !self.is_without_times();
        let steps: Vec<String> = self.steps.iter().map(|&step| format!("{}", self.points[step].x)).collect();
        let note = match self.is_without_times() {
            true => "no run came to its end".to_owned(),
            false => format!("{} steps, behind {}", steps.len(), steps.join(", ")),
        };
        Row {
            scenario: self.sweep.clone(),
            controller: self.controller,
            metric: "largest_step".into(),
            reference: None,
            goal: Some(STEP_MAX),
            measured: self.largest_step,
            verdict: if met { Verdict::Met } else { Verdict::Missed },
            alone_mbps: BTreeMap::new(),
            note: (!met).then_some(note),
            comparison: None,
        }
    }
}

/// The change of the time from one point to the other; none at all between two that have no time.
fn change(a: &SweepPoint, b: &SweepPoint) -> Option<f64> {
    match (a.completion_s, b.completion_s) {
        (Some(a), Some(b)) => Some((a / b).max(b / a) - 1.0),
        (None, None) => Some(0.0),
        _ => None,
    }
}

/// The median of the times; what has none is beyond all others.
fn median_time(times: &[Option<f64>]) -> Option<f64> {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.unwrap_or(f64::INFINITY)).collect();
    sorted.sort_by(f64::total_cmp);
    median(&sorted).filter(|time| time.is_finite())
}

/// The setting with the value in its place, as a whole number if the scenario takes no other.
fn fitting(scenario: &Scenario, setting: &str, x: f64) -> Result<String, String> {
    let takes = |setting: &String| scenario.with_settings([setting.as_str()]).is_ok();
    let exact = filled(setting, x, |value| value)?;
    if takes(&exact) {
        return Ok(exact);
    }
    let whole = filled(setting, x, f64::round)?;
    // If it takes neither, it is the exact one that it complains about.
    Ok(if takes(&whole) { whole } else { exact })
}

/// The setting with what `round` makes of the value in its place.
fn filled(setting: &str, x: f64, round: fn(f64) -> f64) -> Result<String, String> {
    let Some((before, rest)) = setting.split_once("{x") else { return Ok(setting.to_owned()) };
    let (factor, after) = rest.split_once('}').ok_or(format!("`{setting}`: `{{x` has no end"))?;
    let factor = match factor.strip_prefix('*') {
        None if factor.is_empty() => 1.0,
        None => return Err(format!("`{setting}`: write `{{x}}` or `{{x*2}}`")),
        Some(factor) => factor.trim().parse::<f64>().map_err(|error| format!("`{setting}`: {error}"))?,
    };
    Ok(format!("{before}{}{}", round(x * factor), filled(after, x, round)?))
}

#[cfg(test)]
mod tests;
