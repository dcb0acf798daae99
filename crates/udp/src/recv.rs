//! Receive buffers: filled by the kernel, split into datagrams, recycled when their last slice is dropped.

use std::array;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};

#[cfg(target_os = "linux")]
use self::linux::Messages;
use self::pool::Pool;
#[cfg(not(target_os = "linux"))]
use self::portable::Messages;
use crate::address::canonical_at;
use crate::registered::Socket;

#[cfg(target_os = "linux")]
mod linux;
mod pool;
#[cfg(not(target_os = "linux"))]
mod portable;

/// The largest message the kernel delivers: a full UDP datagram, or as many coalesced ones as fit 16 bits of length.
const MESSAGE_MAX: usize = 65_536;
/// The size of one buffer. Twice a message, so that small datagrams share a buffer instead of pinning one each.
const BUFFER_BYTES: usize = 2 * MESSAGE_MAX;
/// Message slots offered to a receive call at first, and while messages are large: more bytes at a time would not stay
/// in the processor's cache until they are looked at.
const SLOTS_MIN: usize = 4;
/// Messages are large if they have at least this many bytes on average.
const LARGE_BYTES: u64 = 8 * 1024;

/// Who seems to have waited for longer has not: somebody has set the clock meanwhile.
const WAITED_MAX: Duration = Duration::from_secs(1);

/// One datagram as it arrived.
#[derive(Debug)]
pub struct Received {
    /// The sender, in canonical form.
    pub remote: SocketAddr,
    /// The address it was sent to, where the platform tells.
    pub local_ip: Option<IpAddr>,
    /// The two ECN bits of the IP header (RFC 3168 §5).
    pub ecn: u8,
    /// How long it had been there when the receive call returned, where the kernel tells when it came, and otherwise zero. On a
    /// machine with other work that may be milliseconds.
    pub waited: Duration,
    /// The UDP payload. It is a slice of a shared receive buffer of 128 KB: keeping the slice keeps the whole buffer
    /// from being reused, so data that is kept for long should be copied. Where slices keep all buffers already, it is a copy of its own.
    pub payload: BytesMut,
}

/// A batch of received messages and the buffers for the next one.
///
/// Use it in a loop: [`UdpSocket::try_recv`](crate::UdpSocket::try_recv) fills it, [`next_datagram`](Self::next_datagram)
/// empties it. No allocation happens per datagram: a buffer whose slices were all dropped is used again.
/// At most 128 buffers (16 MB) are held, those that the application keeps slices of among them: when slices keep 64 or, by the batch that
/// was being given out, up to 95 of them, what comes is given out in copies until 32 or fewer are kept.
pub struct RecvBatch {
    /// One buffer per message, all of its remaining length writable.
    slots: Vec<BytesMut>,
    meta: [RecvMeta; BATCH_SIZE],
    messages: Messages,
    /// Messages of the last receive call, and the first that is not empty yet.
    filled: usize,
    draining: usize,
    /// Bytes of the last receive call.
    bytes: u64,
    /// Whether that was a single datagram.
    is_lone: bool,
    /// Whether the socket is bound to one link.
    is_of_one_link: bool,
    /// The time of day, since the beginning of 1970, when the last receive call returned.
    received_at: Duration,
    pool: Pool,
}

impl Default for RecvBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl RecvBatch {
    /// An empty batch. Its buffers are allocated when they are first needed.
    pub fn new() -> Self {
        Self {
            slots: vec![BytesMut::new(); SLOTS_MIN.min(BATCH_SIZE)],
            meta: [RecvMeta::default(); BATCH_SIZE],
            messages: Messages::new(),
            filled: 0,
            draining: 0,
            bytes: 0,
            is_lone: false,
            is_of_one_link: false,
            received_at: Duration::ZERO,
            pool: Pool::default(),
        }
    }

