//! UDP sockets with segmentation offload, ECN and destination addresses.
//!
//! This crate owns the socket and the buffers that the kernel fills. It knows no QUIC packet: it moves
//! datagrams, their ECN bits and their addresses in batches, with as few system calls as the platform
//! allows (`recvmmsg`, GRO and GSO on Linux, what `quinn-udp` has elsewhere), and falls back where the kernel refuses.
//!
//! | item | what it is for |
//! |---|---|
//! | [`UdpSocket`] | a socket registered with tokio: receive a batch, send a train of segments |
//! | [`RecvBatch`] | the receive buffers, recycled; yields [`Received`] datagrams |
//! | [`Transmit`] | one datagram, or a train of equally long ones, to send |
//! | [`Instruction`] | a step of a program that chooses among sockets on one port |
//! | [`Dscp`] | how routers are to treat what a socket sends |
//! | [`SocketStats`] | what happened on the socket, errors included |
//!
//! **Invariant.** Addresses that leave or enter this crate are canonical: an IPv4 peer of a dual-stack socket is
//! a plain IPv4 address, never an IPv4-mapped IPv6 one.
//!
//! This is the only crate of the transport that may contain `unsafe`; it has five uses of it: for the buffers of a [`RecvBatch`], to receive into them, for the reports
//! of refusals, for the program of a group of sockets, and to have the runtime watch one direction of a socket.

#![deny(unsafe_code)]

mod address;
#[cfg(target_os = "linux")]
mod control;
mod dscp;
mod group;
mod open;
mod reach;
mod recv;
mod refusals;
mod registered;
#[cfg(target_os = "linux")]
mod send;
mod socket;
mod stats;

pub use address::canonical;
pub use dscp::Dscp;
pub use group::Instruction;
pub use open::{SOCKET_BUFFER_BYTES, open_socket};
pub use recv::{Received, RecvBatch};
pub use socket::{BufferSizes, SendOutcome, Transmit, UdpSocket};
pub use stats::SocketStats;
