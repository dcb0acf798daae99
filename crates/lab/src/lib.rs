//! Whole Fulmar endpoints in a simulated network, in virtual time.
//!
//! | file | owns |
//! |---|---|
//! | `crypto` | TLS with seeded randomness, a fixed certificate and a fixed time |
//! | `trace` | the fingerprint of a run |
//!
//! **Invariant**: a run depends on its scenario and its seed only. No clock, no randomness of the operating
//! system, no thread.
#![forbid(unsafe_code)]

pub mod crypto;
mod trace;

pub use trace::{Trace, TraceHash};
