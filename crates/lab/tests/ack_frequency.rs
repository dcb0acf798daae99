//! How often acknowledgements come, as the ends have agreed: often enough for the window, rarely enough for the
//! return path.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, Simulation, Workload};
use fulmar_proto::congestion::{BbrConfig, CongestionControl, CubicConfig};
use fulmar_proto::{ConnectionStats, Side, TransportConfig};
use fulmar_sim::{LinkConfig, LinkStats, Loss};

const MEGABIT: u64 = 1_000_000;
const MEGABYTE: u64 = 1_000_000;
const MILLISECOND: Duration = Duration::from_millis(1);

/// An upload from the client to the server.
struct Upload {
    bytes: u64,
    up: LinkConfig,
    down: LinkConfig,
    /// Whether the server lets itself be asked.
    ack_frequency: bool,
    congestion: CongestionControl,
}

/// What came of it.
struct Outcome {
    /// When the last byte was read.
    seconds: f64,
    /// The largest gap and the longest delay between acknowledgements, of all that were asked for.
    gap_max: u32,
    delay_max: Duration,
    client: ConnectionStats,
    server: ConnectionStats,
    up: LinkStats,
    down: LinkStats,
}

impl Upload {
    fn new(bytes: u64, up: u64, down: u64, delay: Duration, queue: Duration) -> Self {
        Self {
            bytes,
            up: LinkConfig::with_rate(up, delay, queue),
            down: LinkConfig::with_rate(down, delay, queue),
            ack_frequency: true,
            congestion: CongestionControl::default(),
        }
    }

    fn with(self, congestion: CongestionControl) -> Self {
        Self { congestion, ..self }
    }

    fn without(self) -> Self {
        Self { ack_frequency: false, ..self }
    }

    fn run(self) -> Outcome {
        // Flow control is not what is looked at.
        let window = 64 * MEGABYTE;
        let client = TransportConfig {
            stream_receive_window: window,
            stream_receive_window_max: window,
            receive_window: window,
            receive_window_max: window,
            send_window: window,
            congestion: self.congestion,
            ..TransportConfig::default()
        };
        let server = TransportConfig { ack_frequency: self.ack_frequency, ..client.clone() };
        let lab = Lab::new(1)
            .link(self.up, self.down)
            .client(client)
            .server(server)
            .connection(Connecting::new(Workload::upload(self.bytes)));
        let mut simulation = lab.start().expect("the configuration is valid");
        let (mut gap_max, mut delay_max) = (0, Duration::ZERO);
        while !has_arrived(&simulation, self.bytes) {
            let step = simulation.run_for(5 * MILLISECOND);
            step.unwrap_or_else(|failure| panic!("{failure}"));
            let Some(session) = simulation.server().sessions().first() else { continue };
            let stats = session.connection().stats();
            let asked = stats.ack_delay != TransportConfig::default().max_ack_delay;
            if asked {
                gap_max = gap_max.max(stats.ack_gap);
                delay_max = delay_max.max(stats.ack_delay);
            }
        }
        Outcome {
            seconds: simulation.now().as_secs_f64(),
            gap_max,
            delay_max,
            client: simulation.client().sessions()[0].connection().stats(),
            server: simulation.server().sessions()[0].connection().stats(),
            up: simulation.link_stats(Side::Client).clone(),
            down: simulation.link_stats(Side::Server).clone(),
        }
    }
}

fn has_arrived(simulation: &Simulation, bytes: u64) -> bool {
    let session = simulation.server().sessions().first();
    let read = session.map(|s| s.application().receiving().values().map(|r| r.bytes()).sum::<u64>());
    read == Some(bytes)
}

impl Outcome {
    /// Packets forward for one packet back.
    fn thinning(&self) -> f64 {
        self.up.packets_delivered as f64 / self.down.packets_sent as f64
    }

    /// The part of the return path that was used, of `rate` bits per second.
    fn return_share(&self, rate: u64) -> f64 {
        self.down.bytes_sent as f64 * 8.0 / (rate as f64 * self.seconds)
    }

    /// What the test command shows with `--nocapture`.
    fn print(&self, name: &str) {
        println!(
            "{name}: {:.3} s, {} packets, {} lost; {} ACKs of {} bytes in {} bytes back, one packet back for \
             {:.1}; gap {} delay {:?} at most; queue of the return path {} bytes at most, {} dropped",
            self.seconds,
            self.client.packets_sent,
            self.client.packets_lost,
            self.server.acks_sent,
            self.server.ack_bytes,
            self.down.bytes_sent,
            self.thinning(),
            self.gap_max,
            self.delay_max,
            self.down.queue_bytes_max,
            self.down.packets_dropped_in_all(),
        );
    }
}

