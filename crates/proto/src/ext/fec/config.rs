//! What can be configured of forward erasure correction.

use std::str::FromStr;
use std::time::Duration;

use fulmar_fec::schedule::{Constant, Deadline, DeadlineConfig, NoRepairs, Scheduler, Tail};
use fulmar_fec::{Cauchy, Code, Rlc, SYMBOL_MAX, WINDOW_MAX, Xor};
use fulmar_wire::{FecParameters, VarInt};

use super::BlockCode;
use crate::packet::Protection;

/// Source and repair symbols of [`Protection::Constant`] where the mode has none: with as few, every code will do.
const CONSTANT_DEFAULT: (u16, u16) = (10, 1);

/// The time of [`Protection::Deadline`] where the mode has none: that of conversations.
const DEADLINE_DEFAULT: Duration = Duration::from_millis(150);

/// When repair symbols are sent, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FecMode {
    /// None: this end can recover what its peer protects, and protects nothing itself but streams and datagrams with a
    /// [`Protection`] of their own.
    None,
    /// When the application has nothing to send and the congestion window has room: for the ends of transfers.
    Tail,
    /// After every `source` symbols `repair` repair symbols, whatever the losses are. It does harm on links that lose little:
    /// it is there to be compared with.
    Constant {
        /// Source symbols: 1 to 200.
        source: u16,
        /// Repair symbols: 1 to 55.
        repair: u16,
    },
    /// As many as let what is sent arrive within `within` with a probability of 99.9 % under the measured losses, where a
    /// retransmission would come too late.
    Deadline {
        /// After this time data is of no use.
        within: Duration,
    },
}

/// An erasure code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FecCode {
    /// One repair symbol repairs one loss.
    Xor = 0,
    /// Reed-Solomon with a Cauchy matrix: any losses, as many as there are repair symbols.
    ReedSolomon = 1,
    /// Random linear codes over a sliding window (RFC 8681). Third parties claim patents on such codes.
    Rlc = 2,
}

impl FecCode {
    const ALL: [Self; 3] = [Self::Xor, Self::ReedSolomon, Self::Rlc];

    /// The code with this number on the wire.
    pub(crate) fn of(scheme: u8) -> Option<Self> {
        Self::ALL.get(usize::from(scheme)).copied()
    }

    pub(crate) fn code(self) -> &'static dyn Code {
        match self {
            Self::Xor => &Xor,
            Self::ReedSolomon => &Cauchy,
            Self::Rlc => &Rlc::DENSE,
        }
    }
}

/// The frames and transport parameters in which erasure correction is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FecDialects {
    /// Our own alone (dialect X).
    X,
    /// Those of draft-michel-quic-fec-01 alone (dialect M), as an experimental fork of quic-go has them. There, each two source
    /// symbols are followed by one repair symbol (XOR), or each 20 by ten (Reed-Solomon), and nobody is told what was recovered: it is
    /// there to talk to that fork, and to be compared with.
    M,
    /// Both: our own with peers that have it, and dialect M with others.
    Both,
}

impl FecDialects {
    /// Whether dialect X is one of them.
    pub(crate) fn has_x(self) -> bool {
        self != Self::M
    }

    /// Whether dialect M is one of them.
    pub(crate) fn has_m(self) -> bool {
        self != Self::X
    }
}

/// Forward erasure correction, where the peer has it, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FecConfig {
    /// When this end sends repair symbols. Default [`FecMode::Tail`].
    pub mode: FecMode,
    /// The code of the repair symbols that this end sends. A peer that does not know it gets none. Default
    /// [`FecCode::ReedSolomon`].
    pub code: FecCode,
    /// The most repair symbols for each source symbol, beyond the first 16 repair symbols of the connection: 0 to 1. Does not
    /// bound [`FecMode::Constant`]. Default 0.25.
    pub overhead_max: f64,
    /// The packets that a repair symbol may cover: 1 to 256. This bounds the memory that each direction takes, of 1.5 kB for
    /// each. Default 256.
    pub window: u16,
    /// How it is spoken. In dialect M the numbers of source and repair symbols are fixed, whatever `mode` is, unless that is
    /// [`FecMode::None`]; each end chooses the code of what it receives, so that `code` is that of the peer's repair symbols; and
    /// `overhead_max` is without effect. Default [`FecDialects::X`].
    pub dialects: FecDialects,
}

impl Default for FecConfig {
    fn default() -> Self {
        Self {
            mode: FecMode::Tail,
            code: FecCode::ReedSolomon,
            overhead_max: 0.25,
            window: WINDOW_MAX,
            dialects: FecDialects::X,
        }
    }
}

