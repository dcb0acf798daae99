//! What a peer has left of what it may do.

use fulmar_base::Instant;

use crate::config::Rate;
use crate::error::{Error, ErrorCode};

/// How many frames that bring nothing may still come.
#[derive(Debug)]
pub(crate) struct Useless {
    left: u32,
    max: u32,
}

impl Useless {
    pub(crate) fn new(max: u32) -> Self {
        Self { left: max, max }
    }

    /// Something came that brings nothing.
    pub(crate) fn count(&mut self) -> Result<(), Error> {
        let too_many = Error::connection(ErrorCode::ExcessiveLoad, "too many frames that bring nothing");
        self.left = self.left.checked_sub(1).ok_or(too_many)?;
        Ok(())
    }

    /// Something came that is of use, which makes up for one that was not.
    pub(crate) fn make_up(&mut self) {
        self.left = (self.left + 1).min(self.max);
    }

    /// A message came, which makes up for many: greasing each with some reserved frames is no attack.
    pub(crate) fn make_up_for_message(&mut self) {
        self.left = (self.left + 16).min(self.max);
    }
}

/// A bucket of tokens that fills with time.
#[derive(Debug)]
pub(crate) struct Bucket {
    rate: Rate,
    /// In billionths of a token: what a nanosecond brings at one a second.
    nanotokens: u64,
    filled_at: Option<Instant>,
}

const TOKEN: u64 = 1_000_000_000;

impl Bucket {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, nanotokens: u64::from(rate.burst) * TOKEN, filled_at: None }
    }

    /// Takes a token, and returns whether there was one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_since(*self.filled_at.get_or_insert(now));
        self.filled_at = Some(now);
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let fresh = nanos.saturating_mul(u64::from(self.rate.per_second));
        self.nanotokens = self.nanotokens.saturating_add(fresh).min(u64::from(self.rate.burst) * TOKEN);
        let Some(left) = self.nanotokens.checked_sub(TOKEN) else { return false };
        self.nanotokens = left;
        true
    }
}

#[cfg(test)]
mod tests;
