//! Congestion controllers by name: those of the stack, and those of others.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use fulmar_proto::congestion::{
    Bbr1Config, BbrConfig, CongestionControl, ControllerFactory, CubicConfig, NewRenoConfig, PragueConfig,
};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The controllers of others, by name. A process registers them before it runs anything.
static OWN: RwLock<BTreeMap<&'static str, OwnController>> = RwLock::new(BTreeMap::new());

/// The name of a congestion controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// An [`OwnController`] with this name.
    Own(&'static str),
}

/// A controller that is not part of Fulmar, under the name that scenarios, campaigns and reports know it by.
#[derive(Debug, Clone, Copy)]
pub struct OwnController {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Makes it of the parameters that a scenario gives it, which may be none; complains of those that make no sense.
    pub configure: fn(&Parameters) -> Result<Arc<dyn ControllerFactory>, String>,
}

/// What a scenario says in `[controllers.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Parameters(toml::Table);

impl Parameters {
    /// The parameters as a struct, whose `#[serde(default)]` says what holds for those that are not there.
    ///
    /// # Errors
    /// What does not fit into it, in words.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        self.0.clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }
}

impl OwnController {
    /// Makes its name known to this process: to scenarios, campaigns and the command line.
    ///
    /// # Errors
    /// The name is taken, or is none.
    pub fn register(self) -> Result<(), String> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(fits) {
            return Err(format!("`{}` is no name of a controller: a-z, 0-9 and - are allowed", self.name));
        }
        let mut own = OWN.write().unwrap_or_else(PoisonError::into_inner);
        let is_builtin = ControllerName::BUILTIN.iter().any(|name| name.as_str() == self.name);
        if is_builtin || own.contains_key(self.name) {
            return Err(format!("there is a controller `{}` already", self.name));
        }
        own.insert(self.name, self);
        Ok(())
    }

    fn named(name: &str) -> Option<Self> {
        OWN.read().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }
}

/// The parameters of those controllers of the stack that have no others.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WindowParameters {
    initial_window: Option<NonZeroU64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CubicParameters {
    initial_window: Option<NonZeroU64>,
    fast_convergence: Option<bool>,
    tolerate_random_loss: Option<bool>,
}

impl CubicParameters {
    fn config(&self) -> CubicConfig {
        let base = CubicConfig::default();
        CubicConfig {
            initial_window: self.initial_window.map(NonZeroU64::get).or(base.initial_window),
            fast_convergence: self.fast_convergence.unwrap_or(base.fast_convergence),
            tolerate_random_loss: self.tolerate_random_loss.unwrap_or(base.tolerate_random_loss),
        }
    }
}

impl ControllerName {
    /// The names of the stack's own controllers.
    pub const BUILTIN: [Self; 5] = [Self::Bbr, Self::Cubic, Self::Newreno, Self::Bbr1, Self::Prague];

    /// All names, those of registered controllers last.
    pub fn all() -> Vec<Self> {
        let own = OWN.read().unwrap_or_else(PoisonError::into_inner);
        Self::BUILTIN.into_iter().chain(own.keys().map(|name| Self::Own(name))).collect()
    }

    /// The controller with these parameters.
    ///
    /// # Errors
    /// There is no such controller, or it cannot have these parameters.
    pub fn configure(self, parameters: &Parameters) -> Result<CongestionControl, String> {
        let initial_window =
            || parameters.read::<WindowParameters>().map(|read| read.initial_window.map(NonZeroU64::get));
        Ok(match self {
            Self::Bbr => CongestionControl::Bbr(BbrConfig { initial_window: initial_window()? }),
            Self::Cubic => CongestionControl::Cubic(parameters.read::<CubicParameters>()?.config()),
            Self::Newreno => CongestionControl::NewReno(NewRenoConfig { initial_window: initial_window()? }),
            Self::Bbr1 => CongestionControl::Bbr1(Bbr1Config { initial_window: initial_window()? }),
            Self::Prague => CongestionControl::Prague(PragueConfig { initial_window: initial_window()? }),
            Self::Own(name) => {
                let own = OwnController::named(name)
                    .ok_or_else(|| format!("this program does not have the controller {name}"))?;
                CongestionControl::Custom((own.configure)(parameters)?)
            }
        })
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
            Self::Own(name) => name,
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Bbr => "BBR version 3",
            Self::Cubic => "CUBIC (RFC 9438)",
            Self::Newreno => "NewReno (RFC 9002)",
            Self::Bbr1 => "BBR version 1",
            Self::Prague => "Prague, for L4S networks",
            Self::Own(name) => OwnController::named(name).map_or("", |own| own.about),
        }
    }
}

impl FromStr for ControllerName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let all = Self::all();
        all.iter().copied().find(|name| name.as_str() == text).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|name| name.as_str()).collect();
            format!("there is no controller `{text}`, only {}", names.join(", "))
        })
    }
}

impl<'de> Deserialize<'de> for ControllerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for ControllerName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for ControllerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests;
