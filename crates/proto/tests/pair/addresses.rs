//! Addresses of the ends, and datagrams that seem to come from others.

use std::net::{IpAddr, SocketAddr};

use fulmar_proto::Side;

use super::{Flying, Pair, Wire};

pub fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Lets all that a connection sends seem to come from `addr`, which also receives.
pub fn appear_at(pair: &mut Pair, side: Side, new: &str) {
    pair.end(side).addr = addr(new);
}

/// Loses the first datagram that leaves from this address.
pub fn lose_first_at(address: IpAddr) -> Wire {
    let mut is_lost = false;
    Box::new(move |flying: Flying| {
        let loses = !is_lost && flying.from.ip() == address;
        is_lost |= loses;
        if loses { vec![] } else { vec![flying] }
    })
}
