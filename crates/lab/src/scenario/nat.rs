//! `[nat]` and `[[shift]]`: how the client's address changes on the way, and when.

use std::net::IpAddr;

use fulmar_sim::NatConfig;
use serde::Deserialize;

use super::values::Seconds;
use crate::{Lab, Shift};

/// The outside addresses of the NAT (RFC 5737).
const OUTSIDE: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];

/// The NAT between the client and the link.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NatSpec {
    kind: NatKind,
    timeout_s: Option<Seconds>,
    /// Whether a rebinding leads to another address, not only to another port.
    #[serde(default)]
    two_addresses: bool,
}

/// Whom a mapping lets through (RFC 4787 §5), and who shares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum NatKind {
    FullCone,
    RestrictedCone,
    PortRestrictedCone,
    Symmetric,
}

/// A change of the client's address.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShiftSpec {
    at_s: Seconds,
    kind: ShiftKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShiftKind {
    Rebinding,
    Move,
    Leap,
}

impl ShiftSpec {
    /// How long after the beginning of the run.
    pub(crate) fn at(self) -> std::time::Duration {
        self.at_s.0
    }
}

impl NatSpec {
    fn model(self) -> NatConfig {
        let [first, second] = OUTSIDE.map(IpAddr::from);
        let config = match self.kind {
            NatKind::FullCone => NatConfig::full_cone(first),
            NatKind::RestrictedCone => NatConfig::restricted_cone(first),
            NatKind::PortRestrictedCone => NatConfig::port_restricted_cone(first),
            NatKind::Symmetric => NatConfig::symmetric(first),
        };
        NatConfig {
            addresses: if self.two_addresses { vec![first, second] } else { vec![first] },
            timeout: self.timeout_s.map_or(config.timeout, |timeout| timeout.0),
            ..config
        }
    }
}

/// The lab with the NAT and the changes of address.
pub(crate) fn apply(mut lab: Lab, nat: Option<NatSpec>, shifts: &[ShiftSpec]) -> Lab {
    if let Some(nat) = nat {
        lab = lab.nat(nat.model());
    }
    for ShiftSpec { at_s, kind } in shifts {
        let shift = match kind {
            ShiftKind::Rebinding => Shift::Rebinding,
            ShiftKind::Move => Shift::Move,
            ShiftKind::Leap => Shift::Leap,
        };
        lab = lab.shift(at_s.0, shift);
    }
    lab
}

/// The first change that makes no sense, by its number, and why.
pub(crate) fn problem(nat: Option<NatSpec>, shifts: &[ShiftSpec]) -> Option<(usize, &'static str)> {
    let number = shifts.iter().position(|shift| shift.kind == ShiftKind::Rebinding && nat.is_none())?;
    Some((number, "a rebinding needs a `[nat]` that forgets its mappings"))
}
