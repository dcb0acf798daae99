//! Random links, and how far from the ideal transfers over them are.
//!
//! No scenario names these links: what a controller does well only where it was looked at shows here.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | [`Exploration`]: which link runs with which controller, and what came out of each |
//! | `space` | the ranges that links are drawn from |
//! | `link` | a link: how it is drawn, its scenario, its ideal time |
//! | `summary` | percentiles by controller and class of links |
//! | `goals` | the fixed set that `fulmar lab check` runs |

mod goals;
mod link;
mod space;
mod summary;

use std::time::Duration;

use fulmar_base::Instant;
use serde::Serialize;

use crate::scenario::{ControllerName, RunError, Scenario, ScenarioError};

pub use self::goals::check_rows;
pub use self::link::{DrawnJitter, DrawnLink, DrawnLoss};
pub use self::space::{DataDirection, JitterSpace, LossSpace, Range, ReturnSpace, Space};
pub use self::summary::{ClassSummary, summaries};

/// Random links, each with each controller.
///
/// Whoever holds it runs the [`tasks`](Self::tasks) in whatever order and hands the results to [`summaries`].
#[derive(Debug, Clone)]
pub struct Exploration {
    links: Vec<DrawnLink>,
    controllers: Vec<ControllerName>,
    /// What is changed in the scenario of each link.
    settings: Vec<String>,
}

/// What became of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The number of the link.
    pub link: u64,
    /// The controller.
    pub controller: ControllerName,
    /// Virtual time until the last byte was read; where it was given up, that time. `None` if the run went wrong.
    pub completion_s: Option<f64>,
    /// This time by the ideal one.
    pub ratio: Option<f64>,
    /// Whether it was given up because it took too long: the time is a lower bound.
    pub given_up: bool,
    /// Packets that the sender of the data declared lost.
    pub packets_lost: u64,
    /// Of those, the ones that arrived.
    pub packets_spurious: u64,
    /// Probe timeouts of the sender of the data.
    pub pto_count: u64,
    /// What went wrong, in a line.
    pub error: Option<String>,
}

impl Exploration {
    /// The first `count` links of the set with this seed, with each of these controllers.
    pub fn new(space: &Space, seed: u64, count: u64, controllers: Vec<ControllerName>) -> Self {
        let links = (0..count).map(|number| DrawnLink::draw(space, seed, number)).collect();
        Self { links, controllers, settings: Vec::new() }
    }

    /// Changes settings in the scenario of each link, as [`Scenario::with_settings`] does: `endpoints.fec=tail`. A setting that does
    /// not exist fails the runs.
    #[must_use]
    pub fn with_settings(self, settings: Vec<String>) -> Self {
        Self { settings, ..self }
    }

    /// The scenario of a link.
    ///
    /// # Errors
    /// A setting does not exist or makes no sense.
    pub fn scenario(&self, link: &DrawnLink) -> Result<Scenario, ScenarioError> {
        link.scenario()?.with_settings(self.settings.iter().map(String::as_str))
    }

    /// The links.
    pub fn links(&self) -> &[DrawnLink] {
        &self.links
    }

    /// The controllers.
    pub fn controllers(&self) -> &[ControllerName] {
        &self.controllers
    }

    /// How many runs there are: with all controllers on the first link, then on the next one.
    pub fn tasks(&self) -> usize {
        self.links.len() * self.controllers.len()
    }

    /// The link and the controller of a run.
    ///
    /// # Panics
    /// Panics if there are not so many runs.
    pub fn task(&self, number: usize) -> (&DrawnLink, ControllerName) {
        let count = self.controllers.len();
        (&self.links[number / count], self.controllers[number % count])
    }

    /// Does one of the runs.
    ///
    /// # Errors
    /// This version does not have the controller, or a setting that was changed.
    ///
    /// # Panics
    /// Panics if there are not so many runs.
    pub fn run(&self, number: usize) -> Result<Outcome, ScenarioError> {
        let (link, controller) = self.task(number);
        match self.scenario(link)?.run(Some(controller), link.seed) {
            Ok(figures) => {
                let sender = if link.upload { &figures.client } else { &figures.server };
                Ok(Outcome {
                    completion_s: figures.completion_s,
                    ratio: figures.completion_s.map(|time| time / link.ideal_s),
                    packets_lost: sender.packets_lost,
                    packets_spurious: sender.packets_spurious,
                    pto_count: sender.pto_count,
                    ..Outcome::failed(link, controller, None)
                })
            }
            Err(RunError::Scenario(error)) => Err(error),
            Err(RunError::Failed { failure, .. }) => {
                let limit = link.limit_s();
                if failure.at < Instant::ZERO + Duration::from_secs_f64(limit) {
                    return Ok(Outcome::failed(link, controller, Some(failure.what)));
                }
                Ok(Outcome {
                    completion_s: Some(limit),
                    ratio: Some(limit / link.ideal_s),
                    given_up: true,
                    ..Outcome::failed(link, controller, None)
                })
            }
        }
    }

    /// What a run that panicked came to.
    ///
    /// # Panics
    /// Panics if there are not so many runs.
    pub fn panicked(&self, number: usize, message: &str) -> Outcome {
        let (link, controller) = self.task(number);
        Outcome::failed(link, controller, Some(format!("panicked: {message}")))
    }
}

impl Outcome {
    fn failed(link: &DrawnLink, controller: ControllerName, error: Option<String>) -> Self {
        Self {
            link: link.number,
            controller,
            completion_s: None,
            ratio: None,
            given_up: false,
            packets_lost: 0,
            packets_spurious: 0,
            pto_count: 0,
            error,
        }
    }

    /// The ratio; that of a run that went wrong is beyond all others.
    pub fn ratio_or_infinite(&self) -> f64 {
        self.ratio.unwrap_or(f64::INFINITY)
    }
}

#[cfg(test)]
mod tests;
