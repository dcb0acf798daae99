//! Congestion controllers by name.

use std::fmt;

use fulmar_proto::congestion::{
    Bbr1Config, BbrConfig, CongestionControl, CubicConfig, NewRenoConfig, PragueConfig,
};
use serde::{Deserialize, Serialize};

/// The name of a congestion controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControllerName {
    /// BBR version 3 (draft-ietf-ccwg-bbr).
    Bbr,
    /// CUBIC (RFC 9438).
    Cubic,
    /// NewReno (RFC 9002 §7).
    Newreno,
    /// BBR version 1.
    Bbr1,
    /// Prague, for L4S networks (RFC 9331).
    Prague,
}

impl ControllerName {
    /// All names.
    pub const ALL: [Self; 5] = [Self::Bbr, Self::Cubic, Self::Newreno, Self::Bbr1, Self::Prague];

    /// The controller with its default configuration; `None` if this version of Fulmar does not have it.
    pub fn build(self) -> Option<CongestionControl> {
        match self {
            Self::Bbr => Some(CongestionControl::Bbr(BbrConfig::default())),
            Self::Cubic => Some(CongestionControl::Cubic(CubicConfig::default())),
            Self::Newreno => Some(CongestionControl::NewReno(NewRenoConfig::default())),
            Self::Bbr1 => Some(CongestionControl::Bbr1(Bbr1Config::default())),
            Self::Prague => Some(CongestionControl::Prague(PragueConfig::default())),
        }
    }

    /// What a connection uses whose configuration names no controller; `None` if that is none of these.
    pub fn of_default_configuration() -> Option<Self> {
        match CongestionControl::default() {
            CongestionControl::Bbr(_) => Some(Self::Bbr),
            CongestionControl::Bbr1(_) => Some(Self::Bbr1),
            CongestionControl::Cubic(_) => Some(Self::Cubic),
            CongestionControl::NewReno(_) => Some(Self::Newreno),
            CongestionControl::Prague(_) => Some(Self::Prague),
            CongestionControl::Custom(_) => None,
        }
    }

    /// The name as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bbr => "bbr",
            Self::Cubic => "cubic",
            Self::Newreno => "newreno",
            Self::Bbr1 => "bbr1",
            Self::Prague => "prague",
        }
    }
}

impl fmt::Display for ControllerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