    /// The next datagram of the batch, or `None` when all were taken.
    pub fn next_datagram(&mut self) -> Option<Received> {
        while self.draining < self.filled {
            let meta = &mut self.meta[self.draining];
            if meta.len == 0 {
                self.draining += 1;
                continue;
            }
            // A stride of zero would never come from the kernel; it must not make this loop endless.
            let len = if meta.stride == 0 { meta.len } else { meta.stride.min(meta.len) };
            meta.len -= len;
            let payload = self.pool.give(self.slots[self.draining].split_to(len));
            return Some(Received {
                remote: canonical_at(meta.addr, self.is_of_one_link),
                local_ip: meta.dst_ip.map(|ip| ip.to_canonical()),
                ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
                waited: meta.timestamp.map_or(Duration::ZERO, |came| waited(came, self.received_at)),
                payload,
            });
        }
        None
    }

    /// Whether the last receive call used every slot, which means that the kernel may hold more.
    pub fn is_full(&self) -> bool {
        self.filled > 0 && self.filled == self.slots.len()
    }

    /// Whether the last receive call returned a single datagram, and had room for more.
    pub fn is_lone(&self) -> bool {
        self.is_lone
    }

    /// Bytes that the last receive call returned.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Datagrams that are waiting in the batch.
    pub(crate) fn datagrams(&self) -> u64 {
        let messages = &self.meta[self.draining..self.filled];
        messages.iter().map(|meta| meta.len.div_ceil(meta.stride.max(1)) as u64).sum()
    }

    /// Fills the batch with one receive call. What was left of the previous batch is dropped.
    pub(crate) fn fill(&mut self, state: &UdpSocketState, socket: &Socket) -> io::Result<usize> {
        let mut slots = self.slots.iter_mut();
        let count = slots.len();
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            array::from_fn(|_| IoSliceMut::new(slots.next().map_or(&mut [], |slot| &mut slot[..])));
        let filled = self.messages.receive(state, socket, &mut buffers[..count], &mut self.meta);
        self.draining = 0;
        self.filled = 0;
        self.filled = filled?;
        if self.meta[..self.filled].iter().any(|meta| meta.timestamp.is_some()) {
            self.received_at = time_of_day();
        }
        self.bytes = self.meta[..self.filled].iter().map(|meta| meta.len as u64).sum();
        self.is_lone = self.filled == 1 && !self.is_full() && self.datagrams() == 1;
        Ok(self.filled)
    }

    /// Gives every slot room for a full message.
    pub(crate) fn prepare(&mut self, is_of_one_link: bool) {
        self.adapt();
        self.is_of_one_link = is_of_one_link;
        self.filled = 0;
        self.draining = 0;
        self.bytes = 0;
        self.is_lone = false;
        for slot in &mut self.slots {
            if slot.len() < MESSAGE_MAX {
                self.pool.refill(slot);
            }
        }
    }
}

impl RecvBatch {
    /// Offers more slots if the kernel filled them all with small messages, and few for large ones.
    fn adapt(&mut self) {
        if !self.is_full() {
            return;
        }
        let is_large = self.bytes / self.filled as u64 >= LARGE_BYTES;
        let slots = if is_large { SLOTS_MIN } else { 2 * self.slots.len() };
        let slots = slots.min(BATCH_SIZE);
        for slot in self.slots.drain(slots.min(self.slots.len())..) {
            self.pool.give_up(slot);
        }
        self.slots.resize(slots, BytesMut::new());
    }
}

/// How long something had been there at `now` that came at `came`, both by a clock that may have been set in between.
fn waited(came: Duration, now: Duration) -> Duration {
    now.checked_sub(came).filter(|waited| *waited <= WAITED_MAX).unwrap_or_default()
}

/// The time since the beginning of 1970, by the clock with which the kernel stamps what it receives.
fn time_of_day() -> Duration {
    #[allow(
        clippy::disallowed_methods,
        reason = "the kernel's stamps are of no use without the time at which they are read"
    )]
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests;
