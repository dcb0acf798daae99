//! A network path: a pair of addresses and everything that was learned about what lies between them.

use fulmar_base::{Instant, Rng};
use fulmar_wire::{ConnectionId, Side};

use super::amplification::AntiAmplification;
use super::ecn::EcnValidation;
use super::mtud::MtuDiscovery;
use super::responses::PathResponses;
use super::spin::Spin;
use super::validation::Validation;
use crate::config::{MTU_MIN, TransportConfig};
use crate::congestion::CongestionState;
use crate::datagram::{Ecn, FourTuple};
use crate::ext::Observation;
use crate::ids::TupleId;
use crate::packed::packed_around;
use crate::packet::{FrameWriter, SentPacket};
use crate::rtt::Rtt;
use crate::space::MIN_PACKET_THRESHOLD;

/// The state of a network path. It is replaced when the path migrates, because nothing that was learned about
/// one network holds for another (RFC 9000 §9.4).
#[derive(Debug)]
pub(crate) struct Tuple {
    pub(crate) id: TupleId,
    pub(crate) addrs: FourTuple,
    pub(crate) amplification: AntiAmplification,
    /// Whether the peer was seen to receive here.
    pub(crate) validated: bool,
    /// The proof that is under way.
    pub(crate) validation: Option<Box<Validation>>,
    pub(crate) responses: PathResponses,
    /// The sequence number of the peer's connection ID that packets go to.
    pub(crate) remote_cid: u64,
    /// The connection ID that the peer sends to here; `None` until it does. If it sends to the same one from
    /// elsewhere, a NAT has changed its address (RFC 9000 §9.5).
    pub(crate) peer_dst: Option<ConnectionId>,
    pub(crate) spin: Spin,
    pub(crate) rtt: Rtt,
    /// Bytes in flight of all packet number spaces, and what may be added to them.
    pub(crate) congestion: CongestionState,
    pub(crate) mtud: MtuDiscovery,
    pub(crate) ecn: EcnValidation,
    /// What the ends tell each other of its addresses.
    pub(crate) observation: Observation,
}

packed_around!(Tuple {
    id,
    addrs,
    amplification,
    validated,
    responses,
    remote_cid,
    peer_dst,
    spin,
    rtt,
    mtud,
    ecn,
    observation,
} empty { validation } around { congestion: CongestionState });

impl Tuple {
    pub(crate) fn new(
        id: TupleId,
        addrs: FourTuple,
        amplification: AntiAmplification,
        config: &TransportConfig,
        now: Instant,
        rng: &mut Rng,
    ) -> Self {
        let mtu = config.initial_mtu;
        let rtt = Rtt::new(config.initial_rtt, config.timers);
        Self {
            id,
            addrs,
            amplification,
            validated: false,
            validation: None,
            responses: PathResponses::default(),
            remote_cid: 0,
            peer_dst: None,
            spin: Spin::new(config.spin_bit, rng),
            congestion: CongestionState::new(now, &config.congestion, mtu, &rtt),
            rtt,
            mtud: MtuDiscovery::new(mtu, config.mtu_max, config.mtu_discovery),
            ecn: EcnValidation::new(config.ecn),
            observation: Observation::default(),
        }
    }

