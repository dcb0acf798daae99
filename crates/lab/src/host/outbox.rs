//! Where a host sends its packets.

use std::net::SocketAddr;

use fulmar_base::Instant;
use fulmar_proto::{Ecn, Side};
use fulmar_sim::{NodeId, Packet, World};

use crate::Trace;
use crate::capture::Capture;

/// Where a host sends its packets.
pub(crate) struct Outbox<'a> {
    pub(crate) now: Instant,
    pub(crate) node: NodeId,
    pub(crate) world: &'a mut World,
    pub(crate) trace: &'a mut Trace,
    /// The host that sends, and the file that its packets go to.
    pub(crate) side: Side,
    pub(crate) capture: &'a mut Option<Capture>,
}

impl Outbox<'_> {
    pub(super) fn send(&mut self, source: SocketAddr, destination: SocketAddr, ecn: Ecn, payload: &[u8]) {
        let payload = self.world.buffers().copy_of(payload);
        let packet = Packet::new(source, destination, fulmar_sim::Ecn::from_bits(ecn.bits()), payload);
        self.trace.on_sent(self.now, &packet);
        if let Some(capture) = self.capture {
            capture.on_packet(self.side, self.now, &packet);
        }
        self.world.send(self.node, packet);
    }
}
