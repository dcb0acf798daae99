//! What a seed stands for.

use std::net::IpAddr;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_proto::congestion::{
    Bbr1Config, BbrConfig, CongestionControl, CubicConfig, NewRenoConfig, PragueConfig,
};
use fulmar_proto::{
    AddressDiscovery, KeyUpdatePolicy, RetryPolicy, Side, TimeStamps, TimerStyle, TransportConfig, Version,
};
use fulmar_sim::{Change, NatConfig, Scheduled};

use crate::{Close, Connecting, Lab, MediaStream, Shift, Workload};

/// Keeps what is drawn here apart from what is drawn in the run.
const SALT: u64 = 0x5ca1_ab1e_0000_0000;

/// The smallest datagram that every path must carry (RFC 9000 §14), and a jumbo frame's.
pub(super) const MTU: (u64, u64) = (1_200, 8_952);

pub(super) fn draw(seed: u64) -> Lab {
    let mut dice = Dice(Rng::from_u64(seed ^ SALT));
    let mut base = dice.link(None);
    // Half of the links are the same in both directions, but for their luck.
    let mut back = if dice.0.chance(0.5) { base.clone() } else { dice.link(Some(&base)) };
    let mtu = [&base, &back].into_iter().filter_map(|link| link.mtu).min().unwrap_or(MTU.1 as usize);
    let pauses = dice.0.chance(0.4);
    let timers = [dice.timers(), dice.timers()];
    // Probes of the classic timers are twice as far apart each time, so that some losses take minutes.
    let patience = if timers.contains(&TimerStyle::Classic) { 10 } else { 1 };
    // A client that only waits would never tell the server its new address.
    let has_nat = dice.0.chance(0.2);
    let client = dice.transport(mtu, pauses || has_nat, timers[0], patience);
    let server = dice.transport(mtu, false, timers[1], patience);
    // What the ends take for granted from the start still has to fit.
    let mtu_min = client.initial_mtu.max(server.initial_mtu);
    for link in [&mut base, &mut back] {
        if dice.0.chance(0.1) {
            let mtu = dice.between(u64::from(mtu_min), MTU.1) as usize;
            let at = Instant::ZERO + dice.millis(0, 3_000);
            link.schedule.push(Scheduled { at, change: Change::Mtu(Some(mtu)) });
        }
    }
    if dice.0.chance(0.2) {
        for stop in dice.stops() {
            base.schedule.push(stop.clone());
            if dice.0.chance(0.8) {
                back.schedule.push(stop);
            }
        }
    }
    let mut lab = Lab::new(seed).link(base, back).client(client).server(server);
    if has_nat {
        lab = dice.with_nat(lab);
    }
    lab = lab.server_workload(dice.workload(pauses));
    lab = dice.beginnings(lab);
    for number in 0..dice.between(1, 4) {
        let start = if number == 0 { Duration::ZERO } else { dice.millis(0, 2_000) };
        lab = lab.connection(Connecting::new(dice.workload(pauses)).start(start).close(dice.close()));
    }
    dice.shifts(lab)
}

/// Draws for a seed.
pub(super) struct Dice(pub(super) Rng);

