//! Traffic of others that shares a link.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fulmar_base::Instant;

use crate::chance::exponential;
use crate::{Change, Context, Ecn, Element, Packet};

/// Packets of nobody that compete for the queue and the rate of one direction of a link, and end behind its
/// transmitter. They do not react to anything: loss and marks do not slow them down.
///
/// They have no end of their own: in a world with cross traffic there is always a next event, so
/// [`World::advance`](crate::World::advance) needs a time to stop at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossTraffic {
    /// Payload bits per second while it is on; 0 for none.
    pub rate_bps: u64,
    /// Payload bytes of each packet; 0 counts as 1.
    pub packet_size: u32,
    /// When it is on.
    pub pattern: TrafficPattern,
    /// The ECN codepoint of its packets.
    pub ecn: Ecn,
}

/// When [`CrossTraffic`] is on. It begins with a time that is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrafficPattern {
    /// Always.
    #[default]
    Steady,
    /// In turns.
    OnOff {
        /// How long it is on.
        on: Duration,
        /// How long it is off.
        off: Duration,
    },
    /// In turns of exponentially distributed lengths.
    RandomOnOff {
        /// The mean time that it is on.
        on_mean: Duration,
        /// The mean time that it is off.
        off_mean: Duration,
    },
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Over so many turns the time between two packets is looked for; traffic that needs more never comes again.
const TURNS_MAX: u32 = 10_000;
/// No two packets leave at one instant.
const GAP_MIN: Duration = Duration::from_nanos(1);
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl CrossTraffic {
    /// Packets of 1,250 bytes at a constant rate, without ECN.
    pub const fn steady(rate_bps: u64) -> Self {
        Self { rate_bps, packet_size: 1_250, pattern: TrafficPattern::Steady, ecn: Ecn::NotEct }
    }

    fn packet(self) -> Packet {
        let mut packet = Packet::new(NOWHERE, NOWHERE, self.ecn, Vec::new());
        packet.filler = self.packet_size.max(1);
        packet
    }

    fn gap(self) -> Duration {
        let bits = u64::from(self.packet_size.max(1)) * 8;
        let nanos = bits.saturating_mul(NANOS_PER_SECOND).checked_div(self.rate_bps);
        nanos.map_or(Duration::MAX, Duration::from_nanos).max(GAP_MIN)
    }
}

/// Makes the packets, ahead of the queue.
#[derive(Debug)]
pub(crate) struct CrossSource {
    setting: Option<CrossTraffic>,
    /// When the next packet leaves.
    next: Option<Instant>,
    /// When the present time of being on ends; `None` before the first packet.
    on_until: Option<Instant>,
}

impl CrossSource {
    pub(crate) fn new(setting: Option<CrossTraffic>) -> Self {
        let setting = setting.filter(|setting| setting.rate_bps > 0);
        Self { setting, next: setting.map(|_| Instant::ZERO), on_until: None }
    }

    /// Until when a time of being on lasts that begins at `from`.
    fn on_from(from: Instant, pattern: TrafficPattern, cx: &mut Context<'_>) -> Instant {
        match pattern {
            TrafficPattern::Steady => Instant::FAR_FUTURE,
            TrafficPattern::OnOff { on, .. } => from + on,
            TrafficPattern::RandomOnOff { on_mean, .. } => from + exponential(on_mean, cx.rng()),
        }
    }

    fn off_time(pattern: TrafficPattern, cx: &mut Context<'_>) -> Duration {
        match pattern {
            TrafficPattern::Steady => Duration::ZERO,
            TrafficPattern::OnOff { off, .. } => off,
            TrafficPattern::RandomOnOff { off_mean, .. } => exponential(off_mean, cx.rng()),
        }
    }

    /// When the packet after the one that leaves now does so. The time between two packets passes only while traffic is on.
    fn following(&mut self, setting: CrossTraffic, cx: &mut Context<'_>) -> Instant {
        let now = cx.now();
        let mut on_until = match self.on_until {
            Some(on_until) => on_until,
            None => Self::on_from(now, setting.pattern, cx),
        };
        let mut next = now + setting.gap();
        for _ in 0..TURNS_MAX {
            if next < on_until || next == Instant::FAR_FUTURE {
                self.on_until = Some(on_until);
                return next;
            }
            let left = next.saturating_since(on_until);
            let resumes = on_until + Self::off_time(setting.pattern, cx);
            on_until = Self::on_from(resumes, setting.pattern, cx);
            next = resumes + left;
        }
        Instant::FAR_FUTURE
    }
}

impl Element for CrossSource {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        cx.pass(packet);
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn next_timeout(&self) -> Option<Instant> {
        // A rate so low that the next packet never comes must not keep the world waiting for it.
        self.next.filter(|next| *next < Instant::FAR_FUTURE)
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        if let Some(setting) = self.setting {
            cx.pass(setting.packet());
            self.next = Some(self.following(setting, cx));
        }
    }

    fn apply(&mut self, change: &Change, cx: &mut Context<'_>) {
        if let Change::CrossTraffic(setting) = change {
            *self = Self::new(*setting);
            self.next = self.next.map(|_| cx.now());
        }
    }
}

/// Takes the packets away, behind the transmitter.
#[derive(Debug)]
pub(crate) struct CrossSink {
    /// Whether there is or was any cross traffic.
    needed: bool,
}

impl CrossSink {
    pub(crate) const fn new(setting: Option<CrossTraffic>) -> Self {
        Self { needed: setting.is_some() }
    }
}

impl Element for CrossSink {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        if packet.filler == 0 {
            cx.pass(packet);
        } else {
            cx.stats().cross_packets_carried += 1;
        }
    }

    fn is_transparent(&self) -> bool {
        !self.needed
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        if let Change::CrossTraffic(setting) = change {
            self.needed |= setting.is_some();
        }
    }
}
