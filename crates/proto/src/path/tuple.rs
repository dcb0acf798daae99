//! A network path: a pair of addresses and everything that was learned about what lies between them.

use fulmar_base::Instant;

use super::amplification::AddressCredit;
use super::ecn::EcnValidation;
use super::mtud::MtuDiscovery;
use super::{Rtt, TupleId};
use crate::config::TransportConfig;
use crate::congestion::Flow;
use crate::datagram::FourTuple;

/// The state of a network path. It is replaced when the path migrates, because nothing that was learned about
/// one network holds for another (RFC 9000 §9.4).
#[derive(Debug)]
pub(crate) struct Tuple {
    pub(crate) id: TupleId,
    pub(crate) addrs: FourTuple,
    pub(crate) credit: AddressCredit,
    pub(crate) rtt: Rtt,
    /// Bytes in flight of all packet number spaces, and what may be added to them.
    pub(crate) flow: Flow,
    pub(crate) mtud: MtuDiscovery,
    pub(crate) ecn: EcnValidation,
}

impl Tuple {
    pub(crate) fn new(
        id: TupleId,
        addrs: FourTuple,
        validated: bool,
        config: &TransportConfig,
        now: Instant,
    ) -> Self {
        let mtu = config.initial_mtu;
        let rtt = Rtt::new(config.initial_rtt, config.timers);
        Self {
            id,
            addrs,
            credit: AddressCredit::new(validated),
            flow: Flow::new(now, &config.congestion, mtu, &rtt),
            rtt,
            mtud: MtuDiscovery::new(mtu, config.mtu_max, config.mtu_discovery),
            ecn: EcnValidation::new(config.ecn),
        }
    }

    /// The size of a full datagram.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtud.current()
    }

    /// The datagram size has changed.
    pub(crate) fn on_mtu_changed(&mut self, now: Instant) {
        self.flow.on_mtu(now, self.mtud.current(), &self.rtt);
    }
}
