//! Extensions: components that exist only where the transport parameters of both ends allow.
//!
//! Each is built once, when the peer's parameters are known, and owns its frames. A connection without an extension has no
//! component for it, so nobody else has to ask whether it is on.

mod ack_frequency;
mod address_discovery;
mod fec;
mod quic_bit;
mod timestamps;

pub(crate) use ack_frequency::{AckFigures, AckFrequency, MIN_ACK_DELAY};
pub(crate) use address_discovery::{AddressDiscovery, Observation, unrequested_address};
#[cfg(test)]
pub(crate) use fec::michel_vectors;
pub(crate) use fec::{
    BlockCode, Fec, FecDialect, FecReceiver, FecSender, PathFigures, Protected, Upcoming, may_be_protected,
};
pub use fec::{FecCode, FecConfig, FecDialects, FecMode, FecSettingError, FecStats};
pub(crate) use quic_bit::QuicBit;
pub use timestamps::OneWayDelays;
pub(crate) use timestamps::{Timestamps, unrequested_timestamp};
