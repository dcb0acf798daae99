//! Routers and NATs as parts of a world.

use super::*;
use crate::NatConfig;

fn packet(from: u8, to: u8) -> Packet {
    Packet::new(address(from), address(to), Ecn::Ect0, vec![from; 100])
}

fn delayed(delay_ms: u64) -> LinkConfig {
    LinkConfig { delay: millis(delay_ms), ..LinkConfig::default() }
}

fn drain(world: &mut World) -> Vec<Delivery> {
    let mut deliveries: Vec<_> = std::iter::from_fn(|| world.poll_delivery()).collect();
    while let Some(next) = world.next_event() {
        world.advance(next);
        deliveries.extend(std::iter::from_fn(|| world.poll_delivery()));
    }
    deliveries
}

#[test]
fn routers_forward_along_their_routes() {
    let mut world = World::new(1);
    let (a, b) = (world.add_node([address(1).ip()]), world.add_node([address(2).ip()]));
    let (near, far) = (world.add_router(), world.add_router());
    let first = world.add_link(a, near, delayed(1), delayed(1));
    let quick = world.add_link(near, far, delayed(5), delayed(5));
    let slow = world.add_link(near, far, delayed(50), delayed(50));
    let last = world.add_link(far, b, delayed(1), delayed(1));
    world.add_default_route(a, first);
    world.add_default_route(b, last);
    world.add_route(near, None, address(2).ip(), slow);
    world.add_route(far, None, address(1).ip(), quick);

    world.send(a, packet(1, 2));
    let [there] = drain(&mut world).try_into().expect("one packet arrives");
    assert_eq!((there.node, there.at), (b, Instant::from_millis(52)));
    assert_eq!(there.packet.source, address(1));
    world.send(b, packet(2, 1));
    let [back] = drain(&mut world).try_into().expect("one packet arrives");
    assert_eq!((back.node, back.at), (a, Instant::from_millis(59)));
    assert_eq!(world.stats(slow, near).packets_delivered, 1);
    assert_eq!(world.stats(quick, far).packets_delivered, 1);
}

#[test]
fn a_source_chooses_its_path_through_a_router() {
    let mut world = World::new(1);
    // The host has two addresses, as one with two interfaces.
    let a = world.add_node([address(1).ip(), address(3).ip()]);
    let router = world.add_router();
    let b = world.add_node([address(2).ip()]);
    let one = world.add_link(a, router, delayed(1), delayed(1));
    let other = world.add_link(a, router, delayed(2), delayed(2));
    world.add_link(router, b, delayed(10), delayed(10));
    world.add_route(a, Some(address(3).ip()), address(2).ip(), other);
    world.add_default_route(a, one);
    world.send(a, packet(1, 2));
    world.send(a, packet(3, 2));
    assert_eq!(times(&drain(&mut world)), [11_000_000, 12_000_000]);
}

#[test]
fn a_loop_of_routers_has_an_end() {
    let mut world = World::new(1);
    let a = world.add_node([address(1).ip()]);
    let (one, two) = (world.add_router(), world.add_router());
    let entry = world.add_link(a, one, delayed(0), delayed(0));
    let ring = world.add_link(one, two, delayed(0), delayed(0));
    world.add_default_route(a, entry);
    world.add_default_route(one, ring);
    world.add_default_route(two, ring);
    world.send(a, packet(1, 2));
    assert_eq!(drain(&mut world), []);
    assert_eq!(world.packets_unroutable(), 1);
}

/// A client behind a NAT with two outside addresses, and a server.
fn natted() -> (World, [NodeId; 3]) {
    let mut world = World::new(1);
    let (client, server) = (world.add_node([address(1).ip()]), world.add_node([address(2).ip()]));
    let addresses = vec![address(8).ip(), address(9).ip()];
    let nat = world.add_nat(NatConfig {
        addresses,
        rebind_at: vec![Instant::from_millis(1_000)],
        ..NatConfig::symmetric(address(8).ip())
    });
    let inside = world.add_link(client, nat, delayed(1), delayed(1));
    let outside = world.add_link(nat, server, delayed(10), delayed(10));
    world.add_default_route(client, inside);
    world.add_default_route(server, outside);
    (world, [client, nat, server])
}

/// Sends a packet to the server and returns where it seemed to come from.
fn sends(world: &mut World, [client, _, server]: [NodeId; 3]) -> SocketAddr {
    world.send(client, packet(1, 2));
    let [delivery] = drain(world).try_into().expect("one packet arrives");
    assert_eq!(delivery.node, server);
    delivery.packet.source
}

/// Sends a packet from the server and returns how many arrive at the client.
fn answers(world: &mut World, [client, _, server]: [NodeId; 3], to: SocketAddr) -> usize {
    world.send(server, Packet::new(address(2), to, Ecn::NotEct, vec![2; 50]));
    let deliveries = drain(world);
    for delivery in &deliveries {
        assert_eq!((delivery.node, delivery.packet.destination), (client, address(1)));
    }
    deliveries.len()
}

#[test]
fn a_nat_translates_both_ways_and_rebinds() {
    let (mut world, nodes) = natted();
    let first = sends(&mut world, nodes);
    assert_eq!(first.ip(), address(8).ip());
    assert_eq!(answers(&mut world, nodes, first), 1);
    // A world without anything under way stands still until it is told to go on.
    world.advance(Instant::from_millis(1_000));
    assert_eq!(answers(&mut world, nodes, first), 0);
    let second = sends(&mut world, nodes);
    assert_eq!(second.ip(), address(9).ip());
    assert_ne!(second.port(), first.port());
    assert_eq!(answers(&mut world, nodes, second), 1);
    world.rebind(nodes[1]);
    assert_eq!(answers(&mut world, nodes, second), 0);
    assert_eq!(sends(&mut world, nodes).ip(), address(8).ip());
    let stats = world.nat_stats(nodes[1]);
    assert_eq!((stats.rebindings, stats.mappings_created, stats.packets_refused), (2, 3, 2));
    assert_eq!((stats.packets_out, stats.packets_in), (3, 2));
}
