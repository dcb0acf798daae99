//! The nodes and links between the client and the server.

use std::net::IpAddr;
use std::time::Duration;

use fulmar_proto::Side;
use fulmar_sim::{LinkConfig, LinkId, LinkStats, LinkTrace, NodeId, World};

use super::index;
use crate::Lab;
use crate::lab::LabPath;
use crate::{HopReport, Moved, PathRecording, PathReport};

/// How often the queue of a link is recorded.
const QUEUE_INTERVAL: Duration = Duration::from_millis(1);

/// The links that a run is about, side by side; all others only lead to them.
#[derive(Debug)]
pub(super) struct Network {
    links: Vec<LinkId>,
    /// The paths that these links are; empty if there is one link without a name.
    names: Vec<String>,
    /// The addresses of the client and of the server at the ends of each path.
    addresses: Vec<(IpAddr, IpAddr)>,
    /// The nodes at the ends of the links.
    ends: [NodeId; 2],
    /// The links behind those, from the client's end to the server's, each with the nodes at its ends.
    hops: Vec<(LinkId, [NodeId; 2])>,
    pub(super) nat: Option<NodeId>,
}

impl Network {
    /// Joins the client and the server, of which the latter has this address.
    pub(super) fn new(world: &mut World, lab: &mut Lab, nodes: [NodeId; 2], server: IpAddr) -> Self {
        let paths = std::mem::take(&mut lab.paths);
        let network = if paths.is_empty() {
            Self::of_one_link(world, lab, nodes, server)
        } else {
            Self::of_paths(world, paths, nodes, &mut lab.hops)
        };
        if lab.log_entries > 0 {
            for link in &network.links {
                network.ends.iter().for_each(|end| world.record(*link, *end, QUEUE_INTERVAL));
            }
        }
        network
    }

    fn of_one_link(world: &mut World, lab: &mut Lab, [client, server]: [NodeId; 2], address: IpAddr) -> Self {
        let nat = lab.nat.take().map(|nat| world.add_nat(nat));
        if let Some(nat) = nat {
            let inside = world.add_link(client, nat, LinkConfig::default(), LinkConfig::default());
            world.add_default_route(client, inside);
        }
        let (far_end, hops) = join_routers(world, server, &[address], &mut lab.hops);
        let ends = [nat.unwrap_or(client), far_end];
        let link = world.add_link(ends[0], ends[1], lab.up.clone(), lab.down.clone());
        if far_end != server {
            ends.iter().for_each(|end| world.add_default_route(*end, link));
        }
        Self { links: vec![link], names: Vec::new(), addresses: Vec::new(), ends, hops, nat }
    }

    /// Hops are what the paths have in common, between them and the server.
    fn of_paths(
        world: &mut World,
        paths: Vec<LabPath>,
        [client, server]: [NodeId; 2],
        hops: &mut Vec<(LinkConfig, LinkConfig)>,
    ) -> Self {
        let servers: Vec<IpAddr> = paths.iter().map(|path| path.server).collect();
        let addresses = paths.iter().map(|path| (path.client, path.server)).collect();
        let (far_end, hops) = join_routers(world, server, &servers, hops);
        let ends = [client, far_end];
        let (mut links, mut names) = (Vec::new(), Vec::new());
        for path in paths {
            let link = world.add_link(client, far_end, path.up, path.down);
            // A packet takes the interface that has its source address, whichever address of the server it goes to.
            for destination in &servers {
                world.add_route(client, Some(path.client), *destination, link);
            }
            world.add_route(far_end, None, path.client, link);
            links.push(link);
            names.push(path.name);
        }
        Self { links, names, addresses, ends, hops, nat: None }
    }

    /// The addresses of the client and of the server on the path of this number, or on the first one if there is none of
    /// this number; `None` without paths.
    pub(super) fn addresses(&self, path: usize) -> Option<(IpAddr, IpAddr)> {
        self.addresses.get(path).or(self.addresses.first()).copied()
    }

    /// The number of the path on which the client has this address.
    pub(super) fn path_of(&self, client: IpAddr) -> Option<usize> {
        self.addresses.iter().position(|(address, _)| *address == client)
    }

    /// What happened to the packets from one side to the other, on all links together.
    pub(super) fn stats(&self, world: &World, from: Side) -> LinkStats {
        let mut links = self.links.iter();
        let mut stats = links.next().map(|link| self.of_link(world, *link, from).clone()).unwrap_or_default();
        for link in links {
            stats.merge(self.of_link(world, *link, from));
        }
        stats
    }

    fn of_link<'a>(&self, world: &'a World, link: LinkId, from: Side) -> &'a LinkStats {
        world.stats(link, self.ends[index(from)])
    }

    /// What each link has moved, from the client to the server and back.
    pub(super) fn moved<'a>(&'a self, world: &'a World) -> impl Iterator<Item = [Moved; 2]> + 'a {
        let of = |link, side| Moved::of(self.of_link(world, link, side));
        self.links.iter().map(move |link| [Side::Client, Side::Server].map(|side| of(*link, side)))
    }

    /// The same of the links behind those.
    pub(super) fn moved_by_hops<'a>(&'a self, world: &'a World) -> impl Iterator<Item = [Moved; 2]> + 'a {
        self.hops.iter().map(|(link, ends)| ends.map(|end| Moved::of(world.stats(*link, end))))
    }

    /// Each link behind those.
    pub(super) fn hop_reports(&self, world: &World) -> Vec<HopReport> {
        let report = |(link, ends): &(LinkId, [NodeId; 2])| {
            let [up, down] = ends.map(|end| world.stats(*link, end).clone());
            HopReport { up, down }
        };
        self.hops.iter().map(report).collect()
    }

    /// Each path by itself.
    pub(super) fn path_reports(&self, world: &World) -> Vec<PathReport> {
        let paths = self.names.iter().zip(&self.links);
        let report = |(name, link): (&String, &LinkId)| {
            let [up, down] =
                [Side::Client, Side::Server].map(|side| self.of_link(world, *link, side).clone());
            PathReport { name: name.clone(), up, down }
        };
        paths.map(report).collect()
    }

    /// The course of the first link, in both directions, and of each path, if they were recorded.
    pub(super) fn traces(&self, world: &World) -> Option<(LinkTrace, LinkTrace, Vec<PathRecording>)> {
        let trace = |link: LinkId, end: usize| world.link_trace(link, self.ends[end]).cloned();
        let first = *self.links.first()?;
        let (up, down) = (trace(first, 0)?, trace(first, 1)?);
        let paths = self.names.iter().zip(&self.links);
        let of_path = |(name, link): (&String, &LinkId)| {
            Some(PathRecording { name: name.clone(), up: trace(*link, 0)?, down: trace(*link, 1)? })
        };
        Some((up, down, paths.filter_map(of_path).collect()))
    }
}

/// Puts a router in front of each of these links, which lead to the server one after another. The first node of the row, and the links
/// in their order from there, with the nodes at their ends.
fn join_routers(
    world: &mut World,
    server: NodeId,
    addresses: &[IpAddr],
    hops: &mut Vec<(LinkConfig, LinkConfig)>,
) -> (NodeId, Vec<(LinkId, [NodeId; 2])>) {
    let (mut first, mut row) = (server, Vec::new());
    while let Some((up, down)) = hops.pop() {
        let router = world.add_router();
        let link = world.add_link(router, first, up, down);
        for address in addresses {
            world.add_route(router, None, *address, link);
        }
        world.add_default_route(first, link);
        row.push((link, [router, first]));
        first = router;
    }
    row.reverse();
    (first, row)
}
