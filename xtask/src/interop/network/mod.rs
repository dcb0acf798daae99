//! A network of our own: client and server in network namespaces, and between them a router in user space.
//!
//! Each namespace has a TUN device, and [`router`] carries the packets between the two through the links of `fulmar-sim`, driven
//! by the real clock: rate, delay, queue and losses are those of the lab. What the simulator does not know about IP - damage near
//! the start of a UDP payload, and a NAT that rebinds - is done here. Both ends are captured.

mod capture;
mod conditions;
mod corruption;
mod ip;
mod namespace;
mod nat;
mod router;
mod two_links;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;

use crate::Result;

pub(super) use self::capture::{Capture, Place, Seen};
pub(super) use self::conditions::{Blackhole, Conditions, Direction, Rebinding};
use self::namespace::{Attachment, Namespace};
use self::router::Router;
pub(super) use self::two_links::{INTERFACES, TwoLinks};

/// The addresses of the public runner's network.
const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(193, 167, 0, 100);
const SERVER_V4: Ipv4Addr = Ipv4Addr::new(193, 167, 100, 100);
const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0xcafe, 0, 0, 0, 0, 0x100);
const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0xcafe, 0x100, 0, 0, 0, 0x100);
/// Further addresses of the server, which its clients learn from it.
pub(super) const PREFERRED_V4: Ipv4Addr = Ipv4Addr::new(193, 167, 100, 101);
pub(super) const PREFERRED_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0xcafe, 0x100, 0, 0, 0, 0x101);

/// The names of the server, as the public runner has them, with the addresses behind each.
pub(super) const SERVER_NAMES: [(&str, &[IpAddr]); 3] = [
    ("server4", &[IpAddr::V4(SERVER_V4)]),
    ("server6", &[IpAddr::V6(SERVER_V6)]),
    ("server46", &[IpAddr::V4(SERVER_V4), IpAddr::V6(SERVER_V6)]),
];

/// Why there can be no such network on this machine, if there cannot.
pub(super) fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("there is no /dev/net/tun on this machine".to_owned());
    }
    match Namespace::create("probe", &[]) {
        Ok(_) => None,
        Err(error) => Some(format!("no network namespace can be made: {error}")),
    }
}

/// Two hosts and what lies between them, for one run of one case.
pub(super) struct Network {
    client: Namespace,
    server: Namespace,
    router: Router,
}

impl Network {
    /// Builds the network; its name tells it from others of the same process.
    pub(super) fn open(name: &str, conditions: &Conditions) -> Result<Self> {
        let client = Namespace::create(&format!("{name}c"), &SERVER_NAMES)?;
        let server = Namespace::create(&format!("{name}s"), &SERVER_NAMES)?;
        let attachment = |addresses| Attachment { interface: INTERFACES[0], number: 0, addresses };
        let to_client = client.attach(&attachment([CLIENT_V4.into(), CLIENT_V6.into()]), &[])?;
        let further = [PREFERRED_V4.into(), PREFERRED_V6.into()];
        let to_server = server.attach(&attachment([SERVER_V4.into(), SERVER_V6.into()]), &further)?;
        let router = Router::start(to_client, to_server, conditions)?;
        Ok(Self { client, server, router })
    }

    /// `command`, to be run on the host of the client.
    pub(super) fn on_client(&self, command: &Command) -> Command {
        self.client.wrap(command)
    }

    /// `command`, to be run on the host of the server.
    pub(super) fn on_server(&self, command: &Command) -> Command {
        self.server.wrap(command)
    }

    /// Ends the network and gives what was captured.
    pub(super) fn close(self) -> Result<Capture> {
        self.router.stop()
    }
}
