//! Scenarios against their goals.

use serde::Serialize;

use crate::Failure;

use super::{ControllerName, Figures, Goal, Metric, RunError, Scenario, ScenarioError};

/// What has to run to tell whether scenarios reach their goals.
///
/// Whoever holds it runs the [`tasks`](Self::tasks), on as many threads as it likes, and hands the results to
/// [`rows`](Self::rows).
#[derive(Debug)]
pub struct Check {
    subjects: Vec<Subject>,
    tasks: Vec<Task>,
}

/// A scenario, or its baseline.
#[derive(Debug)]
struct Subject {
    scenario: Scenario,
    baseline: Option<Scenario>,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    subject: usize,
    baseline: bool,
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
    pub metric: Metric,
    /// The reference figure.
    pub reference: Option<f64>,
    /// What is to be reached.
    pub goal: Option<f64>,
    /// The figure over all seeds; `None` if it could not be measured.
    pub measured: Option<f64>,
    /// Whether the goal is reached.
    pub verdict: Verdict,
    /// Why nothing was measured.
    #[serde(skip)]
    pub note: Option<String>,
}

/// Whether a goal is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not.
    Missed,
}

impl Check {
    /// A check of these scenarios, of all controllers that their goals name or of `only` one.
    ///
    /// # Errors
    /// The default controller of a scenario has no name.
    pub fn new(scenarios: Vec<Scenario>, only: Option<ControllerName>) -> Result<Self, ScenarioError> {
        let mut check = Self { subjects: Vec::new(), tasks: Vec::new() };
        for scenario in scenarios {
            let baseline = scenario.baseline()?;
            check.add(Subject { scenario, baseline }, only)?;
        }
        Ok(check)
    }

    fn add(&mut self, subject: Subject, only: Option<ControllerName>) -> Result<(), ScenarioError> {
        let number = self.subjects.len();
        let mut controllers = Vec::new();
        for goal in subject.scenario.goals() {
            controllers.push(subject.scenario.controller_or_default(goal.controller)?);
        }
        controllers.sort();
        controllers.dedup();
        controllers.retain(|controller| only.is_none_or(|only| only == *controller));
        let variants: &[bool] = if subject.baseline.is_some() { &[false, true] } else { &[false] };
        for controller in controllers {
            for &baseline in variants {
                let seeds = 1..=u64::from(subject.scenario.runs());
                self.tasks.extend(seeds.map(|seed| Task { subject: number, baseline, controller, seed }));
            }
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
        let Subject { scenario, baseline } = &self.subjects[task.subject];
        let scenario = baseline.as_ref().filter(|_| task.baseline).unwrap_or(scenario);
        scenario.run(Some(task.controller), task.seed)
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
                let of = |baseline: bool| {
                    let wanted = move |task: &Task| {
                        (task.subject, task.baseline, task.controller) == (number, baseline, controller)
                    };
                    let all = self.tasks.iter().zip(results);
                    all.filter(move |(task, _)| wanted(task)).map(|(_, result)| result)
                };
                if of(false).next().is_some() {
                    rows.push(row(&subject.scenario, goal, controller, of(false), of(true)));
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

fn row<'a>(
    scenario: &Scenario,
    goal: &Goal,
    controller: ControllerName,
    results: impl Iterator<Item = &'a Result<Figures, RunError>> + Clone,
    baseline: impl Iterator<Item = &'a Result<Figures, RunError>> + Clone,
) -> Row {
    let figure = |result: &Result<Figures, RunError>| result.as_ref().ok().and_then(|f| goal.metric.of(f));
    let over = |results: &mut dyn Iterator<Item = &'a Result<Figures, RunError>>| {
        goal.metric.over_seeds(&results.map(figure).collect::<Vec<_>>())
    };
    let measured = over(&mut results.clone());
    let measured = match goal.metric {
        Metric::CompletionRatio => measured.zip(over(&mut baseline.clone())).map(|(own, base)| own / base),
        _ => measured,
    };
    let baseline = baseline.filter(|_| goal.metric == Metric::CompletionRatio);
    let failures: Vec<_> = results.chain(baseline).filter_map(|result| result.as_ref().err()).collect();
    let note = failures.first().map(|error| {
        let first = error.to_string().lines().next().unwrap_or_default().to_owned();
        if failures.len() == 1 {
            first
        } else {
            format!("{} runs failed, the first: {first}", failures.len())
        }
    });
    Row {
        scenario: scenario.name().to_owned(),
        controller,
        metric: goal.metric,
        reference: goal.reference,
        goal: goal.limit(),
        measured,
        verdict: if goal.is_met(measured) { Verdict::Met } else { Verdict::Missed },
        note,
    }
}

#[cfg(test)]
mod tests;
