//! The clock, the nodes, the links between them, and the order in which things happen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use fulmar_base::{Instant, Rng};

use crate::nat::Nat;
use crate::node::{Node, Role, Route};
use crate::pipe::Turn;
use crate::{BufferPool, Change, LinkConfig, LinkStats, LinkTrace, NatConfig, NatStats, Packet, Pipe};

/// How many nodes may forward a packet, so that one in a loop of routers has an end.
const HOPS_MAX: u8 = 64;

/// A node in a [`World`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// A link in a [`World`], both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(usize);

/// A packet that reached its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// When it arrived.
    pub at: Instant,
    /// The node that owns the destination address.
    pub node: NodeId,
    /// The packet.
    pub packet: Packet,
}

/// A simulated network.
///
/// The caller's loop: drain [`poll_delivery`](Self::poll_delivery), let the nodes [`send`](Self::send), then
/// [`advance`](Self::advance) to the earliest of the nodes' own timers, which stops earlier if a packet
/// arrives.
///
/// Things that happen at the same nanosecond happen in the order of their links (as added, first direction
/// first), and within a link in the order of its packets.
#[derive(Debug)]
pub struct World {
    now: Instant,
    rng: Rng,
    nodes: Vec<Node>,
    owners: BTreeMap<IpAddr, NodeId>,
    /// Two per link: from its first node, then from its second.
    pipes: Vec<Attached>,
    /// The next timeout of each pipe that has one.
    events: BTreeSet<(Instant, usize)>,
    inbox: VecDeque<Delivery>,
    pool: BufferPool,
    arrivals: Vec<Packet>,
    /// Packets that reached a router or a NAT, at this instant.
    to_forward: VecDeque<(NodeId, Packet)>,
    packets_unroutable: u64,
}

/// A pipe and where it leads.
#[derive(Debug)]
struct Attached {
    pipe: Pipe,
    to: NodeId,
    /// The entry of this pipe in the event queue.
    armed: Option<Instant>,
}

