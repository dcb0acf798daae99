//! A random link: its parameters, its scenario, and the time that nobody can beat by much.

use std::fmt::Write;
use std::time::Duration;

use fulmar_base::Rng;
use fulmar_sim::{Jitter, Loss};
use serde::Serialize;

use super::space::{DataDirection, Space, rounded};
use crate::scenario::{Scenario, ScenarioError};

/// Keeps what is drawn here apart from what is drawn in the runs.
const SALT: u64 = 0xe0b1_0e5e_0000_0000;

/// A packet on the wire of an Ethernet, which queues are counted in.
const PACKET_BYTES: f64 = 1_500.0;
/// A datagram with an Initial packet (RFC 9000 §14.1), of which each way carries one before any data.
const INITIAL_BYTES: f64 = 1_200.0;
/// Datagrams of the server in its flight of the handshake, of which a client needs all.
const HANDSHAKE_PACKETS: u32 = 4;
/// What headers, acknowledgements and the handshake add to the bytes of a transfer.
const OVERHEAD: f64 = 1.045;

/// A run ends without a result after so many times the ideal time ...
const LIMIT_IDEALS: f64 = 1_000.0;
/// ... but not before this.
const LIMIT_S_MIN: f64 = 120.0;

/// A link, and a transfer over it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawnLink {
    /// Its number, from 0. With the seed of the set it is always the same link, however many are drawn.
    pub number: u64,
    /// The seed of its runs.
    pub seed: u64,
    /// Whether the client sends.
    pub upload: bool,
    /// Bytes that are moved.
    pub bytes: u64,
    /// The rate in the direction of the data in Mbit/s.
    pub rate_mbps: f64,
    /// The rate in the other direction.
    pub return_rate_mbps: f64,
    /// The round-trip time without queues and jitter.
    pub rtt_ms: f64,
    /// The queue in the direction of the data, in products of rate and round-trip time: as drawn, or what the shortest queue comes to.
    pub queue_bdp: f64,
    /// The same in bytes.
    pub queue_bytes: u64,
    /// The queue of the return path.
    pub return_queue_bytes: u64,
    /// The kind of loss.
    pub loss: DrawnLoss,
    /// The share of packets lost.
    pub loss_share: f64,
    /// The mean length of bursts; 1 without.
    pub burst_packets: f64,
    /// Whether acknowledgements are lost, too.
    pub loss_both_ways: bool,
    /// The kind of jitter.
    pub jitter: DrawnJitter,
    /// The mean jitter of each direction; 0 without.
    pub jitter_ms: f64,
    /// The ideal time: two round trips, two full packets of the handshake included, what jitter adds to the flight of the handshake,
    /// to that of the data and to the single packets before each, and the bytes with 4.5 % overhead at the full rate, as often as
    /// loss makes it necessary.
    pub ideal_s: f64,
}

/// How packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DrawnLoss {
    /// Only in the queue.
    None,
    /// One by one.
    Single,
    /// Several one after another.
    Bursts,
}

/// How the delay differs from packet to packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DrawnJitter {
    /// Not at all.
    None,
    /// A bell curve.
    Bell,
    /// As on a Wi-Fi.
    Wifi,
}

