//! A client and a server joined by memory, to measure what a core costs without sockets: Fulmar's, and quinn's beside it.
#![forbid(unsafe_code)]

mod fulmar;
mod quinn;
mod tls;
mod train;

pub use fulmar::{Pair, Setup};
pub use quinn::QuinnPair;

use std::time::Duration;

/// Datagrams in a train, as a kernel with segmentation offload takes them.
const SEGMENTS: usize = 44;
/// How long a train is on its way.
const DELAY: Duration = Duration::from_micros(20);
/// Flow control windows and send buffer of both cores.
const WINDOW: u32 = 16 << 20;
/// The UDP payload of full packets of both cores.
const PAYLOAD: u16 = 1_452;
/// The ends' addresses, in both cores.
const CLIENT: &str = "127.0.0.1:1000";
const SERVER: &str = "127.0.0.1:443";
