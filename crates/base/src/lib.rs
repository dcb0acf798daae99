//! Time, randomness and containers for the deterministic core of Fulmar.
//!
//! This crate knows no QUIC word, reads no clock and owns no socket. Everything above it takes its
//! notion of time ([`Instant`]) and chance ([`Rng`]) from here, as arguments, so that the same inputs
//! give the same outputs in a simulated world and on a real one.
//!
//! | item | what it is for |
//! |---|---|
//! | [`Instant`] | a point in time in nanoseconds, comparable and subtractable |
//! | [`Rng`] | a seeded generator that forks into independent ones |
//! | [`RangeSet`] | sorted disjoint ranges of `u64`: acknowledged bytes, received packet numbers |
//! | [`RingMap`] | values under increasing `u64` keys, indexed in constant time |
//! | [`KeyedMap`] | a hash map with a keyed hash and no iteration in hash order |
//! | [`KeyedIndex`] | finds things in a list by keys that they have, with a keyed hash |
//! | [`IdMap`] | indices by IDs that follow one another and live for a short time |
//! | [`ShortQueue`] | a queue that allocates nothing for a single value |
//! | [`Timer`] | an optional deadline with an owner |

#![forbid(unsafe_code)]

mod id_map;
mod instant;
mod keyed_index;
mod keyed_map;
mod range_set;
mod ring_map;
mod rng;
mod short_queue;
mod timer;

pub use id_map::IdMap;
pub use instant::Instant;
pub use keyed_index::KeyedIndex;
pub use keyed_map::{HashKey, KeyedMap};
pub use range_set::RangeSet;
pub use ring_map::RingMap;
pub use rng::Rng;
pub use short_queue::{Iter, ShortQueue};
pub use timer::Timer;
