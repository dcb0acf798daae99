//! The clock, the nodes, the links between them, and the order in which things happen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use fulmar_base::{Instant, Rng};

use crate::pipe::Turn;
use crate::{BufferPool, Change, LinkConfig, LinkStats, Packet, Pipe};

/// A host in a [`World`].
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
    packets_unroutable: u64,
}

#[derive(Debug, Default)]
struct Node {
    routes: Vec<Route>,
    /// The pipes that begin here, as added.
    pipes: Vec<usize>,
}

#[derive(Debug)]
struct Route {
    source: Option<IpAddr>,
    destination: IpAddr,
    pipe: usize,
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
            packets_unroutable: 0,
        }
    }

    /// Adds a node that owns `addresses`, with all their ports.
    ///
    /// # Panics
    /// Panics if another node owns one of them.
    pub fn add_node(&mut self, addresses: impl IntoIterator<Item = IpAddr>) -> NodeId {
        let node = NodeId(self.nodes.len());
        self.nodes.push(Node::default());
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

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Sends a packet from a node, now. Without a link that leads to its destination it is dropped and
    /// counted.
    pub fn send(&mut self, from: NodeId, packet: Packet) {
        let Some(index) = self.route(from, &packet) else {
            self.packets_unroutable += 1;
            self.pool.put(packet.payload);
            return;
        };
        self.turn(index, |pipe, turn| pipe.send(packet, turn));
    }

    /// Changes a setting of a link in the direction that begins at `from`, now.
    ///
    /// # Panics
    /// Panics if `link` does not begin at `from`.
    pub fn change(&mut self, link: LinkId, from: NodeId, change: &Change) {
        let index = self.pipe_from(link, from);
        self.turn(index, |pipe, turn| pipe.apply(change, turn));
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

    /// Packets that were sent to where no link leads.
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
        let owner = self.owners.get(&destination)?;
        node.pipes.iter().copied().find(|&pipe| self.pipes[pipe].to == *owner)
    }

    /// Gives a pipe the turn, then takes what came out of it.
    fn turn(&mut self, index: usize, action: impl FnOnce(&mut Pipe, &mut Turn<'_>)) {
        let mut turn = Turn { now: self.now, pool: &mut self.pool, out: &mut self.arrivals };
        let attached = &mut self.pipes[index];
        action(&mut attached.pipe, &mut turn);
        for packet in self.arrivals.drain(..) {
            self.inbox.push_back(Delivery { at: self.now, node: attached.to, packet });
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
