//! A random scenario for each seed: network, configurations and workloads.
//!
//! Whatever a seed draws is survivable: losses of some ten per cent, silences shorter than the idle timeout, limits
//! that let everything through in time. So each run has one outcome: all of its connections do their work, are
//! closed and forgotten.

mod erasure;
mod links;
mod paths;
mod scenario;

use std::time::Duration;

use crate::{Failure, Lab, Limits, RunReport};

/// When a run of the swarm is given up. A run takes some seconds or minutes of virtual time.
const LIMITS: Limits = Limits { time: Duration::from_secs(3_600), steps: 2_000_000 };

/// What a seed stands for. A number is another world in each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Worlds {
    /// Worlds with one link.
    #[default]
    OneLink,
    /// Worlds with one to four paths, which come and go.
    Paths,
}

impl Worlds {
    /// The scenario of a seed.
    pub fn scenario(self, seed: u64) -> Lab {
        let lab = match self {
            Self::OneLink => scenario::draw(seed),
            Self::Paths => paths::draw(seed),
        };
        erasure::draw(seed, lab).limits(LIMITS)
    }

    /// Runs the scenario of a seed.
    ///
    /// # Errors
    /// What went wrong. The same seed does it again.
    pub fn run(self, seed: u64) -> Result<RunReport, Failure> {
        self.scenario(seed).run()
    }

    /// Runs the scenario of a seed twice and compares the traces.
    ///
    /// # Errors
    /// What went wrong, or that the runs were not the same.
    pub fn run_twice(self, seed: u64) -> Result<RunReport, Failure> {
        let (first, second) = (self.run(seed)?, self.run(seed)?);
        if first.trace == second.trace {
            return Ok(first);
        }
        let what = format!("two runs differ: {} and {}", first.trace, second.trace);
        Err(Failure::before_start(seed, what))
    }
}

/// The scenario of a seed with one link.
pub fn scenario(seed: u64) -> Lab {
    Worlds::OneLink.scenario(seed)
}

/// Runs the scenario of a seed with one link.
///
/// # Errors
/// What went wrong. The same seed does it again.
pub fn run(seed: u64) -> Result<RunReport, Failure> {
    Worlds::OneLink.run(seed)
}

/// Runs the scenario of a seed with one link twice and compares the traces.
///
/// # Errors
/// What went wrong, or that the runs were not the same.
pub fn run_twice(seed: u64) -> Result<RunReport, Failure> {
    Worlds::OneLink.run_twice(seed)
}
