//! Data goes where it arrives first.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;
use smallvec::SmallVec;

use super::{PathOrder, PathView, Scheduler, Waiting, loss_chance, resends, until_resent};

/// A slower path carries data only if its packet arrives before all that waits could arrive over the quicker ones. So the end of
/// a transfer never waits for a slow path, and several are never worse than the best of them
/// ("ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017).
///
/// It errs on the side of the slower path. One that was used in vain costs bytes: what it brings late is repeated on the quicker
/// ones once these have nothing else to send (`connection/reinjection.rs`), which then carry no more than they would have alone.
/// One that was left out in vain costs time, as nothing makes up for what it would have carried, and its window does not grow. So
/// a quick path counts for no more than it was seen to carry, and the variation of a slow one is not held against it.
///
/// What has just left on a path stands before what is next: a queue of it is seen a round trip later, which is too late for a burst on
/// the quicker of two paths that is the narrower one.
///
/// What a path loses has to be sent again there: it carries so much less, a packet takes longer by the chance of that, and the last of many
/// longer still, as one of them is lost several times (`loss_rounds.rs`). So the end of a transfer does not stay on a narrow path that
/// overflows because that is quick.
#[derive(Debug, Default)]
pub(super) struct EarliestCompletion {
    /// Of the paths that were to be chosen from last.
    bottlenecks: Vec<Bottleneck>,
}

impl Scheduler for EarliestCompletion {
    fn schedule(&mut self, now: Instant, paths: &[PathView], waiting: &Waiting, order: &mut PathOrder) {
        self.bottlenecks.retain(|bottleneck| paths.iter().any(|path| path.id == bottleneck.path));
        let mut quickest: SmallVec<[Choice<'_>; 8]> = SmallVec::new();
        for path in paths {
            let bottleneck = self.bottleneck(now, path);
            let delay = delay(path) + bottleneck.free_at.saturating_since(now) + again(path, 1);
            quickest.push(Choice { path, delay, rate: bottleneck.rate });
        }
        quickest.sort_unstable_by_key(|choice| (choice.delay, choice.path.id));
        let mut quicker = Quicker::default();
        for (index, choice) in quickest.iter().enumerate() {
            if quicker.completion(waiting).is_none_or(|alone| choice.delay < alone) {
                let bytes = choice.in_advance(quickest.get(index + 1), waiting);
                order.push_up_to(choice.path.id, bytes);
                quicker.add(choice, waiting);
            }
        }
    }

    fn on_sent(&mut self, path: PathId, bytes: usize) {
        if let Some(bottleneck) = self.bottlenecks.iter_mut().find(|bottleneck| bottleneck.path == path) {
            bottleneck.on_sent(bytes as u64);
        }
    }
}

impl EarliestCompletion {
    /// The bottleneck of a path, as it is now.
    fn bottleneck(&mut self, now: Instant, path: &PathView) -> &Bottleneck {
        let known = self.bottlenecks.iter().position(|bottleneck| bottleneck.path == path.id);
        let index = known.unwrap_or_else(|| {
            self.bottlenecks.push(Bottleneck { path: path.id, rate: 0, seen: now, free_at: now });
            self.bottlenecks.len() - 1
        });
        let bottleneck = &mut self.bottlenecks[index];
        bottleneck.look(now, path);
        bottleneck
    }
}

/// A path for the next packet.
#[derive(Debug)]
struct Choice<'a> {
    path: &'a PathView,
    /// After what time the packet would arrive.
    delay: Duration,
    /// What the bottleneck lets through, in bytes per second.
    rate: u64,
}

