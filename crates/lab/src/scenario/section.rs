//! Groups of scenarios.

use serde::{Deserialize, Serialize};

/// A group of scenarios, named by a letter in the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Section {
    /// Satellite.
    S,
    /// Deep space and very long delay.
    D,
    /// Wi-Fi.
    W,
    /// Recovery.
    R,
    /// Congestion control.
    C,
    /// Multipath.
    M,
    /// Forward erasure correction.
    F,
}

impl Section {
    /// All sections, in the order of the specification.
    pub const ALL: [Self; 7] = [Self::S, Self::D, Self::W, Self::R, Self::C, Self::M, Self::F];

    /// The folder of the section's files.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::S => "satellite",
            Self::D => "deep-space",
            Self::W => "wifi",
            Self::R => "recovery",
            Self::C => "congestion",
            Self::M => "multipath",
            Self::F => "fec",
        }
    }

    /// The section with this letter or folder; upper and lower case are alike.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| {
            name.eq_ignore_ascii_case(&format!("{section:?}")) || name.eq_ignore_ascii_case(section.folder())
        })
    }
}
