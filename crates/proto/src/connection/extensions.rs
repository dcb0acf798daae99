//! The extensions of a connection: each a component of its own, built once from the parameters of both ends.

use std::sync::Arc;

use fulmar_base::{Instant, Rng};
use fulmar_wire::TransportParameters;

use crate::config::TransportConfig;
use crate::ext::{
    AckFrequency, AddressDiscovery, Fec, FecDialect, FecReceiver, FecSender, QuicBit, Timestamps,
};
use crate::memory::{EndpointMemory, SharedMemory};

/// The extensions in use; one that is not has no state.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    pub(super) ack_frequency: Option<AckFrequency>,
    pub(super) address_discovery: Option<AddressDiscovery>,
    pub(super) quic_bit: Option<QuicBit>,
    /// In a box, as what follows: connections without it, which are most, have no place for it.
    pub(super) timestamps: Option<Box<Timestamps>>,
    pub(super) fec: Option<Box<Fec>>,
    /// What the decoder of erasure codes will have its memory from, if there is to be one.
    fec_memory: Option<Arc<SharedMemory>>,
}

impl Extensions {
    /// None yet: the peer's parameters have not come.
    pub(super) fn unknown(config: &TransportConfig, memory: &EndpointMemory) -> Self {
        Self { fec_memory: config.fec.map(|_| memory.fec.clone()), ..Self::default() }
    }

    /// The extensions that both ends know, now that the peer's parameters have come.
    pub(super) fn negotiate(
        &self,
        now: Instant,
        config: &TransportConfig,
        peer: &TransportParameters,
        rng: &mut Rng,
    ) -> Self {
        let greases = config.grease_quic_bit && peer.grease_quic_bit;
        Self {
            ack_frequency: config.min_ack_delay().map(|min| AckFrequency::new(min, peer)),
            address_discovery: AddressDiscovery::new(now, config.address_discovery, peer.address_discovery),
            timestamps: Timestamps::new(now, config.time_stamps, peer).map(Box::new),
            fec: self.negotiate_fec(config, peer).map(Box::new),
            fec_memory: self.fec_memory.clone(),
            quic_bit: greases.then(|| QuicBit::new(rng.fork())),
        }
    }

    fn negotiate_fec(&self, config: &TransportConfig, peer: &TransportParameters) -> Option<Fec> {
        Some(Fec::new(config.fec.as_ref()?, peer, self.fec_memory.clone()?))
    }

    /// What makes repair symbols, if this end does.
    #[inline]
    pub(super) fn fec_sender(&mut self) -> Option<&mut FecSender> {
        self.fec.as_mut()?.sender.as_mut()
    }

    /// What makes repair symbols, if this end does so in this dialect.
    pub(super) fn fec_sender_of(&mut self, dialect: FecDialect) -> Option<&mut FecSender> {
        self.fec.as_mut()?.sender_of(dialect)
    }

    /// What recovers lost packets, if this end does so in this dialect.
    pub(super) fn fec_receiver_of(&mut self, dialect: FecDialect) -> Option<&mut FecReceiver> {
        self.fec.as_mut()?.receiver_of(dialect)
    }

    /// What recovers lost packets, if this end does.
    #[inline]
    pub(super) fn fec_receiver(&mut self) -> Option<&mut FecReceiver> {
        self.fec.as_mut()?.receiver.as_mut()
    }

    /// Gives back the memory that nothing needs while the connection rests.
    pub(super) fn rest(&mut self) {
        if let Some(bit) = &mut self.quic_bit {
            bit.rest();
        }
        if let Some(sender) = self.fec_sender() {
            sender.rest();
        }
    }

    /// The QUIC bit of the next packet (RFC 9287 §3.1).
    pub(super) fn next_quic_bit(&mut self) -> bool {
        self.quic_bit.as_mut().is_none_or(QuicBit::next)
    }
}
