//! Which path the next packets take, where there are several.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::PathId;
use smallvec::SmallVec;

use super::Connection;
use super::turns::streams_lead;
use crate::datagram::{Transmit, TransmitBatch};
use crate::path::{Multipath, Path, Pending};
use crate::rtt::Rtt;
use crate::scheduler::{PathOrder, PathView, Waiting};

impl Connection {
    /// Writes the next batch for one of the paths: those that may carry data are asked in the order of the scheduler, then the
    /// others, which may have something to say of themselves.
    pub(super) fn transmit_on_one(&mut self, now: Instant, batch: &mut TransmitBatch) -> Option<Transmit> {
        if self.paths.is_single() {
            let path = self.paths.primary_mut();
            path.allowed = Pending::ALL;
            let id = path.id;
            return self.transmit_on(now, id, u64::MAX, batch);
        }
        let order = self.schedule(now);
        for &(id, bytes) in order.as_slice() {
            if let Some(transmit) = self.transmit_counted(now, id, bytes, batch) {
                return Some(transmit);
            }
        }
        let mut last = None;
        while let Some(id) = self.paths.next_id(last) {
            last = Some(id);
            if !order.contains(id)
                && let Some(transmit) = self.transmit_counted(now, id, u64::MAX, batch)
            {
                return Some(transmit);
            }
        }
        None
    }

    fn transmit_counted(
        &mut self,
        now: Instant,
        id: PathId,
        bytes: u64,
        batch: &mut TransmitBatch,
    ) -> Option<Transmit> {
        let transmit = self.transmit_on(now, id, bytes, batch)?;
        if let Some(multipath) = &mut self.paths.multipath {
            multipath.scheduler().on_sent(id, transmit.len);
        }
        Some(transmit)
    }

    /// Lets each path send what it may: those that are chosen data, the others what is left.
    fn schedule(&mut self, now: Instant) -> PathOrder {
        let classes = self.classes();
        let best = classes.iter().min().copied();
        let carries = |class: &Class| Some(*class) == best;
        let order = self.order(now, &classes, carries);
        let repeats = self.paths.multipath.as_ref().is_some_and(|m| m.repeats_datagrams());
        let has_repairs = self.extensions.fec_sender().is_some();
        for (path, class) in self.paths.iter_mut().zip(&classes) {
            path.allowed = match class {
                _ if order.contains(path.id) => Pending::ALL,
                Class { is_unproven: true, .. } => Pending::OWN,
                class if repeats && carries(class) => Pending::CONTROL.with(Pending::DATAGRAMS),
                Class { is_silent: false, .. } if has_repairs => Pending::CONTROL.with(Pending::FEC),
                _ => Pending::CONTROL,
            };
        }
        order
    }

    /// The paths that may carry data, in the order of the scheduler: those that are validated, answer, and are no backup; of
    /// those that are left, if there are none, the better ones.
    fn order(&mut self, now: Instant, classes: &[Class], carries: impl Fn(&Class) -> bool) -> PathOrder {
        let (waiting, repeats_on) = (self.waiting(), self.repeats_on());
        let (paths, Some(multipath)) = self.paths.with_multipath() else { return PathOrder::default() };
        let mut views: SmallVec<[PathView; 8]> = SmallVec::new();
        for (index, path) in paths.iter_mut().enumerate() {
            if carries(&classes[index]) {
                views.push(view(now, path, &classes[index], multipath));
            }
        }
        let mut order = PathOrder::default();
        match &*views {
            [only] => order.push(only.id),
            views if let Some(view) = views.iter().find(|view| repeats_on == Some(view.id)) => {
                order.push(view.id);
            }
            views => {
                if let Some(multipath) = &mut self.paths.multipath {
                    multipath.scheduler().schedule(now, views, &waiting, &mut order);
                }
            }
        }
        order
    }

    /// The path for which copies were queued: as long as nothing but them waits they leave nowhere else, least of all on the path that
    /// they are to overtake.
    fn repeats_on(&self) -> Option<PathId> {
        let only_repeats =
            self.streams.is_repeating() && !self.streams.has_fresh() && !self.datagrams.wants_to_send();
        self.paths.multipath.as_ref()?.repeats_on.filter(|_| only_repeats)
    }

    fn waiting(&mut self) -> Waiting {
        Waiting {
            stream_bytes: self.streams.waiting(),
            datagram_bytes: self.datagrams.waiting() as u64,
            urgency: self.streams.next_urgency(),
            datagram: self.datagrams.next_frame_len(),
            deadline: self.datagrams.next_timeout(),
            streams_first: streams_lead(&mut self.streams, &self.datagrams),
        }
    }

    fn classes(&self) -> SmallVec<[Class; 8]> {
        let multipath = self.paths.multipath.as_deref();
        self.paths.iter().map(|path| Class::of(path, multipath)).collect()
    }
}

/// How long a packet is on its way to the peer: the round-trip time without the way back, which may be that of another path.
pub(super) fn delay(path: &Path, multipath: Option<&Multipath>) -> Duration {
    let to_peer = multipath.and_then(|multipath| multipath.to_peer(path.id));
    to_peer.map_or_else(|| path.tuple.rtt.to_peer(), Rtt::smoothed)
}

fn view(now: Instant, path: &mut Path, class: &Class, multipath: &Multipath) -> PathView {
    let (delay, cost) = (delay(path, Some(multipath)), multipath.cost(path.id));
    let tuple = &mut path.tuple;
    let (bytes_delivered, bytes_lost) = tuple.congestion.totals();
    PathView {
        id: path.id,
        rtt: tuple.rtt.smoothed(),
        rtt_latest: tuple.rtt.latest(),
        rtt_variance: tuple.rtt.variance(),
        delay,
        window: tuple.congestion.window(),
        bytes_in_flight: tuple.congestion.bytes_in_flight(),
        window_left: tuple.congestion.window_left(),
        pacing_rate: tuple.congestion.pacing_rate(),
        pacing_budget: tuple.congestion.pacing_budget(now),
        delivery_rate: tuple.congestion.delivery_rate(),
        mtu: tuple.mtu(),
        bytes_delivered,
        bytes_lost,
        is_silent: class.is_silent,
        is_backup: class.is_backup,
        cost,
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
