//! Path IDs that are gone, as long as something is to be done about them.

use std::collections::VecDeque;

use fulmar_base::Instant;
use fulmar_wire::{Frame, PathAbandon, PathId, VarInt};

use super::{Events, LocalCids};
use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Once;

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

/// The connection IDs of this end at which packets of an abandoned path may still arrive.
#[derive(Debug)]
pub(crate) struct Draining {
    pub(crate) until: Instant,
    pub(crate) cids: LocalCids,
    /// Whether the peer, too, has abandoned the path: from then on it sends nothing there.
    pub(crate) by_both: bool,
}

impl AbandonedPaths {
    /// A path is gone, and the peer is to be told, with this code.
    pub(super) fn add(&mut self, id: PathId, code: VarInt, draining: Option<Draining>, events: &mut Events) {
        if self.paths.len() >= ABANDONED_MAX
            && let Some(draining) = self.paths.pop_front().and_then(|oldest| oldest.draining)
        {
            draining.cids.forget(events);
        }
        self.paths.push_back(Abandoned { id, frame: Once::Pending(code), draining });
    }

    /// The peer has abandoned a path that this end had abandoned before: what it sent there has arrived by `until`.
    pub(crate) fn on_by_both(&mut self, id: PathId, until: Instant) {
        let mut abandoned = self.paths.iter_mut().filter(|abandoned| abandoned.id == id);
        if let Some(draining) = abandoned.find_map(|abandoned| abandoned.draining.as_mut())
            && !std::mem::replace(&mut draining.by_both, true)
        {
            draining.until = until;
        }
    }

    /// When connection IDs of abandoned paths are forgotten.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.paths.iter().filter_map(|abandoned| Some(abandoned.draining.as_ref()?.until)).min()
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, events: &mut Events) {
        for abandoned in &mut self.paths {
            if let Some(draining) = abandoned.draining.take_if(|draining| draining.until <= now) {
                draining.cids.forget(events);
            }
        }
        self.paths.retain(|abandoned| !abandoned.is_over());
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
