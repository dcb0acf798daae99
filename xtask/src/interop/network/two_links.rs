//! Two hosts that are joined by two links, each with interfaces of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use super::namespace::{Attachment, Namespace};
use super::router::Router;
use super::{CLIENT_V4, CLIENT_V6, Conditions, SERVER_NAMES, SERVER_V4, SERVER_V6};
use crate::Result;

/// The interfaces of both hosts, one for each link.
pub(crate) const INTERFACES: [&str; 2] = ["eth0", "eth1"];

const SECOND_CLIENT_V4: Ipv4Addr = Ipv4Addr::new(193, 167, 1, 100);
const SECOND_SERVER_V4: Ipv4Addr = Ipv4Addr::new(193, 167, 101, 100);
const SECOND_CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0xcafe, 1, 0, 0, 0, 0x100);
const SECOND_SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xcafe, 0xcafe, 0x101, 0, 0, 0, 0x100);
/// Where the server finds the client's second interface.
const SECOND_NETS: [(&str, &str); 2] = [("-4", "193.167.1.0/24"), ("-6", "fd00:cafe:cafe:1::/64")];

/// Two hosts and two links between them. All leaves by the first one, if a program does not ask for the second.
pub(crate) struct TwoLinks {
    client: Namespace,
    server: Namespace,
    _routers: [Router; 2],
}

impl TwoLinks {
    /// Builds the network; its name tells it from others of the same process.
    pub(crate) fn open(name: &str, conditions: &Conditions) -> Result<Self> {
        let client = Namespace::create(&format!("{name}c"), &SERVER_NAMES)?;
        let server = Namespace::create(&format!("{name}s"), &SERVER_NAMES)?;
        let link = |number: usize, of_client: [IpAddr; 2], of_server: [IpAddr; 2]| -> Result<Router> {
            let attachment = |addresses| Attachment { interface: INTERFACES[number], number, addresses };
            let to_client = client.attach(&attachment(of_client), &[])?;
            let to_server = server.attach(&attachment(of_server), &[])?;
            Router::start(to_client, to_server, conditions)
        };
        let first = link(0, [CLIENT_V4.into(), CLIENT_V6.into()], [SERVER_V4.into(), SERVER_V6.into()])?;
        let second = link(
            1,
            [SECOND_CLIENT_V4.into(), SECOND_CLIENT_V6.into()],
            [SECOND_SERVER_V4.into(), SECOND_SERVER_V6.into()],
        )?;
        for (family, net) in SECOND_NETS {
            server.ip(&[family, "route", "add", net, "dev", INTERFACES[1]])?;
        }
        Ok(Self { client, server, _routers: [first, second] })
    }

    /// `command`, to be run on the host of the client.
    pub(crate) fn on_client(&self, command: &Command) -> Command {
        self.client.wrap(command)
    }

    /// `command`, to be run on the host of the server.
    pub(crate) fn on_server(&self, command: &Command) -> Command {
        self.server.wrap(command)
    }

    /// The client's interface goes down, as when a cable is pulled or a radio is switched off.
    pub(crate) fn take_down(&self, link: usize) -> Result<()> {
        self.client.ip(&["link", "set", INTERFACES[link], "down"])
    }

    /// It comes up again, with the routes that went with it.
    pub(crate) fn bring_up(&self, link: usize) -> Result<()> {
        self.client.ip(&["link", "set", INTERFACES[link], "up"])?;
        self.client.add_default_route("-4", INTERFACES[link], link)
    }
}
