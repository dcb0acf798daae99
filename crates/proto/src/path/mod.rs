//! Paths and tuples: what lives as long as a path, and what is replaced on migration.

mod rtt;

pub(crate) use rtt::GRANULARITY;
pub use rtt::{INITIAL_RTT, Rtt};

/// Names a tuple (a 4-tuple in use) within a connection. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TupleId(pub(crate) u32);