#[test]
fn a_link_of_100_megabits_and_10_milliseconds() {
    let link =
        || Upload::new(20 * MEGABYTE, 100 * MEGABIT, 100 * MEGABIT, 10 * MILLISECOND, 40 * MILLISECOND);
    let (agreed, plain) = (link().run(), link().without().run());
    agreed.print("100 Mbit/s");
    plain.print("100 Mbit/s, every second packet");
    // A quarter of the packets that the path holds without a queue, which are 172, at most.
    assert!(agreed.gap_max <= 43 && agreed.gap_max >= 20, "{}", agreed.gap_max);
    assert!(agreed.delay_max <= 6 * MILLISECOND, "{:?}", agreed.delay_max);
    assert!(agreed.server.acks_sent * 8 < plain.server.acks_sent);
    assert!(agreed.seconds < plain.seconds * 1.02, "{} s, {} s", agreed.seconds, plain.seconds);
}

#[test]
fn a_link_of_10_microseconds() {
    let delay = Duration::from_micros(10);
    let link = || Upload::new(20 * MEGABYTE, 1_000 * MEGABIT, 1_000 * MEGABIT, delay, 5 * MILLISECOND);
    let (agreed, plain) = (link().run(), link().without().run());
    agreed.print("10 us");
    plain.print("10 us, every second packet");
    assert!(agreed.gap_max <= 32 && agreed.gap_max >= 8, "{}", agreed.gap_max);
    assert!(agreed.delay_max <= MILLISECOND, "{:?}", agreed.delay_max);
    assert!(agreed.seconds < plain.seconds * 1.02, "{} s, {} s", agreed.seconds, plain.seconds);
}

#[test]
fn a_satellite_with_a_narrow_way_back() {
    let (up, down) = (250 * MEGABIT, 3 * MEGABIT);
    let link = || Upload::new(50 * MEGABYTE, up, down, 300 * MILLISECOND, 600 * MILLISECOND);
    let (agreed, plain) = (link().run(), link().without().run());
    agreed.print("satellite");
    plain.print("satellite, every second packet");
    // The way back carries the ACKs as they come: nothing waits there longer than 20 ms.
    assert!(agreed.return_share(down) < 0.1, "{}", agreed.return_share(down));
    assert!(agreed.down.queue_bytes_max < 7_500, "{}", agreed.down.queue_bytes_max);
    assert_eq!(agreed.down.packets_dropped_in_all(), 0);
    assert!(agreed.thinning() > 20.0, "{}", agreed.thinning());
    assert!(agreed.delay_max <= 10 * MILLISECOND, "{:?}", agreed.delay_max);
    // Otherwise it is congested.
    assert!(plain.down.queue_bytes_max > 30_000, "{}", plain.down.queue_bytes_max);
}

#[test]
fn asymmetric_links() {
    // The window of BBR holds few packets at 2 ms, and is acknowledged more often for it: as often as the return path carries, with
    // a quarter of headroom that leaves 0.8 of it, and some more until the path is seen to be full.
    let (bbr, cubic) =
        (CongestionControl::Bbr(BbrConfig::default()), CongestionControl::Cubic(CubicConfig::default()));
    let links = [(10 * MEGABIT, MEGABIT / 10), (40 * MEGABIT, 4 * MEGABIT / 10)];
    for ((up, down), (congestion, share)) in
        links.into_iter().flat_map(|link| [(link, (&cubic, 0.4)), (link, (&bbr, 0.85))])
    {
        let link = || {
            let link = Upload::new(10 * MEGABYTE, up, down, MILLISECOND, 300 * MILLISECOND);
            link.with(congestion.clone())
        };
        let (agreed, plain) = (link().run(), link().without().run());
        agreed.print("asymmetric");
        plain.print("asymmetric, every second packet");
        assert!(agreed.return_share(down) < share, "{}", agreed.return_share(down));
        assert_eq!(agreed.down.packets_dropped_in_all(), 0);
        assert!(agreed.down.queue_bytes_max < 1_000, "{}", agreed.down.queue_bytes_max);
        assert!(plain.return_share(down) > 0.95, "{}", plain.return_share(down));
        assert!(agreed.seconds < plain.seconds, "{} s, {} s", agreed.seconds, plain.seconds);
    }
}

#[test]
fn losses_in_both_directions_do_not_keep_the_ends_from_agreeing() {
    let mut link = Upload::new(4 * MEGABYTE, 10 * MEGABIT, 10 * MEGABIT, 10 * MILLISECOND, 60 * MILLISECOND);
    link.up.loss = Loss::Uniform { probability: 0.03 };
    link.down.loss = Loss::Uniform { probability: 0.03 };
    let agreed = link.run();
    agreed.print("3 % loss");
    assert!(agreed.server.ack_delay < 10 * MILLISECOND, "{:?}", agreed.server.ack_delay);
    assert!(agreed.client.packets_spurious * 50 < agreed.client.packets_lost, "{:?}", agreed.client);
}

#[test]
fn a_server_that_does_not_negotiate_acknowledges_every_second_packet() {
    let plain =
        Upload::new(MEGABYTE, 10 * MEGABIT, 10 * MEGABIT, 10 * MILLISECOND, 60 * MILLISECOND).without().run();
    assert_eq!((plain.server.ack_gap, plain.server.ack_delay), (2, 25 * MILLISECOND));
    assert!(plain.server.acks_sent * 2 >= plain.up.packets_delivered - 20);
}
