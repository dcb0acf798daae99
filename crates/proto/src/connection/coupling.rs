//! Where coupled congestion control meets the paths: each acknowledgement asks the coupling for the share of its path.

use fulmar_wire::PathId;
use smallvec::SmallVec;

use super::recovery::Recovery;
use crate::congestion::CoupledShare;
use crate::coupling::CoupledPath;
use crate::ids::SpaceId;
use crate::path::{Paths, Tuple};
use crate::space::Losses;

impl Recovery<'_> {
    /// An acknowledgement has come, or packets were found lost: the controller hears its share before it hears of that.
    pub(super) fn couple(&mut self, space: SpaceId, losses: &Losses) {
        let SpaceId::Data(id) = space else { return };
        let paths = &mut *self.owners.paths;
        if paths.multipath.as_ref().is_none_or(|multipath| !multipath.is_coupled()) {
            return;
        }
        let views = views(paths);
        let index = views.iter().position(|path| path.id == id);
        let Some(coupling) = paths.multipath.as_mut().and_then(|multipath| multipath.coupling()) else {
            return;
        };
        let share = match index {
            Some(index) => {
                if !losses.lost.is_empty() {
                    coupling.on_loss(&views, index);
                }
                coupling.share(&views, index)
            }
            // It takes nothing from the others.
            None => CoupledShare::ALONE,
        };
        if let Some(path) = paths.get_mut(id) {
            path.tuple.congestion.couple(share);
        }
    }
}

/// The paths that carry data: what one holds that does not answer is nobody's competitor.
fn views(paths: &Paths) -> SmallVec<[CoupledPath; 8]> {
    let carrying = paths.iter().filter(|path| path.tuple.validated && path.pto.backoff.count() == 0);
    carrying.map(|path| view(path.id, &path.tuple)).collect()
}

fn view(id: PathId, tuple: &Tuple) -> CoupledPath {
    CoupledPath {
        id,
        window: tuple.congestion.controller().window(),
        rtt: tuple.rtt.smoothed(),
        bytes_delivered: tuple.congestion.totals().0,
    }
}
