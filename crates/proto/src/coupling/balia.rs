//! BALIA (draft-walid-mptcp-congestion-control-04).

use super::{CoupledPath, Coupling, fraction, rate_of_all};
use crate::congestion::CoupledShare;

/// Balances how friendly the paths are to others against how fast they follow changes ("Multipath TCP: Analysis, Design, and
/// Implementation", IEEE/ACM Transactions on Networking 2016).
#[derive(Debug)]
pub(super) struct Balia;

/// The reduction is at most this many halves of the usual one (§3).
const REDUCTION_MAX_HALVES: u64 = 3;

impl Coupling for Balia {
    /// §3: with x = w / rtt and a = max(x) / x, a path grows by (x / sum of x)^2 * (1 + a) / 2 * (4 + a) / 5 of what it would
    /// alone, and shrinks by min(a, 1.5) times half of the window.
    fn share(&mut self, paths: &[CoupledPath], index: usize) -> CoupledShare {
        let (all, rate) = (rate_of_all(paths), paths[index].rate());
        let best = paths.iter().map(CoupledPath::rate).max().unwrap_or(rate);
        let one = u128::from(CoupledShare::ONE);
        let (part, a) = (u128::from(fraction(rate, all)), u128::from(fraction(best, rate)));
        // (1 + a) (4 + a) x^2 stays below 10 times the square of the best rate's part: nothing overflows.
        let growth = (part * (one + a) / one) * (part * (4 * one + a) / one) / (10 * one);
        let growth = u64::try_from(growth).unwrap_or(CoupledShare::ONE);
        let reduction = u64::try_from(a).unwrap_or(u64::MAX);
        CoupledShare { growth, reduction: reduction.min(REDUCTION_MAX_HALVES * CoupledShare::ONE / 2) }
    }
}