impl Dice {
    /// A number in `low..=high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// A number in `low..=high` whose order of magnitude is drawn first. `low` is not 0.
    pub(super) fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low).ilog2();
        let base = low << self.0.below(u64::from(doublings) + 1);
        self.between(base, (2 * base - 1).min(high).max(base))
    }

    pub(super) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// Zero half of the time, or a probability up to `max`.
    pub(super) fn rare(&mut self, max: f64) -> f64 {
        if self.0.chance(0.5) { 0.0 } else { self.0.unit() * max }
    }

    /// Puts a NAT before the client that forgets its mappings now and then; the client itself may move, too.
    fn with_nat(&mut self, mut lab: Lab) -> Lab {
        let [first, second] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let kind = match self.0.below(3) {
            0 => NatConfig::full_cone(first),
            1 => NatConfig::restricted_cone(first),
            _ => NatConfig::port_restricted_cone(first),
        };
        let addresses = if self.0.chance(0.5) { vec![first] } else { vec![first, second] };
        lab = lab.nat(NatConfig { addresses, ..kind });
        for _ in 0..self.between(1, 4) {
            let shift = match self.0.below(10) {
                0..=5 => Shift::Rebinding,
                6..=7 => Shift::Move,
                _ => Shift::Leap,
            };
            lab = lab.shift(self.millis(0, 5_000), shift);
        }
        lab
    }

    /// Frames of audio or video for some seconds.
    fn media(&mut self) -> Vec<MediaStream> {
        let media = MediaStream {
            interval: self.millis(5, 50),
            frames: self.between(1, 100) as u32,
            bytes: self.magnitude(16, 4_000),
            key_every: self.0.chance(0.5).then(|| self.between(2, 50) as u32),
            key_bytes: self.magnitude(1_000, 20_000),
            priority: self.between(0, 4) as i32 - 2,
        };
        if self.0.chance(0.15) { vec![media] } else { Vec::new() }
    }

    /// How connections begin: the versions, what the server wants proven, what is left of earlier connections.
    fn beginnings(&mut self, lab: Lab) -> Lab {
        let versions = match self.0.below(4) {
            0 => vec![Version::V2, Version::V1],
            1 => vec![Version::V1, Version::V2],
            2 => vec![Version::V2],
            _ => vec![Version::V1],
        };
        let first = versions[self.0.below(versions.len() as u64) as usize];
        let retry = if self.0.chance(0.2) { RetryPolicy::Always } else { RetryPolicy::default() };
        let lab = lab.client_versions(versions).initial_version(first).retry(retry);
        match self.0.below(4) {
            0 => lab.resume(),
            1 => lab.early_data(),
            _ => lab,
        }
    }

    fn key_update(&mut self) -> KeyUpdatePolicy {
        let packets = self.0.chance(0.2).then(|| self.magnitude(20, 5_000));
        let bytes = self.0.chance(0.1).then(|| self.magnitude(10_000, 1_000_000));
        KeyUpdatePolicy { packets, bytes }
    }

    fn timers(&mut self) -> TimerStyle {
        if self.0.chance(0.8) { TimerStyle::OncePerRtt } else { TimerStyle::Classic }
    }

    fn transport(
        &mut self,
        mtu: usize,
        keep_alive: bool,
        timers: TimerStyle,
        patience: u32,
    ) -> TransportConfig {
        let idle = self.millis(20_000, 90_000) * patience;
        let mtu_max = self.between(MTU.0, MTU.1) as u16;
        let initial_mtu =
            if self.0.chance(0.2) { mtu.min(usize::from(mtu_max)) as u16 } else { MTU.0 as u16 };
        let stream_receive_window = self.magnitude(4_096, 1 << 20);
        let receive_window = self.magnitude(8_192, 2 << 20);
        TransportConfig {
            max_idle_timeout: Some(idle),
            handshake_timeout: Duration::from_secs(60) * patience,
            // Where applications rest, silence alone must not end the connection.
            keep_alive_interval: keep_alive.then_some(idle / 4),
            max_concurrent_bidi_streams: self.magnitude(1, 100),
            max_concurrent_uni_streams: self.magnitude(1, 100),
            stream_receive_window,
            stream_receive_window_max: stream_receive_window << self.0.below(6),
            receive_window,
            receive_window_max: receive_window << self.0.below(6),
            send_window: self.magnitude(2_048, 4 << 20),
            initial_rtt: self.millis(10, 1_000),
            timers,
            max_ack_delay: self.millis(0, 100),
            ack_frequency: self.0.chance(0.7),
            preemptive_repeat: self.0.chance(0.7),
            congestion: match self.0.below(7) {
                0 | 1 => CongestionControl::NewReno(NewRenoConfig::default()),
                2 | 3 => CongestionControl::Cubic(CubicConfig::default()),
                4 => CongestionControl::Bbr(BbrConfig::default()),
                5 => CongestionControl::Bbr1(Bbr1Config::default()),
                _ => CongestionControl::Prague(PragueConfig::default()),
            },
            initial_mtu,
            mtu_max,
            mtu_discovery: self.0.chance(0.8),
            datagram_receive_buffer: self.0.chance(0.8).then(|| self.magnitude(1_024, 1 << 20) as usize),
            datagram_send_buffer: self.magnitude(1_024, 1 << 20) as usize,
            key_update: self.key_update(),
            reset_stream_at: self.0.chance(0.8),
            grease_quic_bit: self.0.chance(0.8),
            address_discovery: self.address_discovery(),
            time_stamps: self.time_stamps(),
            ecn: self.0.chance(0.5),
            log_entries: if self.0.chance(0.1) { 1 << self.0.below(12) } else { 0 },
            ..TransportConfig::default()
        }
    }

    fn address_discovery(&mut self) -> Option<AddressDiscovery> {
        match self.0.below(6) {
            0 => Some(AddressDiscovery::Provide),
            1 => Some(AddressDiscovery::Receive),
            2 => Some(AddressDiscovery::Both),
            _ => None,
        }
    }

    fn time_stamps(&mut self) -> Option<TimeStamps> {
        match self.0.below(6) {
            0 => Some(TimeStamps::Receive),
            1 => Some(TimeStamps::Send),
            2 => Some(TimeStamps::Both),
            _ => None,
        }
    }

    fn workload(&mut self, pauses: bool) -> Workload {
        // Who rests after each byte is never done.
        let piece_min = if pauses { 10_000 } else { 100 };
        Workload {
            streams: self.magnitude(1, 64) as u32 - 1,
            in_sequence: false,
            bidirectional: self.0.unit(),
            size: 0..=self.magnitude(1, 1_000_000),
            reply: 0..=self.magnitude(1, 500_000),
            write_piece: 1..=self.magnitude(piece_min, 100_000),
            read_piece: 1..=self.magnitude(piece_min, 100_000),
            reset: self.rare(0.3),
            reset_at: self.0.unit(),
            stop: self.rare(0.3),
            unordered: self.rare(1.0),
            priority: self.rare(1.0),
            protection: Vec::new(),
            datagrams: self.magnitude(1, 64) as u32 - 1,
            datagram_size: 0..=self.magnitude(1, 2_000),
            datagram_interval: self.0.chance(0.3).then(|| self.millis(1, 50)),
            datagram_lifetime: self.0.chance(0.3).then(|| self.millis(1, 200)),
            datagram_urgent: self.rare(0.5),
            media: self.media(),
            times_reads: self.0.chance(0.3),
            pause: if pauses { self.0.unit() * 0.3 } else { 0.0 },
            pause_max: self.millis(1, 300),
            datagrams_repeat: false,
            churn: None,
        }
    }

    /// Some clients are behind a NAT that forgets, some move.
    fn shifts(&mut self, mut lab: Lab) -> Lab {
        let shift = match self.0.below(10) {
            0 => Shift::Rebinding,
            1 => Shift::Move,
            2 => Shift::Leap,
            _ => return lab,
        };
        if shift == Shift::Rebinding || self.0.chance(0.5) {
            let addresses = (1..=self.between(1, 3)).map(|n| IpAddr::from([192, 0, 2, n as u8])).collect();
            lab = lab.nat(NatConfig { addresses, ..NatConfig::port_restricted_cone([192, 0, 2, 1].into()) });
        }
        // Through a NAT that has forgotten its client only the client can find the way.
        let idle = lab.client.max_idle_timeout.unwrap_or(Duration::from_secs(30));
        lab.client.keep_alive_interval.get_or_insert(idle / 8);
        for _ in 0..self.between(1, 6) {
            lab = lab.shift(self.millis(0, 5_000), shift);
        }
        lab
    }

    fn close(&mut self) -> Close {
        let side = if self.0.chance(0.5) { Side::Client } else { Side::Server };
        match self.0.chance(0.85) {
            true => Close::WhenDone(side),
            false => Close::After(side, self.millis(0, 3_000)),
        }
    }
}
