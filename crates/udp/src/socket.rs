//! The socket itself.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::SockRef;

use crate::address::{for_socket, ip_for_socket};
use crate::dscp::Dscp;
use crate::open::open;
use crate::reach::Reach;
use crate::recv::RecvBatch;
use crate::registered::Registered;
use crate::stats::{Counters, SocketStats, add};

/// Receive errors (ICMP reports of earlier sends) that one receive call skips before it gives up for this time.
const RECV_ERRORS_MAX: usize = 32;

/// A datagram to send, or a train of datagrams of equal size to one peer.
#[derive(Debug, Clone, Copy)]
pub struct Transmit<'a> {
    /// Where to.
    pub destination: SocketAddr,
    /// The local address to send from, on a socket that is bound to all of them. `None` lets the kernel choose.
    pub source: Option<IpAddr>,
    /// The two ECN bits of the IP header (RFC 3168 §5).
    pub ecn: u8,
    /// The payload, segment after segment.
    pub contents: &'a [u8],
    /// The size of every segment but the last, which may be shorter. `None`: `contents` is one datagram.
    pub segment_size: Option<usize>,
}

/// How far [`UdpSocket::try_send`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum SendOutcome {
    /// Everything was handed to the kernel, or dropped with an error that is counted in [`SocketStats`]: what is too large for the
    /// network, or a part of a train.
    Done,
    /// The kernel has refused all of it, for this reason, which is counted as well. Another try may fare better.
    Refused(io::ErrorKind),
    /// The socket is full. The first `sent` bytes of the contents (whole segments) are done with; offer the rest when
    /// [`UdpSocket::poll_send_ready`] says so.
    Blocked {
        /// Bytes that need not be offered again.
        sent: usize,
    },
}

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
        batch.prepare();
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

    /// Sends as much of `transmit` as the socket takes.
    ///
    /// A train that the kernel refuses (by EIO or EINVAL, it has no error of its own for that) is sent segment by segment. If it takes
    /// those, it was for the segmentation, and [`max_gso_segments`](Self::max_gso_segments) becomes 1; if not, for an address that
    /// nothing can be sent to or from. Other errors lose the datagram, as the network may, and are counted.
    pub fn try_send(&self, transmit: &Transmit<'_>) -> SendOutcome {
        let segment = match transmit.segment_size {
            Some(size) if size > 0 && size < transmit.contents.len() => size,
            _ => transmit.contents.len().max(1),
        };
        if segment < transmit.contents.len() && self.max_gso_segments() > 1 {
            match self.send_once(transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.blocked(0),
                Err(error) if self.may_be_refusal(&error) => {
                    return self.send_segments(transmit, segment, Segments::OfRefusedTrain);
                }
                result => {
                    let refused = self.account(result, transmit.contents.len());
                    return refused.map_or(SendOutcome::Done, SendOutcome::Refused);
                }
            }
        }
        self.send_segments(transmit, segment, Segments::OfTrain)
    }

    /// Sends all of `transmit`, waiting for room where necessary.
    ///
    /// Cancelled, it has sent some leading segments, as a lossy network could have made it look.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub async fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let mut rest = *transmit;
        while let SendOutcome::Blocked { sent } = self.try_send(&rest) {
            rest.contents = &rest.contents[sent..];
            self.io.writable().await?;
        }
        Ok(())
    }

    /// Waits until the socket takes datagrams again. Only the last task that asked is woken.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_writable(cx)
    }

    fn send_segments(&self, transmit: &Transmit<'_>, segment: usize, segments: Segments) -> SendOutcome {
        let (mut sent, mut has_left, mut refused) = (0, false, None);
        for contents in transmit.contents.chunks(segment) {
            match self.send_once(&Transmit { contents, segment_size: None, ..*transmit }) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.blocked(sent),
                result => {
                    let is_news = segments == Segments::OfRefusedTrain && result.is_ok();
                    if is_news && !self.gso_refused.swap(true, Ordering::Relaxed) {
                        add(&self.counters.gso_refused, 1);
                    }
                    has_left |= result.is_ok();
                    refused = self.account(result, contents.len()).or(refused);
                }
            }
            sent += contents.len();
        }
        refused.filter(|_| !has_left).map_or(SendOutcome::Done, SendOutcome::Refused)
    }

    /// Sends once. A report about an earlier datagram, which the kernel gives to the next call instead of doing it, loses nothing;
    /// an error of this call comes again.
    fn send_once(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let reports = self.reports_refusals();
        match self.hand_over(transmit) {
            Err(error) if reports && may_be_report(&error, reports) => self.hand_over(transmit),
            result => result,
        }
    }

    #[cfg(target_os = "linux")]
    fn hand_over(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.filter(|size| *size < transmit.contents.len());
        self.io.send(|| {
            crate::send::send(
                &SockRef::from(self.io.socket()),
                for_socket(transmit.destination, self.is_ipv6),
                transmit.source.map(|ip| ip_for_socket(ip, self.is_ipv6)),
                self.dscp.with_ecn(transmit.ecn),
                segment.and_then(|size| u16::try_from(size).ok()),
                transmit.contents,
            )
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn hand_over(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let message = quinn_udp::Transmit {
            destination: for_socket(transmit.destination, self.is_ipv6),
            ecn: quinn_udp::EcnCodepoint::from_bits(transmit.ecn),
            contents: transmit.contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.source.map(|ip| ip_for_socket(ip, self.is_ipv6)),
        };
        self.io.send(|| self.state.try_send(self.io.socket().into(), &message))
    }

    /// Whether the error of a train may be that of a kernel or a device that cannot segment.
    #[cfg(target_os = "linux")]
    #[allow(clippy::unused_self, reason = "elsewhere the state knows")]
    fn may_be_refusal(&self, error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
    }

    /// Whether a train was refused because the kernel or a device cannot segment: the state stays at one segment from then on.
    #[cfg(not(target_os = "linux"))]
    fn may_be_refusal(&self, _: &io::Error) -> bool {
        self.max_gso_segments() == 1
    }

    fn blocked(&self, sent: usize) -> SendOutcome {
        add(&self.counters.send_blocked, 1);
        SendOutcome::Blocked { sent }
    }

    /// Counts what became of a call, and tells why the kernel has refused it. That something is too large says nothing of the rest.
    fn account(&self, result: io::Result<()>, bytes: usize) -> Option<io::ErrorKind> {
        match result {
            Ok(()) => {
                add(&self.counters.send_calls, 1);
                add(&self.counters.bytes_sent, bytes as u64);
            }
            Err(error) if quinn_udp::is_msg_size_err(&error) => add(&self.counters.too_big, 1),
            Err(error) => {
                add(&self.counters.send_errors, 1);
                tracing::debug!(%error, "a datagram could not be sent");
                return Some(error.kind());
            }
        }
        None
    }
}

/// What is sent segment by segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segments {
    /// A train where the kernel does not segment, or a single datagram.
    OfTrain,
    /// A train that was refused.
    OfRefusedTrain,
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
