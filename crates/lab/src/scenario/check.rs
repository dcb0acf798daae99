//! Scenarios against their goals.

use std::collections::BTreeSet;
use std::iter;

use serde::Serialize;

use crate::Failure;

use super::{Comparison, ControllerName, Figures, Goal, Metric, RunError, Scenario, ScenarioError};

/// What has to run to tell whether scenarios reach their goals.
///
/// Whoever holds it runs the [`tasks`](Self::tasks), on as many threads as it likes, and hands the results to
/// [`rows`](Self::rows).
#[derive(Debug)]
pub struct Check {
    subjects: Vec<Subject>,
    tasks: Vec<Task>,
    /// The number of seeds of all goals, if it is not that of each scenario.
    seeds: Option<u32>,
}

/// A scenario and what its goals compare it with.
#[derive(Debug)]
struct Subject {
    scenario: Scenario,
    baseline: Option<Scenario>,
    classic: Option<Scenario>,
}

/// Which of them runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Variant {
    /// The scenario as it is.
    Own,
    /// With the settings of its `[baseline]`.
    Baseline,
    /// With the classic timers.
    Classic,
}

impl Variant {
    /// What the figure of a goal is divided by, if it is a ratio.
    fn compared_by(metric: Metric) -> Option<Self> {
        match metric {
            Metric::CompletionRatio => Some(Self::Baseline),
            Metric::TimersRatio => Some(Self::Classic),
            _ => None,
        }
    }
}

impl Subject {
    fn new(scenario: Scenario) -> Result<Self, ScenarioError> {
        let baseline = scenario.baseline()?;
        let wants_classic = scenario.goals().iter().any(|goal| goal.metric == Metric::TimersRatio);
        let classic = wants_classic.then(|| scenario.with_classic_timers()).transpose()?;
        Ok(Self { scenario, baseline, classic })
    }

    /// A variant that is not there is not asked for by any goal.
    fn variant(&self, variant: Variant) -> &Scenario {
        let other = match variant {
            Variant::Own => None,
            Variant::Baseline => self.baseline.as_ref(),
            Variant::Classic => self.classic.as_ref(),
        };
        other.unwrap_or(&self.scenario)
    }
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    subject: usize,
    variant: Variant,
    controller: ControllerName,
    seed: u64,
}

/// A goal and what was measured. With `--json` a row is an object with the fields up to the verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The scenario.
    pub scenario: String,
    /// The controller.
    pub controller: ControllerName,
    /// The figure that the goal is about.
    pub metric: &'static str,
    /// The reference figure.
    pub reference: Option<f64>,
    /// What is to be reached.
    pub goal: Option<f64>,
    /// The figure over all seeds; `None` if it could not be measured.
    pub measured: Option<f64>,
    /// Whether the goal is reached.
    pub verdict: Verdict,
    /// Why nothing was measured, or what stands behind the figure.
    #[serde(skip)]
    pub note: Option<String>,
    /// The ways that were compared, if the figure is about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// Whether a goal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not.
    Missed,
    /// There is no goal: the figure is told only.
    Told,
}

impl Check {
    /// A check of these scenarios, of all controllers that their goals name or of `only` one, with so many seeds or each
    /// with its own number.
    ///
    /// # Errors
    /// The default controller of a scenario has no name.
    pub fn new(
        scenarios: Vec<Scenario>,
        only: Option<ControllerName>,
        seeds: Option<u32>,
    ) -> Result<Self, ScenarioError> {
        let mut check = Self { subjects: Vec::new(), tasks: Vec::new(), seeds };
        for scenario in scenarios {
            check.add(Subject::new(scenario)?, only)?;
        }
        Ok(check)
    }

    fn add(&mut self, subject: Subject, only: Option<ControllerName>) -> Result<(), ScenarioError> {
        let number = self.subjects.len();
        let mut runs: BTreeSet<(ControllerName, Variant)> = BTreeSet::new();
        for goal in subject.scenario.goals() {
            let controller = subject.scenario.controller_or_default(goal.controller)?;
            for variant in iter::once(Variant::Own).chain(Variant::compared_by(goal.metric)) {
                runs.insert((controller, variant));
            }
        }
        let seeds = u64::from(self.seeds.unwrap_or(subject.scenario.runs()));
        for (controller, variant) in
            runs.into_iter().filter(|(name, _)| only.is_none_or(|only| only == *name))
        {
            self.tasks.extend((1..=seeds).map(|seed| Task { subject: number, variant, controller, seed }));
        }
        self.subjects.push(subject);
        Ok(())
    }

