//! The link, the clock and the loop.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_sim::{LinkConfig, NodeId, Packet, World};
use serde::Serialize;

use crate::seat::Seated;
use crate::{client_address, server_address};

/// After this much virtual time a download has failed.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// One end of the link: a stack, its connection and what the application does with it.
pub trait End {
    /// A packet arrived.
    fn receive(&mut self, now: Instant, packet: &Packet);
    /// Goes over to another socket: all that it sends comes from there, and all that goes to the old one is lost.
    fn replace_socket(&mut self, now: Instant, address: SocketAddr);
    /// Its address and its application.
    fn seat(&self) -> &dyn Seated;
    /// Lets everything happen that is due, and appends what is to be sent.
    fn service(&mut self, now: Instant, out: &mut Vec<Packet>);
    /// When something is due next.
    fn next_wake(&mut self) -> Option<Instant>;
}

/// What came out of a download.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outcome {
    /// From the start of the client to its last byte, in seconds of virtual time.
    pub completion_s: f64,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Packets that the client sent.
    pub packets_up: u64,
    /// Packets that the server sent.
    pub packets_down: u64,
    /// Packets that the link dropped, in both directions.
    pub packets_dropped: u64,
}

/// Why a download did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub at: Instant,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:?}: {}", self.at, self.what)
    }
}

impl std::error::Error for Failure {}

pub(crate) fn run(
    client: &mut dyn End,
    server: &mut dyn End,
    (up, down): (LinkConfig, LinkConfig),
    moves: &[Duration],
    seed: u64,
) -> Result<Outcome, Failure> {
    let mut world = World::new(seed);
    let nodes = [client_address(), server_address()].map(|address| world.add_node([address.ip()]));
    let link = world.add_link(nodes[0], nodes[1], up, down);
    let end = Instant::ZERO + PATIENCE;
    let mut moves = moves.iter().map(|at| Instant::ZERO + *at).peekable();
    loop {
        if moves.next_if(|at| *at <= world.now()).is_some() {
            let address = client.seat().address();
            client.replace_socket(world.now(), SocketAddr::new(address.ip(), address.port() + 1));
        }
        settle(&mut world, &mut [&mut *client, &mut *server], nodes);
        if let Some(what) = client.seat().failure().or_else(|| server.seat().failure()) {
            return Err(Failure { at: world.now(), what: what.to_owned() });
        }
        if client.seat().is_done() {
            let [up, down] = nodes.map(|node| world.stats(link, node).clone());
            return Ok(Outcome {
                completion_s: world.now().as_secs_f64(),
                bytes: client.seat().bytes_read(),
                packets_up: up.packets_sent,
                packets_down: down.packets_sent,
                packets_dropped: up.packets_dropped_in_all() + down.packets_dropped_in_all(),
            });
        }
        if world.now() >= end {
            let what = format!("hangs after {} bytes", client.seat().bytes_read());
            return Err(Failure { at: end, what });
        }
        let wake =
            [client.next_wake(), server.next_wake(), moves.peek().copied()].into_iter().flatten().min();
        let now = world.now();
        world.advance(wake.unwrap_or(end).clamp(now, end));
    }
}

/// Everything that happens at this instant.
fn settle(world: &mut World, ends: &mut [&mut dyn End; 2], nodes: [NodeId; 2]) {
    let mut out = Vec::new();
    loop {
        let now = world.now();
        while let Some(delivery) = world.poll_delivery() {
            let end = &mut ends[usize::from(delivery.node == nodes[1])];
            if end.seat().address() == delivery.packet.destination {
                end.receive(now, &delivery.packet);
            }
        }
        let mut quiet = true;
        for (end, node) in ends.iter_mut().zip(nodes) {
            end.service(now, &mut out);
            quiet &= out.is_empty();
            out.drain(..).for_each(|packet| world.send(node, packet));
        }
        if quiet {
            return;
        }
    }
}
