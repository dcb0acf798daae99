//! The loop that carries packets between the two TUN devices.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_sim::{Change, Ecn, LinkId, Loss, NodeId, Packet, Pipe, World};
use fulmar_wire::Side;
use rustix::event::{PollFd, PollFlags, poll};
use tun_rs::SyncDevice;

use super::capture::{Capture, Place, Seen};
use super::conditions::Conditions;
use super::corruption::Corruption;
use super::ip::IpPacket;
use super::nat::Nat;
use crate::Result;

/// Packets are not larger than this.
const PACKET_BYTES_MAX: usize = 65_536;
/// How long the loop sleeps when nothing is due, so that it notices that it is to end.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Packets read from one device before the other gets its turn.
const BATCH: usize = 64;
/// Losses and damages draw the same numbers in each run, though the packets they meet differ.
const SEED: u64 = 1;

/// A thread that routes until it is stopped.
pub(super) struct Router {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Capture>>>,
}

impl Router {
    pub(super) fn start(client: SyncDevice, server: SyncDevice, conditions: &Conditions) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut course = Course::new(client, server, conditions.clone());
        let thread = std::thread::Builder::new().name("router".to_owned()).spawn({
            let stop = stop.clone();
            move || course.run(&stop)
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the thread and gives what it saw.
    pub(super) fn stop(mut self) -> Result<Capture> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or("the router was stopped before")?;
        Ok(thread.join().map_err(|_| "the router panicked")??)
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Whoever drops it early has an error of its own to tell.
            let _ = thread.join();
        }
    }
}

