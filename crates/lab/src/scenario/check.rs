//! Scenarios against their goals.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use serde::Serialize;

use crate::Failure;

use super::{Comparison, ControllerName, Figures, Goal, Metric, RunError, Scenario, ScenarioError, Seeds};

/// What has to run to tell whether scenarios reach their goals.
///
/// Whoever holds it runs the [`tasks`](Self::tasks), on as many threads as it likes, and hands the results to
/// [`rows`](Self::rows).
#[derive(Debug)]
pub struct Check {
    subjects: Vec<Subject>,
    tasks: Vec<Task>,
    seeds: Seeds,
}

/// A scenario, as some of its goals want it, and what these compare it with.
#[derive(Debug)]
struct Subject {
    scenario: Scenario,
    goals: Vec<Goal>,
    /// The scenario with each of its paths alone.
    alone: Vec<(String, Scenario)>,
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
    /// With this one of its paths alone.
    Alone(usize),
}

impl Variant {
    /// What the figure of a goal is divided by, if it is a ratio.
    fn compared_by(metric: Metric, paths: usize) -> Vec<Self> {
        match metric {
            Metric::TimersRatio => vec![Self::Classic],
            metric if metric.needs_baseline() => vec![Self::Baseline],
            metric if metric.is_about_paths_alone() => (0..paths).map(Self::Alone).collect(),
            _ => Vec::new(),
        }
    }
}

impl Subject {
    /// One for the scenario as it is, and one for each other way in which goals want it.
    fn all(scenario: &Scenario) -> Result<Vec<Self>, ScenarioError> {
        let mut subjects: Vec<Self> = Vec::new();
        for goal in scenario.goals() {
            let same = |subject: &&mut Self| subject.goals.iter().any(|other| other.set == goal.set);
            match subjects.iter_mut().find(same) {
                Some(subject) => subject.goals.push(goal.clone()),
                None => subjects.push(Self::new(scenario.of_goal(goal)?, goal.clone())?),
            }
        }
        for subject in &mut subjects {
            subject.add_compared()?;
        }
        Ok(subjects)
    }

    fn new(scenario: Scenario, goal: Goal) -> Result<Self, ScenarioError> {
        let baseline = scenario.baseline()?;
        Ok(Self { scenario, goals: vec![goal], alone: Vec::new(), baseline, classic: None })
    }

    fn add_compared(&mut self) -> Result<(), ScenarioError> {
        let wants = |wanted: fn(Metric) -> bool| self.goals.iter().any(|goal| wanted(goal.metric));
        if wants(|metric| metric == Metric::TimersRatio) {
            self.classic = Some(self.scenario.with_classic_timers()?);
        }
        if wants(Metric::is_about_paths_alone) {
            let names = self.scenario.path_names();
            let alone = names.iter().map(|name| Ok(((*name).to_owned(), self.scenario.with_only(name)?)));
            self.alone = alone.collect::<Result<_, ScenarioError>>()?;
        }
        Ok(())
    }