impl DrawnLink {
    /// The link with this number of the set with this seed.
    pub fn draw(space: &Space, set_seed: u64, number: u64) -> Self {
        let mut rng = Rng::from_u64(set_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ SALT ^ number);
        let seed = rng.below(1 << 32);
        let upload = match space.direction {
            DataDirection::Download => false,
            DataDirection::Upload => true,
            DataDirection::Either => rng.chance(0.5),
        };
        let rate_mbps = space.rate_mbps.log_uniform(&mut rng);
        let rtt_ms = space.rtt_ms.log_uniform(&mut rng);
        let queue_bdp = space.queue_bdp.log_uniform(&mut rng);
        let bytes = space.bytes.log_uniform(&mut rng) as u64;
        let (loss, loss_share, burst_packets) = draw_loss(space, &mut rng);
        let (jitter, jitter_ms) = draw_jitter(space, &mut rng);
        let slow = rng.chance(space.slow_return.share);
        let ratio = space.slow_return.ratio.log_uniform(&mut rng);
        let slow_rate = rounded(rate_mbps / ratio).max(space.slow_return.rate_mbps_min).min(rate_mbps);
        let return_rate_mbps = if slow { slow_rate } else { rate_mbps };
        let bdp = |rate: f64| rate * 1e6 / 8.0 * rtt_ms / 1e3;
        let queue_min = PACKET_BYTES * f64::from(space.queue_packets_min);
        let queue = |rate: f64| (bdp(rate) * queue_bdp).max(queue_min) as u64;
        let link = Self {
            number,
            seed,
            upload,
            bytes,
            rate_mbps,
            return_rate_mbps,
            rtt_ms,
            queue_bdp: queue_bdp.max(rounded(queue_min / bdp(rate_mbps))),
            queue_bytes: queue(rate_mbps),
            return_queue_bytes: queue(return_rate_mbps),
            loss,
            loss_share,
            burst_packets,
            loss_both_ways: space.loss.both_ways && loss != DrawnLoss::None,
            jitter,
            jitter_ms,
            ideal_s: 0.0,
        };
        Self { ideal_s: link.ideal(), ..link }
    }

    fn ideal(&self) -> f64 {
        let rate = self.rate_mbps * 1e6 / 8.0;
        let return_rate = self.return_rate_mbps * 1e6 / 8.0;
        let rounds = (2.0 * self.rtt_ms + self.lateness_ms()) / 1e3;
        let handshake = INITIAL_BYTES / rate + INITIAL_BYTES / return_rate;
        rounds + handshake + self.bytes as f64 * OVERHEAD / rate / (1.0 - self.loss_share)
    }

    /// What jitter adds in the mean. A flight comes in order, so that its latest packet counts: in the first round trip that is the
    /// flight of the handshake, in the second one that of the data. The other way it is one packet each time.
    fn lateness_ms(&self) -> f64 {
        let mean = Duration::from_secs_f64(self.jitter_ms / 1e3);
        let model = match self.jitter {
            DrawnJitter::None => return 0.0,
            DrawnJitter::Bell => Jitter::bell(mean),
            DrawnJitter::Wifi => Jitter::Wifi { mean },
        };
        let spacing = |bytes: f64, rate_mbps: f64| Duration::from_secs_f64(bytes * 8.0 / (rate_mbps * 1e6));
        let server_mbps = if self.upload { self.return_rate_mbps } else { self.rate_mbps };
        let handshake = model.mean_in_order(spacing(INITIAL_BYTES, server_mbps), HANDSHAKE_PACKETS);
        let packets = (self.bytes as f64 / PACKET_BYTES).ceil() as u32;
        let data = model.mean_in_order(spacing(PACKET_BYTES, self.rate_mbps), packets);
        let single = model.mean_in_order(Duration::ZERO, 1);
        (handshake + data + single * 2).as_secs_f64() * 1e3
    }

    /// A run is given up at this virtual time.
    pub fn limit_s(&self) -> f64 {
        (self.ideal_s * LIMIT_IDEALS).max(LIMIT_S_MIN).round()
    }

    /// What it is, in a sentence.
    pub fn title(&self) -> String {
        let mut title = format!(
            "{} bytes {} at {} Mbit/s, {} ms, queue of {} bytes ({} BDP)",
            self.bytes,
            if self.upload { "up" } else { "down" },
            self.rate_mbps,
            self.rtt_ms,
            self.queue_bytes,
            self.queue_bdp,
        );
        let percent = rounded(self.loss_share * 100.0);
        let _ = match self.loss {
            DrawnLoss::None => Ok(()),
            DrawnLoss::Single => write!(title, ", {percent} % loss"),
            DrawnLoss::Bursts => write!(title, ", {percent} % loss in bursts of {}", self.burst_packets),
        };
        let _ = match self.jitter {
            DrawnJitter::None => Ok(()),
            DrawnJitter::Bell => write!(title, ", jitter of {} ms", self.jitter_ms),
            DrawnJitter::Wifi => write!(title, ", Wi-Fi jitter of {} ms", self.jitter_ms),
        };
        if self.return_rate_mbps < self.rate_mbps {
            let _ = write!(title, ", {} Mbit/s back", self.return_rate_mbps);
        }
        title
    }

