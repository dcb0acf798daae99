//! How many packets per second of real time the simulator carries: `cargo run --release -p fulmar-sim --example speed`.
#![allow(clippy::disallowed_methods, reason = "real time is what is measured")]

use std::net::SocketAddr;
use std::time::{Duration, Instant as Clock};

use fulmar_base::Instant;
use fulmar_sim::{Ecn, Jitter, LinkConfig, Loss, Packet, World};

const PACKETS: u32 = 2_000_000;
const SIZE: usize = 1_252;

fn main() {
    let plain = LinkConfig::with_rate(1_000_000_000, Duration::from_millis(10), Duration::from_millis(20));
    let rough = LinkConfig {
        jitter: Jitter::Normal { mean: Duration::from_millis(1), deviation: Duration::from_millis(1) },
        loss: Loss::GilbertElliott { to_bad: 0.001, to_good: 0.1, loss_good: 0.001, loss_bad: 0.5 },
        ..plain.clone()
    };
    for (name, config) in [("rate, queue and delay", plain), ("the same, jitter and loss", rough)] {
        println!("{name}: {:.2} million packets per second", run(config) / 1e6);
    }
}

/// Sends at the rate of the link, and returns the packets carried per second.
fn run(config: LinkConfig) -> f64 {
    let [alice, bob] = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 4_000)));
    let mut world = World::new(1);
    let (a, b) = (world.add_node([alice.ip()]), world.add_node([bob.ip()]));
    world.add_link(a, b, config, LinkConfig::default());
    let start = Clock::now();
    for number in 0..PACKETS {
        advance(&mut world, Instant::ZERO + Duration::from_nanos(10_016) * number);
        let mut payload = world.buffers().take();
        payload.resize(SIZE, 0);
        world.send(a, Packet::new(alice, bob, Ecn::NotEct, payload));
    }
    let end = world.now() + Duration::from_secs(1);
    advance(&mut world, end);
    f64::from(PACKETS) / start.elapsed().as_secs_f64()
}

fn advance(world: &mut World, to: Instant) {
    while world.now() < to {
        world.advance(to);
        while let Some(delivery) = world.poll_delivery() {
            world.buffers().put(delivery.packet.payload);
        }
    }
}