    /// A variant that is not there is not asked for by any goal.
    fn variant(&self, variant: Variant) -> &Scenario {
        let other = match variant {
            Variant::Own => None,
            Variant::Baseline => self.baseline.as_ref(),
            Variant::Classic => self.classic.as_ref(),
            Variant::Alone(path) => self.alone.get(path).map(|(_, scenario)| scenario),
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

/// A goal and what was measured. With `--json` a row is an object with these fields; those after the verdict are there if they say anything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The scenario.
    pub scenario: String,
    /// The controller.
    pub controller: ControllerName,
    /// The figure that the goal is about.
    pub metric: Cow<'static, str>,
    /// The reference figure.
    pub reference: Option<f64>,
    /// What is to be reached.
    pub goal: Option<f64>,
    /// The figure over all seeds; `None` if it could not be measured.
    pub measured: Option<f64>,
    /// Whether the goal is reached.
    pub verdict: Verdict,
    /// The rate of each path alone in Mbit/s, where the figure is compared with these.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub alone_mbps: BTreeMap<String, f64>,
    /// Why nothing was measured, or what stands behind the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// A check of these scenarios, of all controllers that their goals name or of `only` one.
    ///
    /// # Errors
    /// The default controller of a scenario has no name.
    pub fn new(
        scenarios: Vec<Scenario>,
        only: Option<ControllerName>,
        seeds: Seeds,
    ) -> Result<Self, ScenarioError> {
        let mut check = Self { subjects: Vec::new(), tasks: Vec::new(), seeds };
        for scenario in scenarios {
            for subject in Subject::all(&scenario)? {
                check.add(subject, only)?;
            }
        }
        Ok(check)
    }

    fn add(&mut self, subject: Subject, only: Option<ControllerName>) -> Result<(), ScenarioError> {
        let number = self.subjects.len();
        let mut runs: BTreeSet<(ControllerName, Variant)> = BTreeSet::new();
        for goal in &subject.goals {
            let controller = subject.scenario.controller_or_default(goal.controller)?;
            let compared = Variant::compared_by(goal.metric, subject.alone.len());
            for variant in iter::once(Variant::Own).chain(compared) {
                runs.insert((controller, variant));
            }
        }
        let seeds = u64::from(self.seeds.of(&subject.scenario));
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
            for goal in &subject.goals {
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
                let compared = Variant::compared_by(goal.metric, subject.alone.len());
                let others: Vec<Results<'_>> =
                    compared.into_iter().map(|variant| of(variant).collect()).collect();
                if !own.is_empty() {
                    rows.push(row(subject, goal, controller, &own, &others));
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
    subject: &Subject,
    goal: &Goal,
    controller: ControllerName,
    own: &[&Result<Figures, RunError>],
    others: &[Results<'_>],
) -> Row {
    let mut failures: Vec<_> = own.iter().filter_map(|result| result.as_ref().err()).collect();
    let mut measured = over_seeds(goal.metric, own, None);
    let mut alone_mbps = BTreeMap::new();
    if !others.is_empty() {
        let compared: Vec<Option<f64>> = others.iter().map(|other| compared(goal.metric, other)).collect();
        for (other, _) in others.iter().zip(&compared).filter(|(_, compared)| compared.is_none()) {
            failures.extend(other.iter().filter_map(|result| result.as_ref().err()));
        }
        let known = compared.iter().copied().collect::<Option<Vec<f64>>>();
        if goal.metric.is_about_paths_alone() {
            let names = subject.alone.iter().map(|(name, _)| name.clone());
            alone_mbps = names.zip(compared).filter_map(|(name, rate)| Some((name, rate?))).collect();
        }
        let divisor = known.and_then(|known| goal.metric.of_alone(&known).or(known.first().copied()));
        measured = measured.zip(divisor).map(|(own, other)| own / other);
    }
    Row {
        scenario: subject.scenario.name().to_owned(),
        controller,
        metric: goal.metric.as_str().into(),
        reference: goal.reference,
        goal: goal.limit(),
        measured,
        verdict: if goal.is_met(measured) { Verdict::Met } else { Verdict::Missed },
        alone_mbps,
        note: failures.first().map(|first| note(first, failures.len())),
        comparison: None,
    }
}

/// The figures of these runs as one; where one of them failed, `failed` is its figure.
fn over_seeds(metric: Metric, results: &[&Result<Figures, RunError>], failed: Option<f64>) -> Option<f64> {
    let figure = |result: &&Result<Figures, RunError>| metric.of(result.as_ref().ok()?).or(failed);
    let figures = results.iter().map(|result| match result {
        Ok(_) => figure(result),
        Err(_) => failed,
    });
    metric.over_seeds(&figures.collect::<Vec<_>>())
}

/// The figure of the runs to compare with; `None` if most of them failed. A time that does not come to its end is later than
/// all others, a path that carries nothing is slower.
fn compared(metric: Metric, results: &[&Result<Figures, RunError>]) -> Option<f64> {
    let failed = if metric.is_about_paths_alone() { 0.0 } else { f64::INFINITY };
    over_seeds(metric, results, Some(failed)).filter(|figure| figure.is_finite())
}

/// Why nothing was measured: the first failure.
fn note(first: &RunError, failures: usize) -> String {
    let first = first.to_string();
    if failures == 1 { first } else { format!("{failures} runs failed, the first: {first}") }
}

#[cfg(test)]
mod tests;
