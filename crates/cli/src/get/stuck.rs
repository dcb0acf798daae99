//! A connection over which nothing more comes, although the server is there.
//!
//! Where a NAT has given the client another port, there are servers that know a connection at its first address only, and others
//! that never send again what was on its way to the old one. QUIC has no remedy for that, but a new connection is one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fulmar::Connection;
use tokio::time::sleep;

use crate::net::{Dialer, Figures};

/// A connection over which some bytes of files came is suspected when there were no more for this long, and for so many round
/// trips.
const SUSPECTED_AFTER: Duration = Duration::from_secs(5);
const SUSPECTED_AFTER_RTTS: u32 = 10;
/// How long it may still bring something once the server has answered elsewhere: the network may have been interrupted.
const CHANCE: Duration = Duration::from_secs(1);

/// What arrives over a connection, and whether this end waits for it.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Bytes of files.
    bytes: AtomicU64,
    /// How many files wait for the disk, and so take no bytes from the connection.
    on_disk: AtomicU64,
}

impl Arrivals {
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Does work with the disk.
    pub(super) async fn while_on_disk<T>(&self, work: impl Future<Output = T>) -> T {
        self.on_disk.fetch_add(1, Ordering::Relaxed);
        let result = work.await;
        self.on_disk.fetch_sub(1, Ordering::Relaxed);
        result
    }

    fn count(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether `before` bytes had come, no more have, and none was left lying here.
    fn have_ceased_at(&self, before: u64) -> bool {
        self.count() == before && self.on_disk.load(Ordering::Relaxed) == 0
    }
}

/// Waits until a connection is stuck, and returns another one and how long its handshake took.
pub(super) async fn replacement(
    dialer: &Dialer,
    stuck: &Connection,
    arrivals: &Arrivals,
) -> (Connection, Duration) {
    loop {
        let before = arrivals.count();
        let rtt = Figures::of(stuck).rtt;
        sleep(SUSPECTED_AFTER.max(rtt * SUSPECTED_AFTER_RTTS)).await;
        // Before the first byte a server may have to think.
        if before == 0 || !arrivals.have_ceased_at(before) {
            continue;
        }
        let start = Instant::now();
        let Ok(other) = dialer.dial().await else { continue };
        let handshake = start.elapsed();
        sleep(CHANCE.max(rtt * SUSPECTED_AFTER_RTTS)).await;
        if arrivals.have_ceased_at(before) {
            return (other, handshake);
        }
        dialer.hang_up(&other).await;
    }
}
