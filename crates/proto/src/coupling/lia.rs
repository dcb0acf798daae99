//! LIA (RFC 6356).

use super::{CoupledPath, Coupling, fraction, rate_of_all};
use crate::congestion::CoupledShare;

/// All paths together grow as fast as one flow would on the path where it had the highest rate, and none faster than alone.
#[derive(Debug)]
pub(super) struct Lia;

impl Coupling for Lia {
    /// RFC 6356 §3: for each window acknowledged a path grows by alpha times its window's part of all windows, with alpha = total *
    /// max(w / rtt^2) / (sum of w / rtt)^2. The total cancels out.
    fn share(&mut self, paths: &[CoupledPath], index: usize) -> CoupledShare {
        let all = rate_of_all(paths);
        let steepness = |path: &CoupledPath| path.rate() * 1_000_000 / path.micros();
        let steepest = paths.iter().map(steepness).max().unwrap_or_default();
        let growth = fraction(u128::from(paths[index].window).saturating_mul(steepest) / all, all);
        CoupledShare::of_growth(growth.min(CoupledShare::ONE))
    }
}
