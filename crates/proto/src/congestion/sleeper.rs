//! A controller that takes little room while nothing is sent.

use std::mem;

use fulmar_base::Instant;

use super::{
    AckEvent, CongestionEvent, Controller, CoupledShare, LostPacket, ResumeStep, Sent, SpuriousLoss,
};
use crate::datagram::Ecn;
use crate::packed::Packed;

/// A controller that is packed while its connection rests, and is what it was with the first packet after that.
#[derive(Debug)]
pub(super) struct Sleeper<C> {
    awake: Option<Box<C>>,
    /// The controller, while it is not awake.
    packed: Box<[u8]>,
    /// Its window then, which is asked for before something is sent.
    window: u64,
}

impl<C: Controller + Packed> Sleeper<C> {
    pub(super) fn new(controller: C) -> Self {
        Self { awake: Some(Box::new(controller)), packed: Box::default(), window: 0 }
    }

    #[inline]
    fn awake(&mut self) -> &mut C {
        let Self { awake, packed, .. } = self;
        awake.get_or_insert_with(|| Box::new(C::unpack(&mut &mem::take(packed)[..])))
    }

    /// Asks it for something that is rarely asked for while it sleeps, without waking it.
    fn ask<T>(&self, question: impl FnOnce(&C) -> T) -> T {
        match &self.awake {
            Some(controller) => question(controller),
            None => question(&C::unpack(&mut &self.packed[..])),
        }
    }
}

impl<C: Controller + Packed> Controller for Sleeper<C> {
    fn rest(&mut self) {
        if let Some(controller) = self.awake.take() {
            let mut packed = Vec::new();
            controller.pack(&mut packed);
            self.packed = packed.into();
            self.window = controller.window();
        }
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent) {
        self.awake().on_sent(now, sent);
    }

    fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.awake().on_ack(now, ack);
    }

    fn on_packet_lost(&mut self, now: Instant, lost: &LostPacket) {
        self.awake().on_packet_lost(now, lost);
    }

    fn on_congestion(&mut self, now: Instant, event: &CongestionEvent) {
        self.awake().on_congestion(now, event);
    }

    fn took_for_chance(&self) -> bool {
        self.ask(C::took_for_chance)
    }

    fn on_spurious_loss(&mut self, now: Instant, spurious: &SpuriousLoss) {
        self.awake().on_spurious_loss(now, spurious);
    }

    fn on_resume(&mut self, now: Instant, step: ResumeStep) {
        self.awake().on_resume(now, step);
    }

    fn couple(&mut self, share: CoupledShare) {
        self.awake().couple(share);
    }

    fn on_mtu(&mut self, max_datagram_size: u16) {
        self.awake().on_mtu(max_datagram_size);
    }

    fn window(&self) -> u64 {
        self.awake.as_ref().map_or(self.window, |controller| controller.window())
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.ask(C::pacing_rate)
    }

    fn burst(&self) -> Option<u64> {
        self.ask(C::burst)
    }

    fn take_packet_train(&mut self) -> u64 {
        self.awake().take_packet_train()
    }

    fn conserves(&self) -> bool {
        self.ask(C::conserves)
    }

    fn is_searching(&self) -> bool {
        self.ask(C::is_searching)
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ask(C::ssthresh)
    }

    fn ecn_codepoint(&self) -> Ecn {
        self.ask(C::ecn_codepoint)
    }

    fn state(&self) -> &'static str {
        self.ask(C::state)
    }

    fn name(&self) -> &'static str {
        self.ask(C::name)
    }
}
