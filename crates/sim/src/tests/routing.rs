//! Nodes, routes, time, and elements of the caller's own.

use fulmar_base::Rng;

use super::*;
use crate::{Context, Element, Pipe};

fn packet(from: u8, to: u8) -> Packet {
    Packet::new(address(from), address(to), Ecn::NotEct, vec![from, to])
}

fn delayed(ms: u64) -> LinkConfig {
    LinkConfig { delay: millis(ms), ..LinkConfig::default() }
}

#[test]
fn directions_are_independent() {
    let mut world = World::new(1);
    let (a, b) = (world.add_node([address(1).ip()]), world.add_node([address(2).ip()]));
    let link = world.add_link(a, b, delayed(10), delayed(30));
    world.send(a, packet(1, 2));
    world.send(b, packet(2, 1));
    world.send(b, packet(2, 1));
    assert_eq!(world.advance(Instant::FAR_FUTURE), Instant::from_millis(10));
    assert_eq!(world.poll_delivery().map(|delivery| delivery.node), Some(b));
    assert_eq!(world.advance(Instant::FAR_FUTURE), Instant::from_millis(30));
    // Both packets of that instant are there.
    assert_eq!(world.poll_delivery().map(|delivery| delivery.node), Some(a));
    assert_eq!(world.poll_delivery().map(|delivery| delivery.node), Some(a));
    assert_eq!(world.poll_delivery(), None);
    assert_eq!((world.stats(link, a).packets_sent, world.stats(link, b).packets_sent), (1, 2));
}

#[test]
fn time_moves_to_where_it_is_asked_when_nothing_arrives() {
    let mut world = World::new(1);
    let (a, b) = (world.add_node([address(1).ip()]), world.add_node([address(2).ip()]));
    world.add_link(a, b, delayed(10), delayed(10));
    assert_eq!(world.next_event(), None);
    assert_eq!(world.advance(Instant::from_millis(3)), Instant::from_millis(3));
    world.send(a, packet(1, 2));
    assert_eq!(world.next_event(), Some(Instant::from_millis(13)));
    assert_eq!(world.advance(Instant::from_millis(12)), Instant::from_millis(12));
    assert_eq!(world.poll_delivery(), None);
    assert_eq!(world.advance(Instant::from_millis(99)), Instant::from_millis(13));
}

#[test]
fn packets_to_nowhere_are_counted() {
    let mut world = World::new(1);
    let (a, _c) = (world.add_node([address(1).ip()]), world.add_node([address(3).ip()]));
    world.send(a, packet(1, 2));
    world.send(a, packet(1, 3));
    assert_eq!((world.packets_unroutable(), world.next_event()), (2, None));
}

#[test]
fn a_route_chooses_the_link_by_source_address() {
    let mut world = World::new(1);
    let a = world.add_node([address(1).ip(), address(11).ip()]);
    let b = world.add_node([address(2).ip()]);
    let fast = world.add_link(a, b, delayed(10), delayed(10));
    let slow = world.add_link(a, b, delayed(300), delayed(300));
    world.add_route(a, Some(address(11).ip()), address(2).ip(), slow);
    world.add_route(b, None, address(11).ip(), slow);
    for (from, to) in [(1, 2), (11, 2)] {
        world.send(a, packet(from, to));
        world.send(b, packet(to, from));
    }
    for link in [fast, slow] {
        assert_eq!((world.stats(link, a).packets_sent, world.stats(link, b).packets_sent), (1, 1));
    }
}

#[test]
fn buffers_come_back() {
    let mut world = World::new(1);
    let a = world.add_node([address(1).ip()]);
    let mut payload = Vec::with_capacity(5_000);
    payload.push(1);
    world.send(a, Packet::new(address(1), address(9), Ecn::NotEct, payload));
    let buffer = world.buffers().take();
    assert!(buffer.is_empty() && buffer.capacity() >= 5_000);
}

/// Marks what passes, as a queue with ECN would.
#[derive(Debug)]
struct Marker;

impl Element for Marker {
    fn accept(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        packet.ecn = Ecn::Ce;
        cx.pass(packet);
    }
}

#[test]
fn a_caller_can_bring_an_element() {
    let mut world = World::new(1);
    let (a, b) = (world.add_node([address(1).ip()]), world.add_node([address(2).ip()]));
    let marking = Pipe::with_elements(vec![Box::new(Marker)], Vec::new(), &mut Rng::from_u64(1));
    let plain = Pipe::new(LinkConfig::default(), &mut Rng::from_u64(2));
    world.add_pipes(a, b, marking, plain);
    world.send(a, packet(1, 2));
    assert_eq!(world.poll_delivery().map(|delivery| delivery.packet.ecn), Some(Ecn::Ce));
}
