//! What handles and workers share: connections, the tables of workers, and the queue by which a handle wakes a worker.
//!
//! It must not know who uses it: neither the handles (`endpoint`, `connection`, `stream`) nor the `worker`.

mod attempts;
mod common;
mod connection;
mod drop_codes;
mod endpoint;
mod known_paths;
mod life;
mod paths;
mod proto;
mod readers;
mod ready;
mod replies;
mod sockets;
mod steering;
mod table;
mod totals;
mod waiting;
mod worker;

pub(crate) use common::Common;
pub(crate) use connection::{ConnectionRef, Inner, State, WeakConnectionRef};
pub use drop_codes::DropCodes;
pub(crate) use endpoint::Shared;
pub(crate) use readers::{Patience, Readers};
pub(crate) use ready::ReadyQueue;
pub(crate) use sockets::Sockets;
pub(crate) use steering::Steering;
pub(crate) use table::{Accepted, Core};
pub use totals::Totals;
pub(crate) use waiting::{Awaited, Completion, SlotKey, Ticket};
pub(crate) use worker::{Forwarded, WorkerShared};