    /// All runs.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Does one of the runs.
    ///
    /// # Errors
    /// As of [`Scenario::run`].
    ///
    /// # Panics
    /// Panics if the task is of another check.
    pub fn run(&self, task: Task) -> Result<Figures, RunError> {
        self.subjects[task.subject].variant(task.variant).run(Some(task.controller), task.seed)
    }

    /// What a run that could not come to its end counts as.
    ///
    /// # Panics
    /// Panics if the task is of another check.
    pub fn failed(&self, task: Task, failure: Failure) -> RunError {
        let scenario = self.subjects[task.subject].scenario.name().to_owned();
        RunError::Failed { scenario, controller: task.controller, failure: Box::new(failure) }
    }

    /// A row for each goal. `results` are those of the tasks, in their order.
    pub fn rows(&self, results: &[Result<Figures, RunError>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (number, subject) in self.subjects.iter().enumerate() {
            for goal in subject.scenario.goals() {
                let Ok(controller) = subject.scenario.controller_or_default(goal.controller) else {
                    continue;
                };
                let of = |variant: Variant| {
                    let wanted = move |task: &Task| {
                        let subject = (task.subject, task.variant, task.controller);
                        subject == (number, variant, controller)
                    };
                    let all = self.tasks.iter().zip(results);
                    all.filter(move |(task, _)| wanted(task)).map(|(_, result)| result)
                };
                let own: Results<'_> = of(Variant::Own).collect();
                let other: Option<Results<'_>> =
                    Variant::compared_by(goal.metric).map(|variant| of(variant).collect());
                if !own.is_empty() {
                    rows.push(row(&subject.scenario, goal, controller, &own, other.as_deref()));
                }
            }
        }
        rows
    }
}

impl Task {
    /// The seed of the run.
    pub const fn seed(self) -> u64 {
        self.seed
    }
}

/// What came out of the runs of a variant with a controller, by seed.
type Results<'a> = Vec<&'a Result<Figures, RunError>>;

fn row(
    scenario: &Scenario,
    goal: &Goal,
    controller: ControllerName,
    own: &[&Result<Figures, RunError>],
    other: Option<&[&Result<Figures, RunError>]>,
) -> Row {
    let figure = |result: &Result<Figures, RunError>| goal.metric.of(result.as_ref().ok()?);
    let mut failures: Vec<_> = own.iter().filter_map(|result| result.as_ref().err()).collect();
    let mut measured = goal.metric.over_seeds(&own.iter().map(|result| figure(result)).collect::<Vec<_>>());
    if let Some(other) = other {
        // Whatever does not come to its end is later than whatever does.
        let times = other.iter().map(|result| figure(result).or(Some(f64::INFINITY)));
        let compared = goal.metric.over_seeds(&times.collect::<Vec<_>>()).filter(|time| time.is_finite());
        measured = measured.zip(compared).map(|(own, other)| own / other);
        if compared.is_none() {
            failures.extend(other.iter().filter_map(|result| result.as_ref().err()));
        }
    }
    Row {
        scenario: scenario.name().to_owned(),
        controller,
        metric: goal.metric.as_str(),
        reference: goal.reference,
        goal: goal.limit(),
        measured,
        verdict: if goal.is_met(measured) { Verdict::Met } else { Verdict::Missed },
        note: failures.first().map(|first| note(first, failures.len())),
        comparison: None,
    }
}

/// Why nothing was measured: the first line of the first failure.
fn note(first: &RunError, failures: usize) -> String {
    let first = first.to_string().lines().next().unwrap_or_default().to_owned();
    if failures == 1 { first } else { format!("{failures} runs failed, the first: {first}") }
}

#[cfg(test)]
mod tests;
