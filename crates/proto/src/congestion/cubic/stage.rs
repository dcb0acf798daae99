//! The curve of CUBIC: a stage of congestion avoidance (RFC 9438 §4.2, §4.3).

use std::time::Duration;

use fulmar_base::Instant;

use crate::congestion::CoupledShare;

/// The steepness of the curve in tenths of a datagram per cubed second (C, RFC 9438 §5).
const C_TENTHS: i128 = 4;

/// The growth of the Reno-friendly window in datagrams per round trip: 3 (1 - beta) / (1 + beta) = 9/17
/// (alpha, RFC 9438 §4.3).
const ALPHA: (u64, u64) = (9, 17);

/// Microseconds to the third power in a second to the third power.
const CUBED_MICROS: i128 = 1_000_000_000_000_000_000;

/// The curve is not followed further than this from its plateau; it is beyond every window long before.
const MAX_CURVE_MICROS: i128 = 10_000_000_000;

/// The Reno-friendly window is kept in this fraction of a byte: it grows by less than a byte per ACK.
const FRACTION_BITS: u32 = 16;

/// A stage of congestion avoidance, from a reaction to the next.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    /// When it began, moved on by the time in which the application left the window unused.
    start: Instant,
    /// Microseconds from the start to the plateau (K).
    pub(super) to_plateau: u64,
    /// The window at the plateau (W_max).
    pub(super) plateau: u64,
    /// The window that Reno would have (W_est), in fractions of a byte.
    reno: u64,
    /// How fast the time of the curve goes by, in fractions of [`CoupledShare::ONE`].
    pace: u64,
}

impl Stage {
    /// The stage that begins with `window` (RFC 9438 §4.2).
    pub(super) fn new(
        now: Instant,
        window: u64,
        plateau: Option<u64>,
        max_datagram_size: u16,
        share: CoupledShare,
    ) -> Self {
        let pace = pace(share);
        // RFC 9438 §4.8, §4.10: without a loss to return to, the plateau is the present window.
        let plateau = plateau.unwrap_or(window).max(window);
        // K = cbrt((W_max - cwnd_epoch) / C).
        let cubed = u128::from(plateau - window) * 10 * CUBED_MICROS.unsigned_abs()
            / (C_TENTHS.unsigned_abs() * u128::from(max_datagram_size));
        let to_plateau = cube_root(cubed) * CoupledShare::ONE / pace;
        Self { start: now, to_plateau, plateau, reno: window << FRACTION_BITS, pace }
    }

    /// Leaves out time in which the window was not used (RFC 9438 §4.2).
    pub(super) fn pass_over(&mut self, unused: Duration) {
        self.start += unused;
    }

    /// The window of the curve at a time (W_cubic, RFC 9438 §4.2).
    pub(super) fn curve(&self, at: Instant, max_datagram_size: u16) -> u64 {
        let t = i128::try_from(at.saturating_since(self.start).as_micros()).unwrap_or(i128::MAX);
        let distance = t.saturating_sub(i128::from(self.to_plateau)).saturating_mul(self.pace.into());
        let distance = distance / i128::from(CoupledShare::ONE);
        let distance = distance.clamp(-MAX_CURVE_MICROS, MAX_CURVE_MICROS);
        let cubed = C_TENTHS * i128::from(max_datagram_size) * distance * distance * distance;
        let window = i128::from(self.plateau) + cubed / (10 * CUBED_MICROS);
        u64::try_from(window.max(0)).unwrap_or(u64::MAX)
    }

    /// Grows the Reno-friendly window (RFC 9438 §4.3) by `acked`, the bytes that count for growth.
    pub(super) fn grow_reno(&mut self, acked: u64, window: u64, prior_window: u64, max_datagram_size: u16) {
        let (numerator, denominator) = if self.reno_window() >= prior_window { (1, 1) } else { ALPHA };
        let growth =
            (u128::from(acked) * u128::from(max_datagram_size) * u128::from(numerator)) << FRACTION_BITS;
        let growth = growth / (u128::from(window) * u128::from(denominator));
        self.reno = self.reno.saturating_add(u64::try_from(growth).unwrap_or(u64::MAX));
    }

    pub(super) fn reno_window(&self) -> u64 {
        self.reno >> FRACTION_BITS
    }
}

/// How fast the time of the curve goes by for a share of Reno's growth.
///
/// In balance with losses, Reno's window has the square root of what it grows by, and the window of the curve the fourth root
/// of its steepness C. So that a share of growth means the same part of a window for both, C is multiplied by the square of that share, and the
/// time, which stands in the curve to the third power, by the cube root of that. Our own rule: the published couplings are for
/// Reno.
fn pace(share: CoupledShare) -> u64 {
    let growth = u128::from(share.growth.min(CoupledShare::ONE));
    cube_root(growth * growth * u128::from(CoupledShare::ONE)).max(1)
}

/// The largest integer whose cube is at most `value`.
fn cube_root(value: u128) -> u64 {
    let mut root = 0u128;
    // The cube root of 2^128 has 43 bits; each is tried from the highest down.
    for bit in (0..43).rev() {
        let candidate = root | 1 << bit;
        if candidate.checked_pow(3).is_some_and(|cube| cube <= value) {
            root = candidate;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests;
