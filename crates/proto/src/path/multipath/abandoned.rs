//! Path IDs that are gone, as long as something is to be done about them.

use std::collections::VecDeque;

use fulmar_base::Instant;
use fulmar_wire::{ConnectionId, Frame, PathAbandon, PathId, VarInt};
use smallvec::SmallVec;

use super::{Events, LocalCids};
use crate::datagram::Ecn;
use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Once;
use crate::space::NumberSpace;

/// How many abandoned paths are remembered whose frame is not acknowledged, or whose connection IDs may still arrive. When
/// there are more, the oldest are forgotten: a frame is not repeated, late packets are answered with a stateless reset.
pub(super) const ABANDONED_MAX: usize = 32;

/// The paths whose PATH_ABANDON is not acknowledged, or whose packets may still arrive.
///
/// Bounded: [`ABANDONED_MAX`] of them.
#[derive(Debug, Default)]
pub(crate) struct AbandonedPaths {
    paths: VecDeque<Abandoned>,
}

/// One of them.
#[derive(Debug)]
struct Abandoned {
    id: PathId,
    frame: Once<VarInt>,
    draining: Option<Draining>,
}

/// What takes the packets of an abandoned path that may still arrive: the peer may have sent them before it knew (RFC 10069 §3.4).
#[derive(Debug)]
pub(crate) struct Draining {
    until: Instant,
    /// Whether the peer, too, has abandoned the path: from then on it sends nothing there.
    by_both: bool,
    cids: LocalCids,
    numbers: Box<NumberSpace>,
}

impl Draining {
    pub(crate) fn new(until: Instant, by_both: bool, cids: LocalCids, mut numbers: NumberSpace) -> Self {
        numbers.rest();
        if numbers.has_ack_news() {
            numbers.demand_ack();
        }
        Self { until, by_both, cids, numbers: Box::new(numbers) }
    }
}

impl AbandonedPaths {
    /// A path is gone, and the peer is to be told, with this code. Returns the path that is forgotten for it.
    pub(super) fn add(
        &mut self,
        id: PathId,
        code: VarInt,
        draining: Option<Draining>,
        events: &mut Events,
    ) -> Option<PathId> {
        let oldest = if self.paths.len() >= ABANDONED_MAX { self.paths.pop_front() } else { None };
        self.paths.push_back(Abandoned { id, frame: Once::Pending(code), draining });
        let Abandoned { id, draining, .. } = oldest?;
        draining?.cids.forget(events);
        Some(id)
    }

    fn draining(&self) -> impl Iterator<Item = (PathId, &Draining)> {
        self.paths.iter().filter_map(|abandoned| Some((abandoned.id, abandoned.draining.as_ref()?)))
    }

    fn draining_mut(&mut self) -> impl Iterator<Item = (PathId, &mut Draining)> {
        self.paths.iter_mut().filter_map(|abandoned| Some((abandoned.id, abandoned.draining.as_mut()?)))
    }

    /// To which path a connection ID belonged.
    pub(crate) fn of_cid(&self, dst: &ConnectionId) -> Option<PathId> {
        self.draining().find(|(_, draining)| draining.cids.is_issued(dst)).map(|(id, _)| id)
    }

    /// The packet numbers of a path.
    pub(crate) fn numbers_of(&self, id: PathId) -> Option<&NumberSpace> {
        self.draining().find(|(of, _)| *of == id).map(|(_, draining)| &*draining.numbers)
    }

    /// A packet of a path has arrived after all. It is acknowledged on another one.
    pub(crate) fn on_received(&mut self, now: Instant, id: PathId, number: u64, asks: bool, ecn: Ecn) {
        if let Some((_, draining)) = self.draining_mut().find(|(of, _)| *of == id) {
            draining.numbers.on_received(now, number, asks, ecn);
        }
    }

    /// Whether packets are to be acknowledged now.
    pub(crate) fn needs_ack(&self, now: Instant) -> bool {
        self.draining().any(|(_, draining)| draining.numbers.needs_ack(now))
    }

    /// Writes what finds room of the acknowledgements that are due, and returns how many that is.
    pub(crate) fn write_acks(
        &mut self,
        now: Instant,
        ack_delay_exponent: u8,
        out: &mut FrameWriter<'_>,
    ) -> u64 {
        let mut written = 0;
        for (id, draining) in self.draining_mut().filter(|(_, draining)| draining.numbers.needs_ack(now)) {
            written += u64::from(draining.numbers.write_ack(now, id, ack_delay_exponent, out));
        }
        written
    }

    /// The peer has abandoned a path that this end had abandoned before: what it sent there has arrived by `until`.
    pub(crate) fn on_by_both(&mut self, id: PathId, until: Instant) {
        if let Some((_, draining)) = self.draining_mut().find(|(of, _)| *of == id)
            && !std::mem::replace(&mut draining.by_both, true)
        {
            draining.until = until;
        }
    }

    /// When abandoned paths are forgotten, or what came on them is to be acknowledged.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let deadlines = self.draining().flat_map(|(_, draining)| {
            let ack = draining.numbers.ack_deadline();
            ack.into_iter().chain([draining.until])
        });
        deadlines.min()
    }

    /// Forgets those whose time is over, and returns them. An acknowledgement that is due waits for no timer any more.
    pub(crate) fn on_timeout(&mut self, now: Instant, events: &mut Events) -> SmallVec<[PathId; 8]> {
        let mut over = SmallVec::new();
        for abandoned in &mut self.paths {
            if let Some(draining) = abandoned.draining.take_if(|draining| draining.until <= now) {
                draining.cids.forget(events);
                over.push(abandoned.id);
            }
        }
        for (_, Draining { numbers, .. }) in self.draining_mut() {
            if numbers.needs_ack(now) {
                numbers.demand_ack();
            }
        }
        self.paths.retain(|abandoned| !abandoned.is_over());
        over
    }

    pub(super) fn wants_to_send(&self) -> bool {
        self.paths.iter().any(|abandoned| matches!(abandoned.frame, Once::Pending(_)))
    }

    /// Writes what the peer is to be told; `false` if that has no room.
    pub(super) fn write(&mut self, out: &mut FrameWriter<'_>) -> bool {
        for Abandoned { id, frame, .. } in &mut self.paths {
            if let Once::Pending(code) = *frame {
                let abandon = Frame::PathAbandon(PathAbandon { path: *id, code });
                if !out.write(&abandon, SentFrame::PathAbandon(*id)) {
                    return false;
                }
                *frame = Once::Sent(code);
            }
        }
        true
    }

    /// A PATH_ABANDON was acknowledged, or has to be repeated.
    pub(super) fn on_delivery(&mut self, id: PathId, acked: bool) {
        for abandoned in self.paths.iter_mut().filter(|abandoned| abandoned.id == id) {
            abandoned.frame = match abandoned.frame {
                _ if acked => Once::Acked,
                Once::Sent(code) => Once::Pending(code),
                ref other => other.clone(),
            };
        }
        self.paths.retain(|abandoned| !abandoned.is_over());
    }

    #[cfg(test)]
    pub(super) fn oldest(&self) -> Option<PathId> {
        self.paths.front().map(|abandoned| abandoned.id)
    }
}

impl Abandoned {
    fn is_over(&self) -> bool {
        self.draining.is_none() && matches!(self.frame, Once::Acked)
    }
}
