//! Everything that can be configured.
//!
//! Configurations are plain values with documented defaults. They are validated once, where they enter an
//! endpoint, so that the rest of the core can rely on them.

mod endpoint;
mod multipath;
mod peers;
mod transport;
mod validation;

pub use endpoint::EndpointConfig;
pub use multipath::MultipathConfig;
pub use peers::{ClientConfig, ServerConfig};
pub(crate) use transport::MTU_MIN;
pub use transport::{ConfigError, SpinBit, TransportConfig};
pub use validation::{AddressValidation, RetryPolicy};
