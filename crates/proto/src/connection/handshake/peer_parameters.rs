//! What is kept of the peer's transport parameters.

use std::time::Duration;

use fulmar_wire::{Side, TransportParameters};

/// The peer's transport parameters as it has written them, which takes a third of the room that they take when they are read, and those
/// apart that are asked for with every acknowledgement.
#[derive(Debug)]
pub(in crate::connection) struct PeerParameters {
    peer: Side,
    written: Box<[u8]>,
    pub(in crate::connection) max_ack_delay: Duration,
    pub(in crate::connection) ack_delay_exponent: u8,
    pub(in crate::connection) disable_active_migration: bool,
}

impl PeerParameters {
    /// Keeps what `peer` has written, and was read as `parameters`.
    pub(super) fn new(peer: Side, written: &[u8], parameters: &TransportParameters) -> Self {
        let TransportParameters { max_ack_delay, ack_delay_exponent, disable_active_migration, .. } =
            *parameters;
        Self { peer, written: written.into(), max_ack_delay, ack_delay_exponent, disable_active_migration }
    }

    /// All of them. They could be read before, and can again.
    pub(in crate::connection) fn all(&self) -> Option<TransportParameters> {
        TransportParameters::read(self.peer, &self.written).ok()
    }
}
