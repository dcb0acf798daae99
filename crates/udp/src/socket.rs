//! The socket itself.

mod sending;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::SockRef;

use crate::address::canonical_at;
use crate::dscp::Dscp;
use crate::open::open;
use crate::reach::Reach;
use crate::recv::RecvBatch;
use crate::registered::Registered;
use crate::stats::{Counters, SocketStats, add};

pub use self::sending::{SendOutcome, Transmit};

/// Receive errors (ICMP reports of earlier sends) that one receive call skips before it gives up for this time.
const RECV_ERRORS_MAX: usize = 32;

/// The sizes of the kernel's buffers, in bytes, as the kernel reports them (Linux doubles what was asked for).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSizes {
    /// `SO_RCVBUF`.
    pub recv: usize,
    /// `SO_SNDBUF`.
    pub send: usize,
}

/// A UDP socket registered with the tokio runtime it was created in.
///
/// It is not connected: one socket serves all peers. On Unix it takes two file descriptors. All methods take `&self`; the readiness methods remember one task only.
#[derive(Debug)]
pub struct UdpSocket {
    pub(crate) io: Registered,
    pub(crate) state: UdpSocketState,
    is_ipv6: bool,
    reach: Reach,
    dscp: Dscp,
    /// The kernel has refused to segment what it sends segment by segment.
    gso_refused: AtomicBool,
    /// The kernel keeps reports of the network about what was sent.
    pub(crate) reports_refusals: AtomicBool,
    /// There was such a report.
    pub(crate) has_failed: AtomicBool,
    counters: Arc<Counters>,
}

