//! A path in a few bytes, while its connection rests.

use std::sync::Arc;

use super::{LocalCids, Path, Tuple};
use crate::config::EndpointConfig;
use crate::congestion::{CongestionState, Controller, Rested};
use crate::space::SentRecords;

/// A path that is packed, and will be what it was.
pub(crate) struct PackedPath {
    bytes: Box<[u8]>,
    records: Option<Box<SentRecords>>,
    config: Arc<EndpointConfig>,
    controller: PackedController,
}

enum PackedController {
    /// It knows no smaller form.
    Whole(Box<dyn Controller>),
    Rested(Rested),
}

impl PackedPath {
    pub(super) fn of(path: Path) -> Self {
        let mut bytes = Vec::new();
        let (space, cids, tuple) = path.pack(&mut bytes);
        let records = SentRecords::pack(space, &mut bytes);
        let (config,) = cids.pack(&mut bytes);
        let (congestion,) = tuple.pack(&mut bytes);
        let (controller,) = congestion.pack(&mut bytes);
        let controller = match controller.rest() {
            Some(rested) => PackedController::Rested(rested),
            None => PackedController::Whole(controller),
        };
        Self { bytes: bytes.into(), records, config, controller }
    }

    pub(super) fn unpack(self) -> Path {
        let Self { bytes, records, config, controller } = self;
        let controller = match controller {
            PackedController::Whole(controller) => controller,
            PackedController::Rested(rested) => rested.wake(),
        };
        Path::unpack(&mut &bytes[..], |input| {
            let space = SentRecords::unpack(input, records);
            let cids = LocalCids::unpack(input, |_| (config,));
            let tuple = Tuple::unpack(input, |input| (CongestionState::unpack(input, |_| (controller,)),));
            (space, cids, tuple)
        })
    }
}
