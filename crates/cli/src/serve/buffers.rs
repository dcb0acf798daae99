//! Buffers that files are read into, kept to be used again.

use std::sync::{Mutex, PoisonError};

/// How many buffers are kept when nobody uses them.
const SPARE_MAX: usize = 16;

/// Buffers that nobody uses any more. A new one has to be filled with zeros before a file is read into it, and leaves a hole in the
/// memory of the process when it goes.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// One with anything in it, or a new one of nothing.
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps one, if there are not enough.
    pub(super) fn put(&self, buffer: Vec<u8>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_MAX {
            spare.push(buffer);
        }
    }
}
