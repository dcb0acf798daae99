//! Where the ends are, and how the client changes its address.

use std::net::{IpAddr, SocketAddr};

use fulmar_base::Instant;
use fulmar_proto::FourTuple;

use super::{SERVER_PORT, Simulation};
use crate::host::ClientPath;
use crate::lab::{LabPath, SERVER_ADDRESS, Shift};

/// How many addresses a client has to move to, one after another.
const CLIENT_ADDRESSES: u8 = 4;

impl Simulation {
    /// The NAT forgets its mappings. Without a NAT nothing happens.
    pub fn rebind_nat(&mut self) {
        if let Some(nat) = self.network.nat {
            self.world.rebind(nat);
        }
    }

    /// The client moves to its next address, and its connections with it. Returns how many of them refused.
    pub fn move_client(&mut self) -> usize {
        let address = self.next_client_address();
        let now = self.now();
        self.ends[0].host.rebind(now, address)
    }

    /// As [`Simulation::move_client`], but the client receives nothing at its old address any more.
    pub fn replace_client_socket(&mut self) -> usize {
        let address = self.next_client_address();
        let now = self.now();
        self.ends[0].host.close_socket();
        self.ends[0].host.rebind(now, address)
    }

    fn next_client_address(&mut self) -> SocketAddr {
        self.moves += 1;
        let last = (self.moves - 1) % u16::from(CLIENT_ADDRESSES) + 1;
        SocketAddr::from(([10, 1, 0, last as u8], 1_000 + self.moves))
    }

    /// Changes the client's address, if it is time and no handshake is under way.
    pub(super) fn shift_client(&mut self) {
        while let Some(&(at, shift)) = self.shifts.front() {
            if at > self.now() || !self.are_handshakes_over() {
                return;
            }
            self.shifts.pop_front();
            match shift {
                Shift::Rebinding => self.rebind_nat(),
                Shift::Move => {
                    self.move_client();
                }
                Shift::Leap => {
                    self.replace_client_socket();
                }
            }
        }
    }
}

/// The addresses of the client, the first one first: those of its paths, or one, and further ones to move to.
pub(super) fn client_addresses(paths: &[LabPath]) -> Vec<IpAddr> {
    let others = (1..=CLIENT_ADDRESSES).map(|n| IpAddr::from([10, 1, 0, n]));
    match paths {
        [] => std::iter::once(IpAddr::from([10, 0, 0, 1])).chain(others).collect(),
        paths => paths.iter().map(|path| path.client).collect(),
    }
}

/// The pairs of addresses over which the client has paths.
pub(super) fn client_paths(paths: &[LabPath]) -> Vec<ClientPath> {
    let wanted = |path: &LabPath| ClientPath {
        addrs: FourTuple::new(SocketAddr::new(path.server, SERVER_PORT), Some(path.client)),
        is_backup: path.is_backup,
        abandoned_at: path.abandoned_at.map(|at| Instant::ZERO + at),
    };
    paths.iter().map(wanted).collect()
}

/// The addresses of the server: those at the far ends of the paths, or one.
pub(super) fn server_addresses(paths: &[LabPath]) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in paths.iter().map(|path| path.server) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { vec![SERVER_ADDRESS] } else { addresses }
}
