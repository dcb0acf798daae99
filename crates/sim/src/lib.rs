//! A deterministic network simulator: hosts, links that misbehave as told, and a virtual clock.
//!
//! A [`World`] holds nodes and the links between them. Packets go in with [`World::send`], time moves with
//! [`World::advance`], packets come out with [`World::poll_delivery`]. The same seed and the same calls give
//! the same deliveries, at the same nanosecond, on every machine: only integer and basic floating-point
//! arithmetic is used, and every element of a link draws from a generator of its own.
//!
//! **Invariant**: this crate knows no QUIC word, reads no clock and owns no socket. A payload is bytes.
//!
//! # What a link does to a packet
//!
//! Each direction of a link is a [`Pipe`]: a row of [`Element`]s, in this order:
//!
//! | element | what it does | setting |
//! |---|---|---|
//! | `mtu` | drops a payload that is too large | [`LinkConfig::mtu`] |
//! | `policer` | drops what exceeds a rate | [`LinkConfig::policer`] |
//! | `cross_traffic` | adds packets of others, which end behind the bottleneck | [`LinkConfig::cross_traffic`] |
//! | `bottleneck` | queues and serialises at a rate | [`LinkConfig::rate_bps`], [`LinkConfig::queue`], [`LinkConfig::aqm`] |
//! | `loss` | loses packets; they have used the rate | [`LinkConfig::loss`] |
//! | `duplicate` | adds copies; they are neither lost nor use the rate | [`LinkConfig::duplicate`] |
//! | `corrupt` | changes bytes of an original or of a copy | [`LinkConfig::corrupt`] |
//! | `reorder` | holds a packet back while others pass | [`LinkConfig::reorder`] |
//! | `delay` | propagation and jitter; keeps the order unless told otherwise | [`LinkConfig::delay`], [`LinkConfig::jitter`] |
//! | `ecn_path` | changes ECN codepoints or drops packets that have one | [`LinkConfig::ecn_path`] |
//! | `suspension` | holds what arrives while receiving is suspended | [`Change::Suspend`] |
//!
//! Rates, limits and the MTU count bytes of the UDP payload. [`LinkConfig::schedule`] changes any value at a
//! time; [`World::change`] changes it at once.
//!
//! # Nodes
//!
//! A node is a host, whose packets the caller fetches, a router, which forwards by its routes
//! ([`World::add_router`]), or a NAT ([`World::add_nat`]), which translates and forwards.
//!
//! # Looking on
//!
//! [`World::stats`] counts what happened on a link, [`World::record`] keeps the course of its queue, drops and
//! marks for plots, and [`PcapNg`] writes packets and TLS secrets to a file for Wireshark.
//!
//! # Code map
//!
//! | file | owns |
//! |---|---|
//! | `world` | clock, event queue, inbox |
//! | `node`, `nat` | what a node does with a packet: routes, translation |
//! | `pipe` | one direction of a link: its elements, schedule and statistics |
//! | `element` | the trait of all elements and what they may do |
//! | `config` | [`LinkConfig`] and [`Change`] |
//! | `mtu`, `policer`, `cross_traffic`, `bottleneck`, `loss`, `duplicate`, `corrupt`, `reorder`, `delay`, `ecn_path`, `suspension` | one element each |
//! | `aqm` | the disciplines of a bottleneck's queue: drop tail, RED, CoDel, DualQ |
//! | `jitter`, `weather`, `chance` | what is added to a delay; a state that changes with time; distributions |
//! | `packet`, `pool`, `stats`, `trace` | a datagram under way, spare buffers, counters, recordings |
//! | `pcapng` | capture files |
//!
//! # Example
//!
//! ```
//! use fulmar_base::Instant;
//! use fulmar_sim::{Ecn, LinkConfig, Packet, World};
//! use std::{net::SocketAddr, time::Duration};
//!
//! let [alice, bob]: [SocketAddr; 2] = ["10.0.0.1:1000".parse()?, "10.0.0.2:2000".parse()?];
//! let mut world = World::new(1);
//! let (a, b) = (world.add_node([alice.ip()]), world.add_node([bob.ip()]));
//! // 10 Mbit/s and 10 ms: 1,250 bytes take 1 ms to send and 10 ms to travel.
//! let link = LinkConfig {
//!     rate_bps: Some(10_000_000),
//!     delay: Duration::from_millis(10),
//!     ..LinkConfig::default()
//! };
//! world.add_link(a, b, link.clone(), link);
//! world.send(a, Packet::new(alice, bob, Ecn::NotEct, vec![7; 1_250]));
//! assert_eq!(world.advance(Instant::FAR_FUTURE), Instant::from_millis(11));
//! let delivery = world.poll_delivery().expect("the link loses nothing");
//! assert_eq!((delivery.node, delivery.packet.payload.len()), (b, 1_250));
//! # Ok::<(), std::net::AddrParseError>(())
//! ```
#![forbid(unsafe_code)]

mod aqm;
mod bottleneck;
mod chance;
mod config;
mod corrupt;
mod cross_traffic;
mod delay;
mod distribution;
mod duplicate;
mod ecn_path;
mod element;
mod jitter;
mod loss;
mod mtu;
mod nat;
mod node;
mod packet;
mod pcapng;
mod pipe;
mod policer;
mod pool;
mod reorder;
mod stats;
mod suspension;
mod trace;
mod weather;
mod world;

pub use aqm::{Aqm, CoDel, DualQ, QueueLimit, Red};
pub use config::{Change, LinkConfig, Scheduled};
pub use corrupt::Corrupt;
pub use cross_traffic::{CrossTraffic, TrafficPattern};
pub use distribution::Distribution;
pub use ecn_path::EcnPath;
pub use element::{Context, DropReason, Element};
pub use jitter::Jitter;
pub use loss::Loss;
pub use nat::{Dependence, NatConfig, NatStats};
pub use packet::{Ecn, Packet};
pub use pcapng::{InterfaceId, PcapNg};
pub use pipe::Pipe;
pub use policer::Policer;
pub use pool::BufferPool;
pub use reorder::Reorder;
pub use stats::LinkStats;
pub use suspension::{SuspendedSide, Suspension};
pub use trace::{DropSample, LinkTrace, QueueSample};
pub use world::{Delivery, LinkId, NodeId, World};

#[cfg(test)]
mod tests;
