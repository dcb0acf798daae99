//! Receives several messages at a time, as `quinn-udp` does it.

use std::io::{self, IoSliceMut};

use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};

use crate::registered::Socket;

/// What is kept from one call to the next: nothing.
#[derive(Debug)]
pub(super) struct Messages;

impl Messages {
    pub(super) const fn new() -> Self {
        Self
    }

    /// Receives up to one message for each of `buffers`, and tells of each in `meta`. Returns their number.
    ///
    /// # Errors
    /// Those of the operating system.
    #[allow(clippy::unused_self, reason = "on Linux there is something to keep")]
    pub(super) fn receive(
        &mut self,
        state: &UdpSocketState,
        socket: &Socket,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta; BATCH_SIZE],
    ) -> io::Result<usize> {
        state.recv(socket.into(), buffers, meta)
    }
}
