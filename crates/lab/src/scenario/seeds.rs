//! Over how many seeds goals are judged.

use super::Scenario;

/// How many seeds the goals of a scenario are judged over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seeds {
    /// As many as it says: see [`Scenario::runs`].
    #[default]
    Own,
    /// So many.
    All(u32),
    /// So many if it moves more than `small_bytes` ([`Scenario::bytes`]), as many as it says otherwise: most of the time goes into a
    /// few that move much.
    OfLarge {
        /// The seeds of a scenario that moves more.
        seeds: u32,
        /// What a small one moves at most.
        small_bytes: u64,
    },
}

impl Seeds {
    /// How many this scenario is judged over.
    pub fn of(self, scenario: &Scenario) -> u32 {
        match self {
            Self::All(seeds) => seeds,
            Self::OfLarge { seeds, small_bytes } if scenario.bytes() > small_bytes => seeds,
            Self::Own | Self::OfLarge { .. } => scenario.runs(),
        }
    }

    /// The number that was asked for, if one was. Comparisons ([`PairedCheck`](super::PairedCheck)) take it whatever a scenario moves, as
    /// their own number is in the hundreds.
    pub fn asked(self) -> Option<u32> {
        match self {
            Self::Own => None,
            Self::All(seeds) | Self::OfLarge { seeds, .. } => Some(seeds),
        }
    }
}
