//! What a node is, and where it sends what.

use std::net::IpAddr;

use crate::nat::Nat;

/// A node: its role and the ways that lead from it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) role: Role,
    pub(crate) routes: Vec<Route>,
    /// The pipe for what no route and no link to the owner covers.
    pub(crate) default_route: Option<usize>,
    /// The pipes that begin here, as added.
    pub(crate) pipes: Vec<usize>,
}

/// What becomes of a packet that arrives.
#[derive(Debug)]
pub(crate) enum Role {
    /// It waits for the caller.
    Host,
    /// It goes on.
    Router,
    /// It goes on with another source or destination, or is dropped.
    Nat(Box<Nat>),
}

/// The pipe for some packets.
#[derive(Debug)]
pub(crate) struct Route {
    /// The packets' source; `None` for any.
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: IpAddr,
    pub(crate) pipe: usize,
}

impl Node {
    pub(crate) const fn new(role: Role) -> Self {
        Self { role, routes: Vec::new(), default_route: None, pipes: Vec::new() }
    }
}