    /// The file of a scenario with this link. A run of it with the link's seed is the run that was measured.
    pub fn toml(&self) -> String {
        let (data, back, workload) = match self.upload {
            true => ("up", "down", "upload_bytes"),
            false => ("down", "up", "download_bytes"),
        };
        let loss = self.loss_toml();
        let jitter = match self.jitter {
            DrawnJitter::None => String::new(),
            DrawnJitter::Bell => format!(
                "jitter = {{ normal = {{ mean_ms = {}, deviation_ms = {} }} }}\n",
                self.jitter_ms,
                rounded(self.jitter_ms / 3.0),
            ),
            DrawnJitter::Wifi => format!("jitter = {{ wifi = {{ mean_ms = {} }} }}\n", self.jitter_ms),
        };
        format!(
            "title = \"{}\"\nlimit_s = {}\n\n[link]\ndelay_ms = {}\n{jitter}\n[{data}]\nrate_mbps = {}\n\
             queue_bytes = {}\n{loss}\n[{back}]\nrate_mbps = {}\nqueue_bytes = {}\n{}\n[[connection]]\n{workload} = {}\n",
            self.title(),
            self.limit_s(),
            self.rtt_ms / 2.0,
            self.rate_mbps,
            self.queue_bytes,
            self.return_rate_mbps,
            self.return_queue_bytes,
            if self.loss_both_ways { loss.as_str() } else { "" },
            self.bytes,
        )
    }

    fn loss_toml(&self) -> String {
        let share = self.loss_share;
        match self.loss {
            DrawnLoss::None => String::new(),
            DrawnLoss::Single => format!("loss = {{ uniform = {{ probability = {share} }} }}\n"),
            DrawnLoss::Bursts => {
                let begins = rounded(Loss::burst_probability(share, self.burst_packets));
                let longest = self.longest_burst();
                format!(
                    "loss = {{ burst = {{ probability = {begins}, length_min = 1, length_max = {longest} }} }}\n"
                )
            }
        }
    }

    /// Lengths from 1 to this have the mean that was drawn.
    fn longest_burst(&self) -> u32 {
        (2.0 * self.burst_packets - 1.0).round().max(1.0) as u32
    }

    /// The scenario of the link.
    ///
    /// # Errors
    /// The file cannot be read, which would be a defect of ours.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&format!("link-{}", self.number), &self.toml())
    }
}

fn draw_loss(space: &Space, rng: &mut Rng) -> (DrawnLoss, f64, f64) {
    let (lot, loss) = (rng.unit(), &space.loss);
    let share = loss.probability.uniform(rng);
    let burst = (loss.burst_packets.log_uniform(rng) * 2.0).round() / 2.0;
    match lot {
        lot if lot < loss.single_share => (DrawnLoss::Single, share, 1.0),
        lot if lot < loss.single_share + loss.burst_share => (DrawnLoss::Bursts, share, burst),
        _ => (DrawnLoss::None, 0.0, 1.0),
    }
}

fn draw_jitter(space: &Space, rng: &mut Rng) -> (DrawnJitter, f64) {
    let (lot, jitter) = (rng.unit(), &space.jitter);
    let mean = jitter.mean_ms.log_uniform(rng);
    match lot {
        lot if lot < jitter.bell_share => (DrawnJitter::Bell, mean),
        lot if lot < jitter.bell_share + jitter.wifi_share => (DrawnJitter::Wifi, mean),
        _ => (DrawnJitter::None, 0.0),
    }
}
