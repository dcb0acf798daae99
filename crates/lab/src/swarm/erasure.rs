//! Which worlds have forward erasure correction, and how it is set at their ends.

use fulmar_base::Rng;
use fulmar_proto::{FecCode, FecConfig, FecDialects, FecMode, Protection};

use super::scenario::Dice;
use crate::Lab;

/// What is drawn here has dice of its own, so that worlds without erasure correction are as they would be if there were none.
const SALT: u64 = 0xfec0_0000_0000_0000;

/// The part of the worlds in which an end may have it.
const SHARE: f64 = 0.3;
/// Streams for which a protection of their own is drawn at most.
const STREAMS_MAX: u64 = 8;

/// The fewest packets that a block of dialect M needs.
const BLOCK_MAX: u64 = 20;
const WINDOW_MAX: u64 = 256;

/// The world, with erasure correction at some ends if its seed says so.
pub(super) fn draw(seed: u64, mut lab: Lab) -> Lab {
    let mut dice = Dice(Rng::from_u64(seed ^ SALT));
    if !dice.0.chance(SHARE) {
        return lab;
    }
    for end in [&mut lab.client, &mut lab.server] {
        let config = dice.erasure();
        end.fec = dice.0.chance(0.9).then_some(config);
        end.idle_duplicates = dice.0.chance(0.2);
    }
    let clients = lab.connections.iter_mut().map(|connecting| &mut connecting.workload);
    for workload in clients.chain([&mut lab.server_workload]) {
        let streams = dice.between(0, STREAMS_MAX);
        workload.protection = (0..streams).map(|_| dice.protection()).collect();
    }
    lab
}

impl Dice {
    fn erasure(&mut self) -> FecConfig {
        let dialects = match self.0.below(4) {
            0 => FecDialects::M,
            1 => FecDialects::Both,
            _ => FecDialects::X,
        };
        let code = match self.0.below(if dialects == FecDialects::M { 2 } else { 3 }) {
            0 => FecCode::Xor,
            1 => FecCode::ReedSolomon,
            _ => FecCode::Rlc,
        };
        let window_min = if dialects == FecDialects::X { 1 } else { BLOCK_MAX };
        let window = self.between(window_min, WINDOW_MAX);
        let mode = match self.0.below(6) {
            0 => FecMode::None,
            1 | 2 => FecMode::Tail,
            3 | 4 => FecMode::Constant {
                source: self.between(1, window.min(200)) as u16,
                repair: if code == FecCode::Xor { 1 } else { self.between(1, 20) as u16 },
            },
            _ => FecMode::Deadline { within: self.millis(1, 1_000) },
        };
        FecConfig { mode, code, overhead_max: self.0.unit(), window: window as u16, dialects }
    }

    fn protection(&mut self) -> Protection {
        match self.0.below(4) {
            0 => Protection::None,
            1 => Protection::Tail,
            2 => Protection::Constant,
            _ => Protection::Deadline,
        }
    }
}