impl World {
    /// An empty world at [`Instant::ZERO`]. All chance in it comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            rng: Rng::from_u64(seed),
            nodes: Vec::new(),
            owners: BTreeMap::new(),
            pipes: Vec::new(),
            events: BTreeSet::new(),
            inbox: VecDeque::new(),
            pool: BufferPool::default(),
            arrivals: Vec::new(),
            to_forward: VecDeque::new(),
            packets_unroutable: 0,
        }
    }

    /// Adds a host that owns `addresses`, with all their ports.
    ///
    /// # Panics
    /// Panics if another node owns one of them.
    pub fn add_node(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> NodeId {
        self.add(addresses, Role::Host)
    }

    /// Adds a router: it sends on at once what arrives, by its routes. It has no address.
    pub fn add_router(&mut self) -> NodeId {
        self.add([], Role::Router)
    }

    /// Adds a NAT that owns the outside addresses of `config`. It is a router in all other respects: what is
    /// translated goes on by its routes. For the hosts behind it, it is the default route.
    ///
    /// # Panics
    /// Panics if `config` has no address or if another node owns one of them.
    pub fn add_nat(&mut self, config: NatConfig) -> NodeId {
        assert!(!config.addresses.is_empty(), "a NAT has an outside address");
        self.add(config.addresses.clone(), Role::Nat(Box::new(Nat::new(config))))
    }

    fn add(&mut self, addresses: impl IntoIterator<Item = IpAddr>, role: Role) -> NodeId {
        let node = NodeId(self.nodes.len());
        self.nodes.push(Node::new(role));
        for address in addresses {
            let owner = self.owners.insert(address, node);
            assert!(owner.is_none(), "{address} belongs to another node");
        }
        node
    }

    /// Joins two nodes. The directions are independent of each other.
    ///
    /// # Panics
    /// Panics if `a` and `b` are the same node.
    pub fn add_link(&mut self, a: NodeId, b: NodeId, a_to_b: LinkConfig, b_to_a: LinkConfig) -> LinkId {
        let a_to_b = Pipe::new(a_to_b, &mut self.rng.fork());
        let b_to_a = Pipe::new(b_to_a, &mut self.rng.fork());
        self.add_pipes(a, b, a_to_b, b_to_a)
    }

    /// Joins two nodes by pipes that the caller built.
    ///
    /// # Panics
    /// Panics if `a` and `b` are the same node.
    pub fn add_pipes(&mut self, a: NodeId, b: NodeId, a_to_b: Pipe, b_to_a: Pipe) -> LinkId {
        assert_ne!(a, b, "a link joins two nodes");
        let link = LinkId(self.pipes.len() / 2);
        for (from, to, pipe) in [(a, b, a_to_b), (b, a, b_to_a)] {
            let index = self.pipes.len();
            self.pipes.push(Attached { pipe, to, armed: None });
            self.nodes[from.0].pipes.push(index);
            self.arm(index);
        }
        link
    }

    /// Sends what leaves `node` for `destination` (and comes from `source`, if given) over `link`. Routes are
    /// tried as added; without one, a packet takes the first link to the node that owns its destination.
    ///
    /// # Panics
    /// Panics if `link` does not begin at `node`.
    pub fn add_route(&mut self, node: NodeId, source: Option<IpAddr>, destination: IpAddr, link: LinkId) {
        let pipe = self.pipe_from(link, node);
        self.nodes[node.0].routes.push(Route { source, destination, pipe });
    }

    /// Sends what leaves `node` over `link` if neither a route nor a link to the owner of the destination says
    /// otherwise. A later one replaces it.
    ///
    /// # Panics
    /// Panics if `link` does not begin at `node`.
    pub fn add_default_route(&mut self, node: NodeId, link: LinkId) {
        self.nodes[node.0].default_route = Some(self.pipe_from(link, node));
    }

    /// A NAT forgets all its mappings now and goes on with its next address.
    ///
    /// # Panics
    /// Panics if `node` is not a NAT.
    pub fn rebind(&mut self, node: NodeId) {
        self.nat_mut(node).rebind();
    }

    /// What a NAT did.
    ///
    /// # Panics
    /// Panics if `node` is not a NAT.
    pub fn nat_stats(&self, node: NodeId) -> &NatStats {
        match &self.nodes[node.0].role {
            Role::Nat(nat) => nat.stats(),
            _ => panic!("{node:?} is not a NAT"),
        }
    }

    fn nat_mut(&mut self, node: NodeId) -> &mut Nat {
        match &mut self.nodes[node.0].role {
            Role::Nat(nat) => nat,
            _ => panic!("{node:?} is not a NAT"),
        }
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Sends a packet from a node, now. Without a link that leads to its destination it is dropped and
    /// counted.
    pub fn send(&mut self, from: NodeId, mut packet: Packet) {
        packet.hops = 0;
        self.put(from, packet);
        self.forward_all();
    }

    fn put(&mut self, from: NodeId, packet: Packet) {
        match self.route(from, &packet) {
            Some(index) => self.turn(index, |pipe, turn| pipe.send(packet, turn)),
            None => {
                self.packets_unroutable += 1;
                self.pool.put(packet.payload);
            }
        }
    }

    /// Lets the routers and NATs deal with what reached them.
    fn forward_all(&mut self) {
        while let Some((node, mut packet)) = self.to_forward.pop_front() {
            packet.hops += 1;
            let accepted = match &mut self.nodes[node.0].role {
                Role::Nat(nat) => nat.translate(self.now, &mut packet),
                Role::Host | Role::Router => true,
            };
            if !accepted {
                self.pool.put(packet.payload);
            } else if packet.hops > HOPS_MAX {
                self.packets_unroutable += 1;
                self.pool.put(packet.payload);
            } else {
                self.put(node, packet);
            }
        }
    }

    /// Changes a setting of a link in the direction that begins at `from`, now.
    ///
    /// # Panics
    /// Panics if `link` does not begin at `from`.
    pub fn change(&mut self, link: LinkId, from: NodeId, change: &Change) {
        let index = self.pipe_from(link, from);
        self.turn(index, |pipe, turn| pipe.apply(change, turn));
        self.forward_all();
    }

    /// When something happens next in the network; `None` if nothing is under way or scheduled. It need not
    /// deliver anything.
    pub fn next_event(&self) -> Option<Instant> {
        self.events.first().map(|(at, _)| *at)
    }

    /// Moves the time to `to`, or only to the first instant at which a packet is delivered, and returns it.
    /// Packets that were delivered before and not fetched do not stop the time.
    ///
    /// # Panics
    /// Panics in debug builds if `to` is in the past; in release builds the time then stays.
    pub fn advance(&mut self, to: Instant) -> Instant {
        debug_assert!(to >= self.now, "time does not go back");
        let delivered_before = self.inbox.len();
        let mut stop = to;
        while let Some(&(at, index)) = self.events.first()
            && at <= stop
        {
            self.now = self.now.max(at);
            self.turn(index, Pipe::on_timeout);
            self.forward_all();
            if self.inbox.len() > delivered_before {
                stop = self.now;
            }
        }
        self.now = self.now.max(stop);
        self.now
    }

    /// The next packet that arrived, in the order of arrival.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        self.inbox.pop_front()
    }

    /// What happened to the packets of a link in the direction that begins at `from`.
    ///
    /// # Panics
    /// Panics if `link` does not begin at `from`.
    pub fn stats(&self, link: LinkId, from: NodeId) -> &LinkStats {
        self.pipes[self.pipe_from(link, from)].pipe.stats()
    }

    /// Begins to record the course of a link in the direction that begins at `from`: its queue, with one sample
    /// per `interval` at most, drops and marks. What was recorded before is gone.
    ///
    /// # Panics
    /// Panics if `link` does not begin at `from`.
    pub fn record(&mut self, link: LinkId, from: NodeId, interval: Duration) {
        let index = self.pipe_from(link, from);
        self.pipes[index].pipe.record(interval);
    }

    /// What was recorded; `None` if [`World::record`] was not called for this direction.
    ///
    /// # Panics
    /// Panics if `link` does not begin at `from`.
    pub fn link_trace(&self, link: LinkId, from: NodeId) -> Option<&LinkTrace> {
        self.pipes[self.pipe_from(link, from)].pipe.trace()
    }

    /// Packets that were sent to where no link leads, or were in a loop of routers.
    pub const fn packets_unroutable(&self) -> u64 {
        self.packets_unroutable
    }

    /// Spare buffers: take one to build a payload, put a delivered payload back.
    pub const fn buffers(&mut self) -> &mut BufferPool {
        &mut self.pool
    }

    fn pipe_from(&self, link: LinkId, from: NodeId) -> usize {
        let first = link.0 * 2;
        // The second direction leads back to where the first one begins.
        match (self.pipes[first + 1].to == from, self.pipes[first].to == from) {
            (true, _) => first,
            (_, true) => first + 1,
            _ => panic!("{link:?} does not begin at {from:?}"),
        }
    }

    fn route(&self, from: NodeId, packet: &Packet) -> Option<usize> {
        let node = &self.nodes[from.0];
        let (source, destination) = (packet.source.ip(), packet.destination.ip());
        let matches = |route: &&Route| {
            route.destination == destination && route.source.is_none_or(|wanted| wanted == source)
        };
        if let Some(route) = node.routes.iter().find(matches) {
            return Some(route.pipe);
        }
        let owner = self.owners.get(&destination);
        let direct = owner.and_then(|owner| {
            let leads_there = |pipe: &usize| self.pipes[*pipe].to == *owner;
            node.pipes.iter().copied().find(leads_there)
        });
        direct.or(node.default_route)
    }

    /// Gives a pipe the turn, then takes what came out of it.
    fn turn(&mut self, index: usize, action: impl FnOnce(&mut Pipe, &mut Turn<'_>)) {
        let mut turn = Turn { now: self.now, pool: &mut self.pool, out: &mut self.arrivals };
        let attached = &mut self.pipes[index];
        action(&mut attached.pipe, &mut turn);
        let node = attached.to;
        let is_host = matches!(self.nodes[node.0].role, Role::Host);
        for packet in self.arrivals.drain(..) {
            if is_host {
                self.inbox.push_back(Delivery { at: self.now, node, packet });
            } else {
                self.to_forward.push_back((node, packet));
            }
        }
        self.arm(index);
    }

    /// Brings the event queue up to date with a pipe.
    fn arm(&mut self, index: usize) {
        let attached = &mut self.pipes[index];
        let wanted = attached.pipe.next_timeout();
        if wanted == attached.armed {
            return;
        }
        if let Some(at) = attached.armed {
            self.events.remove(&(at, index));
        }
        if let Some(at) = wanted {
            self.events.insert((at, index));
        }
        attached.armed = wanted;
    }
}
