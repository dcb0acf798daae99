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
pub(crate) use fec::{Fec, FecReceiver, FecSender, Protected, may_be_protected};
pub use fec::{FecCode, FecConfig, FecMode, FecSettingError, FecStats};
pub(crate) use quic_bit::QuicBit;
pub use timestamps::OneWayDelays;
pub(crate) use timestamps::{Timestamps, unrequested_timestamp};
