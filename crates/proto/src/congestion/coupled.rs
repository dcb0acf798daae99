//! How much of its own growth and reduction a controller has where several paths are coupled.

/// What a coupling leaves to the controller of a path, in fractions of [`CoupledShare::ONE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoupledShare {
    /// How fast the window grows in congestion avoidance, as a part of how fast that of NewReno would. A controller that grows
    /// otherwise does so that it takes as much less beside others of its kind: a window in balance with losses has the square root of
    /// this part.
    pub growth: u64,
    /// How much is taken off the window at a loss, as a part of what would be.
    pub reduction: u64,
}

impl CoupledShare {
    /// The whole.
    pub const ONE: u64 = 1 << 16;

    /// That of a path alone.
    pub const ALONE: Self = Self { growth: Self::ONE, reduction: Self::ONE };

    /// A part of the growth, and the whole reduction.
    pub const fn of_growth(growth: u64) -> Self {
        Self { growth, ..Self::ALONE }
    }

    /// What these acknowledged bytes count for.
    pub(super) fn grown(self, bytes: u64) -> u64 {
        scale(bytes, self.growth)
    }

    /// The window after a reduction from `window` to `reduced` by a path alone.
    pub(super) fn reduced(self, window: u64, reduced: u64) -> u64 {
        window - scale(window.saturating_sub(reduced), self.reduction).min(window)
    }
}

/// A fraction of `value`.
fn scale(value: u64, fraction: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(fraction) / u128::from(CoupledShare::ONE);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
