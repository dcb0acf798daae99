//! Which path the next packets take, where there are several.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;
use smallvec::SmallVec;

use super::Connection;
use crate::datagram::{Transmit, TransmitBatch};
use crate::path::{Multipath, Path, Pending};

/// Paths in the order in which they are asked. More than these take an allocation.
type Order = SmallVec<[PathId; 8]>;

impl Connection {
    /// Writes the next batch for one of the paths: the quickest is asked first, and the others carry data only if it
    /// arrives there before it could on quicker ones.
    pub(super) fn transmit_on_one(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
        self.allow_paths();
        let order = self.order();
        for (index, &id) in order.iter().enumerate() {
            if !self.is_worth_it(&order[..index], id)
                && let Some(path) = self.paths.get_mut(id)
            {
                path.allowed = path.allowed.and(Pending::CONTROL);
            }
            if let Some(transmit) = self.transmit_on(now, id, batch) {
                return Some(transmit);
            }
        }
        None
    }

    /// The paths, the quickest first.
    fn order(&self) -> Order {
        let mut order: SmallVec<[(Duration, PathId); 8]> =
            self.paths.iter().map(|path| (path.tuple.rtt.smoothed(), path.id)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }

    /// Whether what waits to be sent would arrive later, to its last byte, over the quicker paths alone than its first
    /// packet does over this one. Otherwise the path would hold up a stream rather than help it.
    fn is_worth_it(&self, quicker: &[PathId], id: PathId) -> bool {
        let Some(path) = self.paths.get(id) else { return false };
        let carrying = quicker.iter().filter_map(|id| self.paths.get(*id));
        let carrying = carrying.filter(|path| path.allowed.has(Pending::STREAMS));
        let (mut rate, mut delay) = (0, None);
        for path in carrying {
            let rtt = &path.tuple.rtt;
            rate += path.tuple.congestion.controller().window() * 1_000_000
                / rtt.smoothed().as_micros().max(1) as u64;
            delay = delay.or(Some(rtt.smoothed() / 2));
        }
        let Some(delay) = delay else { return true };
        let in_flight: u64 = self.paths.iter().map(|path| path.tuple.congestion.bytes_in_flight()).sum();
        let waiting = self.streams.send_buffered().saturating_sub(in_flight);
        let alone = delay + Duration::from_micros(waiting * 1_000_000 / rate.max(1));
        path.tuple.rtt.smoothed() / 2 + path.tuple.rtt.variance() < alone
    }

    /// Says which paths may carry data: those that are validated, answer, and are no backup; of those that are left, if
    /// there are none, the better ones.
    fn allow_paths(&mut self) {
        let multipath = self.paths.multipath.as_deref();
        let classes: SmallVec<[Class; 8]> =
            self.paths.iter().map(|path| Class::of(path, multipath)).collect();
        let best = classes.iter().min().copied();
        for (path, class) in self.paths.iter_mut().zip(&classes) {
            path.allowed = match class {
                class if Some(*class) == best => Pending::ALL,
                Class { is_unproven: true, .. } => Pending::OWN,
                _ => Pending::CONTROL,
            };
        }
    }
}

/// How good a path is for data. The fields stand in the order of their weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    is_unproven: bool,
    /// Acknowledgements are overdue.
    is_silent: bool,
    is_backup: bool,
}

impl Class {
    fn of(path: &Path, multipath: Option<&Multipath>) -> Self {
        let status = multipath.map_or((true, true), |multipath| multipath.status(path.id));
        Self {
            is_unproven: !path.tuple.validated,
            is_silent: path.pto.backoff.count() > 0,
            is_backup: !status.0 || !status.1,
        }
    }
}
