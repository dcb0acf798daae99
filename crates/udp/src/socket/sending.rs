//! How a socket sends: trains in one call where the kernel segments, else one datagram after the other.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::{UdpSocket, may_be_report};
use crate::address::{for_socket, ip_for_socket};
use crate::stats::add;

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
    /// Everything was handed to the kernel, or a part of a train was dropped with an error that is counted in
    /// [`SocketStats`](super::SocketStats).
    Done,
    /// The kernel has refused all of it, for this reason, which is counted as well. Another try may fare better.
    Refused(io::ErrorKind),
    /// All of it was dropped because it is too large for the interface of this machine by which it would leave (EMSGSIZE), which is
    /// counted as well. Smaller datagrams may fare better.
    TooLarge,
    /// The socket is full. The first `sent` bytes of the contents (whole segments) are done with; offer the rest when
    /// [`UdpSocket::poll_send_ready`] says so.
    Blocked {
        /// Bytes that need not be offered again.
        sent: usize,
    },
}

impl UdpSocket {
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
                    return self.account(result, transmit.contents.len());
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

    pub(super) fn send_segments(
        &self,
        transmit: &Transmit<'_>,
        segment: usize,
        segments: Segments,
    ) -> SendOutcome {
        let (mut sent, mut outcome) = (0, None);
        for contents in transmit.contents.chunks(segment) {
            match self.send_once(&Transmit { contents, segment_size: None, ..*transmit }) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.blocked(sent),
                result => {
                    let is_news = segments == Segments::OfRefusedTrain && result.is_ok();
                    if is_news && !self.gso_refused.swap(true, Ordering::Relaxed) {
                        add(&self.counters.gso_refused, 1);
                    }
                    let of_segment = self.account(result, contents.len());
                    outcome = Some(outcome.map_or(of_segment, |before| together(before, of_segment)));
                }
            }
            sent += contents.len();
        }
        outcome.unwrap_or(SendOutcome::Done)
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
                &socket2::SockRef::from(self.io.socket()),
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

    /// Counts what became of a call.
    fn account(&self, result: io::Result<()>, bytes: usize) -> SendOutcome {
        match result {
            Ok(()) => {
                add(&self.counters.send_calls, 1);
                add(&self.counters.bytes_sent, bytes as u64);
                SendOutcome::Done
            }
            Err(error) if quinn_udp::is_msg_size_err(&error) => {
                add(&self.counters.too_big, 1);
                SendOutcome::TooLarge
            }
            Err(error) => {
                add(&self.counters.send_errors, 1);
                tracing::debug!(%error, "a datagram could not be sent");
                SendOutcome::Refused(error.kind())
            }
        }
    }
}

/// What became of two parts of a train: they were refused only if both were, and were too large only if both were.
fn together(before: SendOutcome, next: SendOutcome) -> SendOutcome {
    match (before, next) {
        (SendOutcome::Done, _) | (_, SendOutcome::Done) => SendOutcome::Done,
        (before, SendOutcome::TooLarge) => before,
        (_, next) => next,
    }
}

/// What is sent segment by segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segments {
    /// A train where the kernel does not segment, or a single datagram.
    OfTrain,
    /// A train that was refused.
    OfRefusedTrain,
}
