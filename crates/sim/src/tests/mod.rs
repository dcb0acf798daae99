//! Each element, seen from outside: packets go into a world and come out of it.

mod aqm;
mod bottleneck;
mod cross_traffic;
mod delay;
mod determinism;
mod loss;
mod mangling;
mod nodes;
mod policer;
mod recording;
mod routing;
mod suspension;

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_base::Instant;

use crate::{Delivery, Ecn, LinkConfig, LinkId, LinkStats, NodeId, Packet, World};

/// Two nodes and one link, of which one direction is of interest.
struct Line {
    world: World,
    a: NodeId,
    b: NodeId,
    link: LinkId,
}

impl Line {
    fn new(seed: u64, config: LinkConfig) -> Self {
        let mut world = World::new(seed);
        let (a, b) = (world.add_node([address(1).ip()]), world.add_node([address(2).ip()]));
        let link = world.add_link(a, b, config, LinkConfig::default());
        Self { world, a, b, link }
    }

    /// Sends a payload of `size` bytes that begins with `number`.
    fn send(&mut self, number: u32, size: usize) {
        let mut payload = vec![0; size];
        for (to, from) in payload.iter_mut().zip(number.to_be_bytes()) {
            *to = from;
        }
        self.world.send(self.a, Packet::new(address(1), address(2), Ecn::Ect0, payload));
    }

    /// Sends `count` payloads of `size` bytes, numbered from 0, one every `interval`.
    fn send_every(&mut self, interval: Duration, count: u32, size: usize) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        for number in 0..count {
            let due = Instant::ZERO + interval * number;
            while self.world.now() < due {
                self.world.advance(due);
                deliveries.extend(std::iter::from_fn(|| self.world.poll_delivery()));
            }
            self.send(number, size);
        }
        deliveries.extend(self.drain());
        deliveries
    }

    /// Everything that is still to be delivered.
    fn drain(&mut self) -> Vec<Delivery> {
        let mut deliveries: Vec<_> = std::iter::from_fn(|| self.world.poll_delivery()).collect();
        while let Some(next) = self.world.next_event() {
            self.world.advance(next);
            deliveries.extend(std::iter::from_fn(|| self.world.poll_delivery()));
        }
        assert!(deliveries.iter().all(|delivery| delivery.node == self.b));
        deliveries
    }

    fn stats(&self) -> &LinkStats {
        self.world.stats(self.link, self.a)
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4_000 + u16::from(host)))
}

/// The number that [`Line::send`] put into the payload.
fn number(delivery: &Delivery) -> u32 {
    u32::from_be_bytes(delivery.packet.payload[..4].try_into().expect("four bytes"))
}

fn numbers(deliveries: &[Delivery]) -> Vec<u32> {
    deliveries.iter().map(number).collect()
}

fn times(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.at.as_nanos()).collect()
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
