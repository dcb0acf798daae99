//! What happened on a socket.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a socket since it was bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Receive calls that returned at least one message.
    pub recv_calls: u64,
    /// Datagrams received, after the kernel's coalescing was undone.
    pub datagrams_received: u64,
    /// Bytes of UDP payload received.
    pub bytes_received: u64,
    /// Errors that a receive call reported, such as an ICMP "port unreachable". They are ignored: anybody can send one.
    pub recv_errors: u64,
    /// Send calls that the kernel accepted; a train of segments is one.
    pub send_calls: u64,
    /// Bytes of UDP payload handed to the kernel.
    pub bytes_sent: u64,
    /// Datagrams that were larger than the interface allows. Expected of MTU probes.
    pub too_big: u64,
    /// Send calls that failed for another reason. The datagrams count as lost.
    pub send_errors: u64,
    /// Times the socket had no room and the sender had to wait.
    pub send_blocked: u64,
    /// Trains that were sent segment by segment because the kernel refused segmentation offload.
    pub gso_refused: u64,
}

/// Of several sockets together.
impl AddAssign for SocketStats {
    fn add_assign(&mut self, other: Self) {
        self.recv_calls += other.recv_calls;
        self.datagrams_received += other.datagrams_received;
        self.bytes_received += other.bytes_received;
        self.recv_errors += other.recv_errors;
        self.send_calls += other.send_calls;
        self.bytes_sent += other.bytes_sent;
        self.too_big += other.too_big;
        self.send_errors += other.send_errors;
        self.send_blocked += other.send_blocked;
        self.gso_refused += other.gso_refused;
    }
}

/// The same numbers, shared. They are statistics only, hence the relaxed ordering.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) recv_calls: AtomicU64,
    pub(crate) datagrams_received: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
    pub(crate) recv_errors: AtomicU64,
    pub(crate) send_calls: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) too_big: AtomicU64,
    pub(crate) send_errors: AtomicU64,
    pub(crate) send_blocked: AtomicU64,
    pub(crate) gso_refused: AtomicU64,
}

impl Counters {
    pub(crate) fn snapshot(&self) -> SocketStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SocketStats {
            recv_calls: read(&self.recv_calls),
            datagrams_received: read(&self.datagrams_received),
            bytes_received: read(&self.bytes_received),
            recv_errors: read(&self.recv_errors),
            send_calls: read(&self.send_calls),
            bytes_sent: read(&self.bytes_sent),
            too_big: read(&self.too_big),
            send_errors: read(&self.send_errors),
            send_blocked: read(&self.send_blocked),
            gso_refused: read(&self.gso_refused),
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