impl FecConfig {
    /// What is wrong with it.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if !(1..=WINDOW_MAX).contains(&self.window) {
            return Some("with a window that is not 1 to 256");
        }
        if !(0.0..=1.0).contains(&self.overhead_max) {
            return Some("with an overhead_max that is not 0 to 1");
        }
        if self.dialects.has_m() && self.window < BlockCode::SOURCE_MAX {
            return Some("with a window that is smaller than a block of dialect M, which has 20 packets");
        }
        if self.dialects == FecDialects::M && self.code == FecCode::Rlc {
            return Some("with a code that dialect M does not have");
        }
        match self.mode {
            FecMode::Constant { source, repair }
                if !(1..=200).contains(&source) || !(1..=55).contains(&repair) || source > self.window =>
            {
                Some("constant with numbers that are out of range")
            }
            FecMode::Constant { repair: 2.., .. } if self.code == FecCode::Xor => {
                Some("constant with more than one repair symbol of a code that has only one")
            }
            FecMode::Deadline { within } if within.is_zero() => Some("with a deadline of zero"),
            _ => None,
        }
    }

    /// What this end decodes in dialect M, if it speaks that: Reed-Solomon where its own code is one that dialect M does not have.
    pub(crate) fn block_code(&self) -> Option<BlockCode> {
        self.dialects.has_m().then_some(match self.code {
            FecCode::Xor => BlockCode::Xor,
            FecCode::ReedSolomon | FecCode::Rlc => BlockCode::ReedSolomon,
        })
    }

    /// What this end announces in dialect X: it decodes all codes.
    pub(crate) fn parameters(&self) -> FecParameters {
        let schemes = FecCode::ALL.iter().fold(0, |bits, code| bits | 1 << *code as u8);
        FecParameters {
            version: FecParameters::VERSION,
            schemes: VarInt::from_u32(schemes),
            window: VarInt::from_u32(self.window.into()),
            symbol: VarInt::from_u32(SYMBOL_MAX.into()),
        }
    }

    /// What is done for data of which nothing else was said.
    pub(super) fn protection(&self) -> Protection {
        match self.mode {
            FecMode::None => Protection::None,
            FecMode::Tail => Protection::Tail,
            FecMode::Constant { .. } => Protection::Constant,
            FecMode::Deadline { .. } => Protection::Deadline,
        }
    }

    /// After this time data that is protected by [`Protection::Deadline`] is of no use.
    pub(super) fn within(&self) -> Duration {
        match self.mode {
            FecMode::Deadline { within } => within,
            _ => DEADLINE_DEFAULT,
        }
    }

    /// What decides on repair symbols for data with this protection.
    pub(super) fn scheduler(&self, protection: Protection) -> Box<dyn Scheduler> {
        match protection {
            Protection::None => Box::new(NoRepairs),
            Protection::Tail => Box::new(Tail::default()),
            Protection::Constant => {
                let (source, repair) = match self.mode {
                    FecMode::Constant { source, repair } => (source, repair),
                    _ => CONSTANT_DEFAULT,
                };
                Box::new(Constant::new(source.min(self.window), repair))
            }
            Protection::Deadline => {
                let config = DeadlineConfig { overhead_max: self.overhead_max, ..DeadlineConfig::default() };
                Box::new(Deadline::new(config))
            }
        }
    }
}

/// Text that names no mode or no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FecSettingError(&'static str);

impl FromStr for FecMode {
    type Err = FecSettingError;

    /// `none`, `tail`, `constant:K,R` (source and repair symbols) or `deadline:MS` (milliseconds).
    fn from_str(text: &str) -> Result<Self, FecSettingError> {
        const WRONG: FecSettingError = FecSettingError("not one of tail, constant:K,R, deadline:MS and none");
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        match (name, numbers) {
            ("none", "") => Ok(Self::None),
            ("tail", "") => Ok(Self::Tail),
            ("constant", numbers) => {
                let (source, repair) = numbers.split_once(',').ok_or(WRONG)?;
                let number = |text: &str| text.parse().map_err(|_| WRONG);
                Ok(Self::Constant { source: number(source)?, repair: number(repair)? })
            }
            ("deadline", millis) => {
                let millis = millis.parse().map_err(|_| WRONG)?;
                Ok(Self::Deadline { within: Duration::from_millis(millis) })
            }
            _ => Err(WRONG),
        }
    }
}

impl FromStr for FecDialects {
    type Err = FecSettingError;

    /// `x`, `m` or `both`.
    fn from_str(text: &str) -> Result<Self, FecSettingError> {
        match text {
            "x" => Ok(Self::X),
            "m" => Ok(Self::M),
            "both" => Ok(Self::Both),
            _ => Err(FecSettingError("not one of x, m and both")),
        }
    }
}

impl FromStr for FecCode {
    type Err = FecSettingError;

    /// `xor`, `rs` or `rlc`.
    fn from_str(text: &str) -> Result<Self, FecSettingError> {
        match text {
            "xor" => Ok(Self::Xor),
            "rs" => Ok(Self::ReedSolomon),
            "rlc" => Ok(Self::Rlc),
            _ => Err(FecSettingError("not one of xor, rs and rlc")),
        }
    }
}