impl Choice<'_> {
    /// How many bytes arrive here before the first one on the path that is the next quickest. Where more waits than the window lets
    /// leave, that one gets its share in any case.
    fn in_advance(&self, next: Option<&Self>, waiting: &Waiting) -> u64 {
        let Some(next) = next.filter(|_| waiting.bytes() <= self.path.window_left) else {
            return u64::MAX;
        };
        let bytes = u128::from(self.rate) * (next.delay - self.delay).as_micros() / 1_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Where the packets of a path wait, taken to let them through at the rate that the path is known to carry.
#[derive(Debug)]
struct Bottleneck {
    path: PathId,
    /// Bytes per second.
    rate: u64,
    /// When it was looked at last, which is before each batch.
    seen: Instant,
    /// When all that has left will be through.
    free_at: Instant,
}

impl Bottleneck {
    fn look(&mut self, now: Instant, path: &PathView) {
        self.rate = carried(path.window, path).max(path.delivery_rate);
        self.seen = now;
        // What was acknowledged is through, whatever the rate was thought to be.
        self.free_at = self.free_at.min(now + time(path.bytes_in_flight, self.rate));
    }

    fn on_sent(&mut self, bytes: u64) {
        self.free_at = self.free_at.max(self.seen) + time(bytes, self.rate);
    }
}

/// The paths before one of them.
#[derive(Debug, Default)]
struct Quicker {
    /// Bytes per second, all together.
    rate: u64,
    delay: Option<Duration>,
    /// How much longer the last of all that waits takes than one packet, as some are lost.
    again: Duration,
}

impl Quicker {
    fn add(&mut self, choice: &Choice<'_>, waiting: &Waiting) {
        let path = choice.path;
        let rate = rate(path);
        self.rate = self.rate.saturating_add(rate);
        self.delay = self.delay.or(Some(choice.delay));
        // Each carries its share.
        let share = u128::from(waiting.bytes()) * u128::from(rate) / u128::from(self.rate.max(1));
        let packets = u64::try_from(share).unwrap_or(u64::MAX) / u64::from(path.mtu.max(1));
        self.again = self.again.max(again(path, packets).saturating_sub(again(path, 1)));
    }

    /// After what time all that waits would have arrived without other paths; `None` if there is none.
    fn completion(&self, waiting: &Waiting) -> Option<Duration> {
        Some(self.delay? + self.again + time(waiting.bytes(), self.rate))
    }
}

/// How much longer the last round trip took than usual. On a path that was just found a queue of many round trips fills within one,
/// which the smoothed time shows when it is over.
fn excess(path: &PathView) -> Duration {
    path.rtt_latest.saturating_sub(path.rtt)
}

/// How long a packet is on its way to the peer.
fn delay(path: &PathView) -> Duration {
    path.delay + excess(path)
}

/// How much later the last of so many packets arrives on average because some are lost.
fn again(path: &PathView, packets: u64) -> Duration {
    match path.bytes_lost {
        0 => Duration::ZERO,
        _ => until_resent(path.rtt + excess(path)).mul_f64(resends(chance(path), packets)),
    }
}

/// The chance that a packet is lost.
fn chance(path: &PathView) -> f64 {
    loss_chance(path.bytes_delivered, path.bytes_lost)
}

/// What a path carries, in bytes per second: a window each round trip without what is lost of it, no more than the pacer lets leave, and
/// no more in a round trip than it has delivered since it was there. A new path has a window that nothing has confirmed, and by that a
/// short one would be faster than any long one.
fn rate(path: &PathView) -> u64 {
    let sent = carried(path.window.min(path.bytes_delivered), path);
    match path.bytes_lost {
        0 => sent,
        _ => (sent as f64 * (1.0 - chance(path))) as u64,
    }
}

/// `bytes` each round trip, in bytes per second, and no more than the pacer lets leave.
fn carried(bytes: u64, path: &PathView) -> u64 {
    let rate = u128::from(bytes) * 1_000_000 / (path.rtt + excess(path)).as_micros().max(1);
    path.pacing_rate.min(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// How long `bytes` take at so many bytes per second.
fn time(bytes: u64, rate: u64) -> Duration {
    let micros = u128::from(bytes) * 1_000_000 / u128::from(rate.max(1));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
