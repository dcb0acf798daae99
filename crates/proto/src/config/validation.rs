//! The configuration of address validation (RFC 9000 §8.1).

use std::time::Duration;

use super::ConfigError;
use crate::crypto::TokenKeys;

/// When a server asks a client to prove its address before it spends anything on it (RFC 9000 §8.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Only when the application asks: see [`Endpoint::retry`](crate::Endpoint::retry).
    Never,
    /// Always, unless the client shows a token of an earlier connection.
    Always,
    /// While at least this many attempts are half open: waiting to be accepted, or accepted and not heard of again. What came in
    /// that time and has waited for its turn counts as of that time.
    Auto {
        /// The number of half-open attempts.
        half_open: usize,
    },
}

impl Default for RetryPolicy {
    /// Above 256 half-open attempts.
    fn default() -> Self {
        Self::Auto { half_open: 256 }
    }
}

/// How a server validates addresses.
#[derive(Debug, Clone)]
pub struct AddressValidation {
    /// When clients are asked to prove their address. Default [`RetryPolicy::Auto`].
    pub retry: RetryPolicy,
    /// The keys that seal tokens; `None` derives one from the key of stateless resets, so that servers that share the
    /// one share the other. Default `None`.
    pub keys: Option<TokenKeys>,
    /// How long the token of a Retry is good for: a round trip to the most distant client, at least. Default 60 s.
    pub retry_lifetime: Duration,
    /// How long a token for later connections is good for. Default 24 hours.
    pub token_lifetime: Duration,
    /// How many tokens for later connections each connection gives to its client, 0 to 8. Default 2.
    pub tokens_per_connection: usize,
    /// How many used tokens are remembered, so that each counts once. When there are more, the oldest are
    /// forgotten and all tokens that were issued at or before their time count as used. Default 65,536.
    pub used_tokens_max: usize,
}

/// The most tokens that one connection gives away.
pub(crate) const TOKENS_PER_CONNECTION_MAX: usize = 8;

impl Default for AddressValidation {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            keys: None,
            retry_lifetime: Duration::from_secs(60),
            token_lifetime: Duration::from_secs(24 * 60 * 60),
            tokens_per_connection: 2,
            used_tokens_max: 1 << 16,
        }
    }
}

impl AddressValidation {
    /// Checks every value.
    ///
    /// # Errors
    /// The first field that makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check = |holds: bool, field: &'static str, problem: &'static str| match holds {
            true => Ok(()),
            false => Err(ConfigError { field, problem }),
        };
        check(!self.retry_lifetime.is_zero(), "retry_lifetime", "zero: no token would be good")?;
        let few = self.tokens_per_connection <= TOKENS_PER_CONNECTION_MAX;
        check(few, "tokens_per_connection", "more than 8")?;
        check(self.used_tokens_max > 0, "used_tokens_max", "zero: no token could be used")
    }
}
