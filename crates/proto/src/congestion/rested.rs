//! A controller in a few bytes.

use std::fmt;

use super::Controller;
use crate::packed::Packed;

/// A controller that takes little room while nothing is sent: see [`Controller::rest`].
pub struct Rested {
    bytes: Box<[u8]>,
    wake: fn(&[u8]) -> Box<dyn Controller>,
}

impl Rested {
    /// These bytes, from which `wake` makes a controller again.
    pub fn new(bytes: Box<[u8]>, wake: fn(&[u8]) -> Box<dyn Controller>) -> Self {
        Self { bytes, wake }
    }

    /// A controller whose state can be packed.
    pub(super) fn of<C: Controller + Packed + 'static>(controller: &C) -> Self {
        let mut bytes = Vec::new();
        controller.pack(&mut bytes);
        Self::new(bytes.into(), |bytes| Box::new(C::unpack(&mut &bytes[..])))
    }

    /// The controller.
    pub(crate) fn wake(self) -> Box<dyn Controller> {
        (self.wake)(&self.bytes)
    }
}

impl fmt::Debug for Rested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rested({} bytes)", self.bytes.len())
    }
}
