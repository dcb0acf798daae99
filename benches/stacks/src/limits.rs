//! Sizes that all stacks are given alike.

use std::time::Duration;

/// The flow control windows of streams and connections, and the send buffer, in bytes.
pub(crate) const WINDOW: u32 = 16 << 20;
/// Streams that a peer may have open.
pub(crate) const STREAMS: u32 = 8_192;
/// Ten thousand connections take their time, and none of them may end meanwhile.
pub(crate) const IDLE: Duration = Duration::from_secs(300);
/// Receive buffers of datagrams, in bytes.
pub(crate) const DATAGRAMS: usize = 4 << 20;
