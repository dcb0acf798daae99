//! Coupled congestion control: how the windows of several paths grow together.
//!
//! Each path has a controller of its own, so that two paths over one bottleneck take twice what a flow with one path gets
//! there. A coupling holds them back together: it tells the controller of a path how much of its own growth in congestion avoidance
//! is left to it, and how much of its reduction it has to make. Slow start is not touched (RFC 6356 §3).
//!
//! The published algorithms are for controllers that grow until packets are lost, and so is this: NewReno, CUBIC and Prague
//! take the share, BBR does not.

mod balia;
mod lia;
mod olia;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fulmar_wire::PathId;
use thiserror::Error;

use crate::congestion::CoupledShare;

/// A path as it is now, for a coupling. All of those that it is shown are validated and answer.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CoupledPath {
    /// Its name.
    pub id: PathId,
    /// The congestion window in bytes.
    pub window: u64,
    /// The smoothed round-trip time, or the assumed one before the first measurement.
    pub rtt: Duration,
    /// Bytes that were acknowledged so far.
    pub bytes_delivered: u64,
}

impl CoupledPath {
    /// A window each round trip, in bytes per second; never 0.
    fn rate(&self) -> u128 {
        (u128::from(self.window) * 1_000_000 / self.micros()).max(1)
    }

    fn micros(&self) -> u128 {
        self.rtt.as_micros().max(1)
    }
}

/// Couples the windows of the paths of one connection.
///
/// Calls must not depend on anything but their arguments and earlier calls: the lab replays them.
pub trait Coupling: fmt::Debug + Send {
    /// How the controller of `paths[index]` grows by the acknowledgement that has just come there. `paths` has at least one entry.
    fn share(&mut self, paths: &[CoupledPath], index: usize) -> CoupledShare;

    /// Packets of `paths[index]` were lost, all of which were found at once.
    fn on_loss(&mut self, paths: &[CoupledPath], index: usize) {
        let _ = (paths, index);
    }
}

/// Makes a coupling for each connection.
pub trait CouplingFactory: fmt::Debug + Send + Sync {
    /// A coupling in its first state.
    fn build(&self) -> Box<dyn Coupling>;
}

/// The couplings that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CouplingKind {
    /// LIA (RFC 6356): all paths together grow as one flow on the best of them.
    Lia,
    /// OLIA (draft-khalili-mptcp-congestion-control): as LIA, and good paths with small windows gain what those with large
    /// ones lose.
    Olia,
    /// BALIA (draft-walid-mptcp-congestion-control): between both, with a larger reduction on paths that carry little.
    Balia,
}

/// A name that no coupling has.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("no coupling has the name {0}; there are lia, olia, balia")]
pub struct UnknownCoupling(pub String);

impl CouplingKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lia, Self::Olia, Self::Balia];

    /// The name by which programs and files choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
        }
    }
}

impl fmt::Display for CouplingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CouplingKind {
    type Err = UnknownCoupling;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownCoupling(name.to_owned()))
    }
}

impl CouplingFactory for CouplingKind {
    fn build(&self) -> Box<dyn Coupling> {
        match self {
            Self::Lia => Box::new(lia::Lia),
            Self::Olia => Box::new(olia::Olia::default()),
            Self::Balia => Box::new(balia::Balia),
        }
    }
}

/// The rates of all paths together, in bytes per second.
fn rate_of_all(paths: &[CoupledPath]) -> u128 {
    paths.iter().map(CoupledPath::rate).sum()
}

/// `part` of `whole`, in fractions of [`CoupledShare::ONE`].
fn fraction(part: u128, whole: u128) -> u64 {
    let fraction = part.saturating_mul(CoupledShare::ONE.into()) / whole.max(1);
    u64::try_from(fraction).unwrap_or(u64::MAX)
}