/// What the thread owns.
struct Course {
    devices: [SyncDevice; 2],
    conditions: Conditions,
    world: World,
    hosts: [NodeId; 2],
    /// The links between the hosts and the middle, where all but damage happens.
    links: [LinkId; 2],
    nat: Nat,
    /// Whether the client's first datagram came.
    started: bool,
    /// What is to happen when.
    timeline: Vec<(Instant, Event)>,
    clock: std::time::Instant,
    capture: Capture,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Course {
    fn new(client: SyncDevice, server: SyncDevice, conditions: Conditions) -> Self {
        let mut world = World::new(SEED);
        let mut rng = Rng::from_u64(SEED);
        // Hosts have one address each for the simulator; what stands in the packets is none of its business.
        let hosts = [world.add_node([address(CLIENT).ip()]), world.add_node([address(SERVER).ip()])];
        let middle = world.add_router();
        let damaging = |probability: f64, rng: &mut Rng| {
            Pipe::with_elements(vec![Box::new(Corruption::new(probability))], Vec::new(), rng)
        };
        // A packet passes its link first and is damaged, if at all, on the second half of its way.
        let to_server = Pipe::new(conditions.link(&conditions.to_server), &mut rng);
        let to_client = Pipe::new(conditions.link(&conditions.to_client), &mut rng);
        let before_client = damaging(conditions.to_client.corruption, &mut rng);
        let before_server = damaging(conditions.to_server.corruption, &mut rng);
        let links = [
            world.add_pipes(hosts[CLIENT], middle, to_server, before_client),
            world.add_pipes(hosts[SERVER], middle, to_client, before_server),
        ];
        world.add_default_route(hosts[CLIENT], links[CLIENT]);
        world.add_default_route(hosts[SERVER], links[SERVER]);
        Self {
            devices: [client, server],
            nat: Nat::new(conditions.rebinding.is_some_and(|rebinding| rebinding.address)),
            conditions,
            world,
            hosts,
            links,
            started: false,
            timeline: Vec::new(),
            clock: std::time::Instant::now(),
            capture: Capture::default(),
        }
    }

    fn run(&mut self, stop: &AtomicBool) -> io::Result<Capture> {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        while !stop.load(Ordering::Relaxed) {
            self.deliver()?;
            self.wait()?;
            self.let_happen_what_is_due();
            for device in [CLIENT, SERVER] {
                for _ in 0..BATCH {
                    match self.devices[device].recv(&mut buffer) {
                        Ok(len) => self.take(device, &buffer[..len])?,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(std::mem::take(&mut self.capture))
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.clock.elapsed()
    }

    /// Sleeps until a packet comes or something is due.
    fn wait(&self) -> io::Result<()> {
        let planned = self.timeline.iter().map(|(at, _)| *at);
        let due = planned.chain(self.world.next_event()).min();
        let sleep = due.map_or(SLEEP_MAX, |due| due.saturating_since(self.now()).min(SLEEP_MAX));
        let mut fds = [
            PollFd::new(&self.devices[CLIENT], PollFlags::IN),
            PollFd::new(&self.devices[SERVER], PollFlags::IN),
        ];
        let sleep = sleep.try_into().map_err(io::Error::other)?;
        match poll(&mut fds, Some(&sleep)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a packet in from a device.
    fn take(&mut self, device: usize, bytes: &[u8]) -> io::Result<()> {
        let Some(mut packet) = IpPacket::parse(bytes) else { return Ok(()) };
        // What hosts tell their neighbours ends at a router.
        if packet.destination.is_multicast() || is_link_local(packet.source) {
            return Ok(());
        }
        let now = self.now();
        self.see(device, device, packet, bytes);
        let mut bytes = bytes.to_vec();
        if device == CLIENT && packet.is_udp() && !self.started {
            self.start(now);
        }
        if device == SERVER && !self.nat.inward(&mut packet, &mut bytes) {
            return Ok(());
        }
        let ecn = Ecn::from_bits(packet.ecn);
        self.deliver()?;
        self.world.send(self.hosts[device], Packet::new(address(device), address(1 - device), ecn, bytes));
        Ok(())
    }

    /// The client has begun: what is timed counts from here.
    fn start(&mut self, now: Instant) {
        self.started = true;
        if let Some(rebinding) = self.conditions.rebinding {
            self.timeline.push((now + rebinding.first, Event::Rebind { every: rebinding.every }));
        }
        if let Some(hole) = self.conditions.blackhole {
            self.timeline.push((now + hole.from, Event::LoseEverything));
            self.timeline.push((now + hole.until, Event::LoseAsBefore));
        }
    }

    fn let_happen_what_is_due(&mut self) {
        let now = self.now();
        while let Some(place) = self.timeline.iter().position(|(at, _)| *at <= now) {
            let (at, event) = self.timeline.swap_remove(place);
            match event {
                Event::Rebind { every } => {
                    self.nat.rebind();
                    self.timeline.push((at + every, event));
                }
                Event::LoseEverything => self.lose([Loss::Everything, Loss::Everything]),
                Event::LoseAsBefore => {
                    let Conditions { to_server, to_client, .. } = &self.conditions;
                    self.lose([to_server.loss.clone(), to_client.loss.clone()]);
                }
            }
        }
    }

    fn lose(&mut self, losses: [Loss; 2]) {
        for (host, loss) in losses.into_iter().enumerate() {
            self.world.change(self.links[host], self.hosts[host], &Change::Loss(loss));
        }
    }

    /// Hands out what has arrived.
    fn deliver(&mut self) -> io::Result<()> {
        let now = self.now();
        // The time of the simulation stands still at each delivery.
        while self.world.advance(now) < now || self.world.next_event().is_some_and(|at| at <= now) {}
        while let Some(delivery) = self.world.poll_delivery() {
            let device = if delivery.node == self.hosts[CLIENT] { CLIENT } else { SERVER };
            let mut bytes = delivery.packet.payload;
            let Some(mut packet) = IpPacket::parse(&bytes) else { continue };
            if device == SERVER && !self.nat.outward(&mut packet, &mut bytes) {
                continue;
            }
            self.see(device, 1 - device, packet, &bytes);
            match self.devices[device].send(&bytes) {
                Ok(_) => {}
                // The host takes no more at the moment: lost, as in any other queue.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A damaged packet may be refused, and a host that is going away takes none.
                Err(error) if matches!(error.raw_os_error(), Some(EINVAL | EIO)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn see(&mut self, place: usize, from: usize, packet: IpPacket, bytes: &[u8]) {
        self.capture.add(Seen {
            at: self.clock.elapsed(),
            place: if place == CLIENT { Place::Client } else { Place::Server },
            from: if from == CLIENT { Side::Client } else { Side::Server },
            packet,
            bytes: bytes.to_vec(),
        });
    }
}

/// Something that happens at a time.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The NAT forgets its flows, and will again after this time.
    Rebind {
        every: Duration,
    },
    LoseEverything,
    LoseAsBefore,
}

const EINVAL: i32 = 22;
const EIO: i32 = 5;

/// The address of a host in the simulation.
fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 1))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_unspecified(),
    }
}