    /// The size of a full datagram.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtud.current()
    }

    /// Whether the peer's address may be sent a datagram (RFC 9000 §8.1). Smaller ones might fit when a full one does
    /// not, but the client pads its own, so the limit rises in whole datagrams.
    #[inline]
    pub(crate) fn may_send_datagram(&self) -> bool {
        self.amplification.available() >= u64::from(MTU_MIN)
    }

    /// A packet in flight that left over this tuple was acknowledged.
    #[inline]
    pub(crate) fn on_packet_acked(&mut self, now: Instant, packet: &SentPacket) {
        self.congestion.packet_acked(&packet.for_congestion());
        self.ecn.on_packet_acked(packet);
        if let Some(validation) = self.validation.as_mut().filter(|_| !self.validated) {
            validation.on_acked(now, packet.time_sent);
        }
        if packet.mtu_probe {
            self.mtud.on_probe_acked(packet.size);
            self.on_mtu_changed(now);
        } else {
            self.mtud.on_packet_acked(packet.size, packet.time_sent);
        }
    }

    /// Packets were declared lost, some of which left over this tuple. Returns whether it carries no datagrams of the
    /// size in use any more; what was too large for it is out of flight then.
    pub(crate) fn detect_black_hole(&mut self, now: Instant, lost: &[(u64, SentPacket)]) -> bool {
        let Self { id, congestion, mtud, .. } = self;
        let here = |packet: &&SentPacket| packet.tuple == *id && !packet.mtu_probe;
        let lost = || lost.iter().map(|(_, packet)| packet).filter(here);
        for packet in lost() {
            mtud.on_small_lost(packet.size, packet.time_sent);
        }
        let mut fell = false;
        for packet in lost() {
            fell |= mtud.on_packet_lost(now, packet.size, packet.time_sent);
        }
        for packet in lost().filter(|packet| mtud.explains_loss(packet.size, packet.time_sent)) {
            congestion.packet_discarded(&packet.for_congestion());
        }
        if fell {
            self.on_mtu_changed(now);
        }
        fell
    }

    /// A packet that left over this tuple was declared lost; after [`Tuple::detect_black_hole`].
    pub(crate) fn on_packet_lost(&mut self, now: Instant, packet: &SentPacket) {
        if packet.mtu_probe {
            self.congestion.packet_lost(now, &packet.for_congestion());
            self.mtud.on_probe_lost();
        } else if !self.mtud.explains_loss(packet.size, packet.time_sent) {
            // Otherwise it is out of flight already.
            self.ecn.on_packet_lost(packet);
            match self.ecn.explains_loss(packet) {
                true => self.congestion.packet_discarded(&packet.for_congestion()),
                false => self.congestion.packet_lost(now, &packet.for_congestion()),
            }
        }
    }

    /// The ECN mark of the next batch. While fewer packets are in flight than the packet threshold of loss detection, it takes a probe
    /// timeout to learn that they are lost.
    pub(crate) fn ecn_codepoint(&self) -> Ecn {
        let listens = self.congestion.bytes_in_flight() < MIN_PACKET_THRESHOLD * u64::from(self.mtu());
        self.ecn.codepoint(self.congestion.controller().ecn_codepoint(), listens)
    }

    /// Whether there is something to send that concerns the tuple itself.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.responses.wants_to_send() || self.validation.as_ref().is_some_and(|v| v.is_pending())
    }

    /// Writes the challenge that is due and the answers to the peer's. Both fill their datagram, as far as the
    /// anti-amplification limit allows.
    pub(crate) fn write(&mut self, now: Instant, rng: &mut Rng, out: &mut FrameWriter<'_>) {
        if let Some(validation) = &mut self.validation {
            let full = self.amplification.available() >= u64::from(MTU_MIN);
            validation.write(now, full, rng, out);
        }
        self.responses.write(out);
    }

    /// Whether `other` differs from this tuple in nothing but the peer's port, so that what was measured on one
    /// holds for the other (RFC 9000 §9.4). A client does not know its own port: it cannot tell unless it knows
    /// its address.
    pub(crate) fn is_same_network(&self, other: &Self, side: Side) -> bool {
        self.addrs.remote.ip() == other.addrs.remote.ip()
            && self.addrs.local_ip == other.addrs.local_ip
            && (side.is_server() || self.addrs.local_ip.is_some())
    }

    /// Exchanges all that was measured. Packets under way count for neither any more: they get new names.
    pub(crate) fn exchange_measurements(&mut self, other: &mut Self, names: [TupleId; 2]) {
        std::mem::swap(&mut self.rtt, &mut other.rtt);
        std::mem::swap(&mut self.congestion, &mut other.congestion);
        std::mem::swap(&mut self.mtud, &mut other.mtud);
        for (tuple, name) in [(&mut *self, names[0]), (other, names[1])] {
            tuple.id = name;
            tuple.congestion.forget_flight();
            tuple.mtud.forget_flight();
        }
    }

    /// The datagram size has changed.
    pub(crate) fn on_mtu_changed(&mut self, now: Instant) {
        self.congestion.on_mtu(now, self.mtud.current(), &self.rtt);
    }
}
