//! What the network reports about datagrams: that nobody listens at the port they went to (ICMP, RFC 792, RFC 4443 §3.1).
//!
//! Linux keeps such reports in a queue beside the socket, with the address that the datagram went to, if it is asked to. Anyone
//! can forge one who knows the ports: a report is a hint.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use crate::socket::UdpSocket;

impl UdpSocket {
    /// Asks the kernel to keep reports of the network, for [`next_refusal`](Self::next_refusal). A socket that only serves does
    /// without: each report costs it a system call. On other systems than Linux there are no reports.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn report_refusals(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if !self.reports_refusals.swap(true, Ordering::Relaxed) {
            self.state.enable_transport_errors(self.io.socket().into())?;
        }
        Ok(())
    }

    /// Whether [`report_refusals`](Self::report_refusals) was called.
    pub fn reports_refusals(&self) -> bool {
        self.reports_refusals.load(Ordering::Relaxed)
    }

    /// The next address to which a datagram was sent, and of which the network says that nobody listens there. `None` if there
    /// is no such report; other reports are skipped.
    pub fn next_refusal(&self) -> Option<SocketAddr> {
        #[cfg(target_os = "linux")]
        while let Ok(report) = self.io.read_error(|| linux::next(&socket2::SockRef::from(self.io.socket()))) {
            // From here on the runtime takes the sending side for ready at all times.
            self.has_failed.store(true, Ordering::Relaxed);
            if let Some(destination) = report {
                return Some(self.canonical(destination));
            }
        }
        None
    }

    /// Waits until [`next_refusal`](Self::next_refusal) may have something.
    ///
    /// Cancellation safe.
    ///
    /// # Errors
    /// If the runtime shuts down.
    pub async fn refusal_ready(&self) -> io::Result<()> {
        self.io.failed().await
    }

    /// Whether the runtime may call the sending side ready although the socket is full: an error of the socket does that, for
    /// good. Who has nothing else to do then waits a moment instead of asking again and again.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::MaybeUninit;
    use std::net::SocketAddr;

    use socket2::{MaybeUninitSlice, MsgHdrMut, SockAddr, SockRef};

    use crate::control::messages;

    /// Room for a report (`struct sock_extended_err`), who has sent it, and what else a socket asks for.
    const CONTROL_LEN: usize = 256;

    /// Takes one report out of the queue: the address that the datagram went to, if it was refused there; `None` for any
    /// other report.
    pub(super) fn next(socket: &SockRef<'_>) -> io::Result<Option<SocketAddr>> {
        let mut payload = [MaybeUninit::uninit(); 1];
        let mut payload = [MaybeUninitSlice::new(&mut payload)];
        let mut control = [MaybeUninit::new(0_u8); CONTROL_LEN];
        // Any address has room in it.
        let mut destination = SockAddr::from(SocketAddr::from(([0_u16; 8], 0)));
        let mut message = MsgHdrMut::new()
            .with_addr(&mut destination)
            .with_buffers(&mut payload)
            .with_control(&mut control);
        socket.recvmsg(&mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)?;
        let len = message.control_len();
        let control: Vec<u8> = control.iter().take(len).map(initialized).collect();
        Ok(is_refusal(&control).then(|| destination.as_socket()).flatten())
    }

    #[expect(unsafe_code, reason = "the buffer was made of zeros, and the kernel only writes to it")]
    fn initialized(byte: &MaybeUninit<u8>) -> u8 {
        // SAFETY: every byte of the buffer was initialised with zero.
        unsafe { byte.assume_init() }
    }

    /// Whether control messages tell that the network, not this machine, has refused the datagram (ip(7), `IP_RECVERR`).
    fn is_refusal(control: &[u8]) -> bool {
        let mut messages = messages(control);
        messages
            .find(|it| {
                let kind = (it.level, it.kind);
                kind == (libc::IPPROTO_IP, libc::IP_RECVERR)
                    || kind == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
            })
            .is_some_and(|report| tells_refusal(report.data))
    }

    /// Whether a `struct sock_extended_err`, which begins with the error number and the origin, is of that kind.
    fn tells_refusal(report: &[u8]) -> bool {
        let is_refused = report.starts_with(&(libc::ECONNREFUSED as u32).to_ne_bytes());
        let origins = [libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6];
        is_refused && report.get(4).is_some_and(|origin| origins.contains(origin))
    }
}

#[cfg(test)]
mod tests;
