//! What handles and workers share: connections, the tables of endpoints, and the queue by which a handle wakes a worker.
//!
//! It must not know who uses it: neither the handles (`endpoint`, `connection`, `stream`) nor the `worker`.

mod connection;
mod endpoint;
mod ready;
mod totals;
mod waiting;

pub(crate) use connection::{ConnectionRef, Inner, State, index};
pub(crate) use endpoint::{Core, Shared, send_from};
pub(crate) use ready::ReadyQueue;
pub use totals::Totals;
pub(crate) use waiting::Fate;
