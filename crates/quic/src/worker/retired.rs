//! Sockets that were replaced by others. They still receive, for a while, what was sent to them before the peers knew.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_udp::UdpSocket;

/// How many are kept; when full, the oldest is closed.
const SOCKETS_MAX: usize = 4;
/// A socket is kept for so many probe timeouts: within one the peer has heard of the new address, unless packets are lost.
const KEEP_PTOS: u32 = 3;
/// The longest time, so that a bad path does not hold on to ports.
const KEEP_MAX: Duration = Duration::from_secs(3);

/// Sockets that are received from and never sent on.
#[derive(Debug, Default)]
pub(super) struct RetiredSockets {
    sockets: VecDeque<(Arc<UdpSocket>, Instant)>,
}

impl RetiredSockets {
    /// Keeps a socket for a while. `timeout` is the longest probe timeout of the connections that use it; zero if there
    /// are none, and the socket is not needed.
    pub(super) fn add(&mut self, socket: Arc<UdpSocket>, now: Instant, timeout: Duration) {
        if timeout.is_zero() {
            return;
        }
        if self.sockets.len() == SOCKETS_MAX {
            self.sockets.pop_front();
        }
        self.sockets.push_back((socket, now + (timeout * KEEP_PTOS).min(KEEP_MAX)));
    }

    /// Closes those whose time is over, and gives the others.
    pub(super) fn open_at(&mut self, now: Instant) -> Vec<Arc<UdpSocket>> {
        self.sockets.retain(|(_, until)| *until > now);
        self.sockets.iter().map(|(socket, _)| socket.clone()).collect()
    }

    /// Closes one before its time.
    pub(super) fn close(&mut self, socket: &Arc<UdpSocket>) {
        self.sockets.retain(|(retired, _)| !Arc::ptr_eq(retired, socket));
    }

    /// When the next one is to be closed.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sockets.iter().map(|(_, until)| *until).min()
    }

    /// Whether one of them has something, or has failed.
    pub(super) fn is_ready(&self, cx: &mut Context<'_>) -> bool {
        self.sockets
            .iter()
            .fold(false, |ready, (socket, _)| ready | matches!(socket.poll_recv_ready(cx), Poll::Ready(_)))
    }
}
