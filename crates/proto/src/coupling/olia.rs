//! OLIA (draft-khalili-mptcp-congestion-control-05).

use fulmar_wire::PathId;
use smallvec::SmallVec;

use super::{CoupledPath, Coupling, fraction, rate_of_all};
use crate::congestion::CoupledShare;

/// As LIA, and moves windows to where they do best ("MPTCP is not Pareto-Optimal: Performance Issues and a Possible Solution",
/// CoNEXT 2012).
///
/// Two departures: where a path would have to shrink without a loss, it does not grow, and where it would grow faster than a flow
/// alone, it grows as that one.
#[derive(Debug, Default)]
pub(super) struct Olia {
    records: SmallVec<[Record; 8]>,
}

/// What a path has carried between its losses.
#[derive(Debug)]
struct Record {
    id: PathId,
    /// Bytes acknowledged when packets were last lost.
    delivered: u64,
    /// Bytes acknowledged between the last two losses.
    between: u64,
}

impl Olia {
    /// Forgets paths that are not there, and begins with new ones.
    fn follow(&mut self, paths: &[CoupledPath]) {
        self.records.retain(|record| paths.iter().any(|path| path.id == record.id));
        for path in paths {
            if self.records.iter().all(|record| record.id != path.id) {
                self.records.push(Record { id: path.id, delivered: 0, between: 0 });
            }
        }
    }

    /// How good a path is: what it carries between two losses (§2.1, l_r), squared, by its round-trip time.
    fn quality(&self, path: &CoupledPath) -> u128 {
        let record = self.records.iter().find(|record| record.id == path.id);
        let carried = record.map_or(path.bytes_delivered, |record| {
            path.bytes_delivered.saturating_sub(record.delivered).max(record.between)
        });
        u128::from(carried).saturating_mul(carried.into()) / path.micros()
    }

    /// What the path gains or gives up beyond its part of all, as a fraction of what a path alone grows by (§2.1, alpha_r).
    fn shift(&self, paths: &[CoupledPath], index: usize) -> Shift {
        let largest = paths.iter().map(|path| path.window).max();
        let is_largest = |path: &CoupledPath| Some(path.window) == largest;
        let best = paths.iter().map(|path| self.quality(path)).max();
        let is_collected = |path: &CoupledPath| Some(self.quality(path)) == best && !is_largest(path);
        let collected = paths.iter().filter(|path| is_collected(path)).count() as u64;
        let part = |among: u64| CoupledShare::ONE / (paths.len() as u64 * among);
        match &paths[index] {
            _ if collected == 0 => Shift::Gain(0),
            path if is_collected(path) => Shift::Gain(part(collected)),
            path if is_largest(path) => {
                Shift::Loss(part(paths.iter().filter(|path| is_largest(path)).count() as u64))
            }
            _ => Shift::Gain(0),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Shift {
    Gain(u64),
    Loss(u64),
}

impl Coupling for Olia {
    fn share(&mut self, paths: &[CoupledPath], index: usize) -> CoupledShare {
        self.follow(paths);
        let part = fraction(paths[index].rate(), rate_of_all(paths));
        let growth = part * part / CoupledShare::ONE;
        CoupledShare::of_growth(match self.shift(paths, index) {
            Shift::Gain(gain) => (growth + gain).min(CoupledShare::ONE),
            Shift::Loss(loss) => growth.saturating_sub(loss),
        })
    }

    fn on_loss(&mut self, paths: &[CoupledPath], index: usize) {
        self.follow(paths);
        let CoupledPath { id, bytes_delivered, .. } = paths[index];
        if let Some(record) = self.records.iter_mut().find(|record| record.id == id) {
            record.between = bytes_delivered.saturating_sub(record.delivered);
            record.delivered = bytes_delivered;
        }
    }
}