impl UdpSocket {
    /// Binds a socket, asks for large buffers and, for `[::]`, accepts IPv4 as well.
    ///
    /// # Errors
    /// Those of the operating system, for example that the address is in use.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn bind(addr: SocketAddr) -> io::Result<Self> {
        Self::from_std(open(addr, |_| Ok(()))?)
    }

    /// Takes over a bound socket as it is. Its buffers keep their sizes.
    ///
    /// # Errors
    /// Those of the operating system when the socket's options are set.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let is_ipv6 = socket.local_addr()?.is_ipv6();
        let reach = Reach::of(&socket)?;
        socket.set_nonblocking(true)?;
        let io = Registered::new(socket)?;
        let counters = Arc::default();
        Ok(Self {
            io,
            state,
            is_ipv6,
            reach,
            dscp: Dscp::default(),
            gso_refused: AtomicBool::new(false),
            reports_refusals: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            counters,
        })
    }

    /// The same socket, which gives all that it sends a differentiated services code point, beside the ECN bits of each
    /// [`Transmit`].
    ///
    /// # Errors
    /// `Unsupported` for another code point than 0 on other systems than Linux.
    pub fn with_dscp(self, dscp: Dscp) -> io::Result<Self> {
        if dscp != Dscp::default() && !cfg!(target_os = "linux") {
            let reason = "differentiated services code points are for Linux";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        Ok(Self { dscp, ..self })
    }

    /// The same socket, which takes the place of another and goes on with its counters. What happens to either of them counts there.
    #[must_use]
    pub fn in_place_of(self, other: &Self) -> Self {
        Self { counters: other.counters.clone(), ..self }
    }

    /// The code point that it gives to what it sends.
    pub fn dscp(&self) -> Dscp {
        self.dscp
    }

    /// The address the socket is bound to.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.socket().local_addr()
    }

    /// Whether a datagram to `remote` can leave through this socket at all: what is bound to an address reaches none of the other
    /// family, and what is bound to `[::]` reaches both, unless it was made for IPv6 only.
    pub fn can_reach(&self, remote: SocketAddr) -> bool {
        self.reach.covers(remote)
    }

    /// An address as this socket tells it of what it receives from there: what is sent to the one comes back from the other.
    pub fn canonical(&self, remote: SocketAddr) -> SocketAddr {
        canonical_at(remote, self.reach.is_of_one_link())
    }

    /// What the kernel granted for its buffers.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn buffer_sizes(&self) -> io::Result<BufferSizes> {
        let socket = SockRef::from(self.io.socket());
        Ok(BufferSizes { recv: socket.recv_buffer_size()?, send: socket.send_buffer_size()? })
    }

    /// The most segments that one [`Transmit`] should have: 1 where the kernel does not segment, or once it refused to.
    pub fn max_gso_segments(&self) -> usize {
        match self.gso_refused.load(Ordering::Relaxed) {
            true => 1,
            false => self.state.max_gso_segments(),
        }
    }

    /// The most datagrams that the kernel coalesces into one message; 1 where it does not coalesce.
    pub fn max_gro_segments(&self) -> usize {
        self.state.gro_segments()
    }

    /// Whether the network may fragment datagrams of this socket, which makes MTU probes meaningless.
    pub fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// The counters of this socket, and of those that it has taken the place of.
    pub fn stats(&self) -> SocketStats {
        self.counters.snapshot()
    }

    /// Receives what is there into `batch` and returns the number of messages, each one or more datagrams.
    ///
    /// Reports of the network about earlier datagrams, such as "port unreachable", are counted and skipped: on a socket that
    /// serves many peers they concern none in particular, and anybody can forge them. On one that was asked to keep them
    /// ([`report_refusals`](Self::report_refusals)) any error may be one.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; [`poll_recv_ready`](Self::poll_recv_ready) then waits. Others come from the operating system.
    pub fn try_recv(&self, batch: &mut RecvBatch) -> io::Result<usize> {
        self.receive(batch, |_| false)
    }

    /// As [`try_recv`](Self::try_recv), but takes the socket for empty after a datagram that has come alone, so that the next call
    /// does not ask the kernel before [`poll_recv_ready`](Self::poll_recv_ready) has told of another one. That spares a system
    /// call where there is one packet at a time, and is a loss where there are many: a look at the socket finds the next one
    /// before the runtime tells of it.
    ///
    /// # Errors
    /// Those of `try_recv`.
    pub fn try_recv_lone(&self, batch: &mut RecvBatch) -> io::Result<usize> {
        self.receive(batch, RecvBatch::is_lone)
    }

    fn receive(&self, batch: &mut RecvBatch, is_last: fn(&RecvBatch) -> bool) -> io::Result<usize> {
        batch.prepare(self.reach.is_of_one_link());
        let mut skipped = 0;
        loop {
            // The runtime forgets that the socket is readable, unless it has heard of more since this began, if it is told that
            // the call would have blocked.
            let mut last = None;
            let result = self.io.receive(|| {
                let messages = batch.fill(&self.state, self.io.socket())?;
                if is_last(batch) {
                    last = Some(messages);
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(messages)
            });
            match last.map_or(result, Ok) {
                Ok(messages) => {
                    add(&self.counters.recv_calls, 1);
                    add(&self.counters.datagrams_received, batch.datagrams());
                    add(&self.counters.bytes_received, batch.bytes());
                    return Ok(messages);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) => {
                    add(&self.counters.recv_errors, 1);
                    skipped += 1;
                    if !may_be_report(&error, self.reports_refusals()) || skipped == RECV_ERRORS_MAX {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Waits until something can be received, then receives it as [`try_recv`](Self::try_recv) does.
    ///
    /// Cancellation safe: a batch is either received or not.
    ///
    /// # Errors
    /// Those of the operating system.
    pub async fn recv(&self, batch: &mut RecvBatch) -> io::Result<usize> {
        loop {
            self.io.readable().await?;
            match self.try_recv(batch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }

    /// Waits until something can be received. Only the last task that asked is woken.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_readable(cx)
    }
}

/// Whether an error of a call may report the fate of an earlier datagram rather than trouble with the socket. Of a socket to which
/// the kernel gives such reports it may be any error: what routers send is as different as "too big", "prohibited" and "no such
/// protocol", and who forges reports chooses among them.
fn may_be_report(error: &io::Error, reports_refusals: bool) -> bool {
    match error.kind() {
        io::ErrorKind::WouldBlock => false,
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown => true,
        _ => reports_refusals,
    }
}

#[cfg(test)]
mod tests;
