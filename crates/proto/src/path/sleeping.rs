//! A path in a few bytes, while nothing is sent or received.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::{LocalCids, Path, Tuple};
use crate::config::EndpointConfig;
use crate::congestion::{CongestionState, Controller};

/// A path that is packed while its connection rests, and is what it was as soon as anybody looks at it.
pub(super) struct Sleeping {
    awake: OnceCell<Box<Path>>,
    /// The path, while it is not awake.
    asleep: Cell<Option<Packed>>,
}

struct Packed {
    bytes: Box<[u8]>,
    config: Arc<EndpointConfig>,
    controller: Box<dyn Controller>,
}

impl Packed {
    fn of(path: Path) -> Self {
        let mut bytes = Vec::new();
        let (cids, tuple) = path.pack(&mut bytes);
        let (config,) = cids.pack(&mut bytes);
        let (congestion,) = tuple.pack(&mut bytes);
        let (controller,) = congestion.pack(&mut bytes);
        Self { bytes: bytes.into(), config, controller }
    }

    fn unpack(self) -> Path {
        let Self { bytes, config, controller } = self;
        Path::unpack(&mut &bytes[..], |input| {
            let cids = LocalCids::unpack(input, |_| (config,));
            let tuple = Tuple::unpack(input, |input| (CongestionState::unpack(input, |_| (controller,)),));
            (cids, tuple)
        })
    }
}

impl Sleeping {
    /// Packs the path, if nothing is under way on it.
    pub(super) fn fall_asleep(&mut self) {
        self.rest();
        if self.is_at_rest()
            && let Some(path) = self.awake.take()
        {
            self.asleep.set(Some(Packed::of(*path)));
        }
    }

    #[cold]
    fn wake(&self) -> Box<Path> {
        let packed = self.asleep.take().expect("a path is awake or packed");
        Box::new(packed.unpack())
    }

    pub(super) fn into_path(mut self) -> Path {
        let awake = self.awake.take();
        *awake.unwrap_or_else(|| self.wake())
    }
}

impl From<Path> for Sleeping {
    fn from(path: Path) -> Self {
        Self { awake: OnceCell::from(Box::new(path)), asleep: Cell::new(None) }
    }
}

impl fmt::Debug for Sleeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Deref for Sleeping {
    type Target = Path;

    #[inline]
    fn deref(&self) -> &Path {
        self.awake.get_or_init(|| self.wake())
    }
}

impl DerefMut for Sleeping {
    #[inline]
    fn deref_mut(&mut self) -> &mut Path {
        if self.awake.get().is_none() {
            let _ = self.awake.set(self.wake());
        }
        self.awake.get_mut().expect("it was just woken")
    }
}
