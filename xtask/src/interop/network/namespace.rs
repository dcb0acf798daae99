//! Network namespaces and their TUN devices, made with the system's `ip`.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::Result;

/// Packets have at most this many bytes, headers included.
const MTU: &str = "1500";
/// Where `ip netns exec` looks for files that stand for those in `/etc`.
const ETC: &str = "/etc/netns";

/// A device that a namespace gets.
pub(super) struct Attachment<'a> {
    /// What it is called there.
    pub(super) interface: &'a str,
    /// Which of several it is: all leaves by the first, if a program does not ask for another.
    pub(super) number: usize,
    /// An IPv4 address and an IPv6 address.
    pub(super) addresses: [IpAddr; 2],
}

/// A network namespace, which is removed with this value.
pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes an empty one, in which the given names have addresses.
    pub(super) fn create(name: &str, names: &[(&str, &[IpAddr])]) -> Result<Self> {
        let name = format!("fulmar-{}-{name}", std::process::id());
        ip(&["netns", "add", &name])?;
        let namespace = Self { name };
        let mut hosts = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for (name, addresses) in names {
            for address in *addresses {
                hosts.push_str(&format!("{address} {name}\n"));
            }
        }
        fs::create_dir_all(namespace.etc())?;
        fs::write(namespace.etc().join("hosts"), hosts)?;
        namespace.ip(&["link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Gives the namespace a TUN device. `further` addresses are used by programs that ask for them, and by no other.
    pub(super) fn attach(&self, attachment: &Attachment<'_>, further: &[IpAddr]) -> Result<SyncDevice> {
        let Attachment { interface: name, number, addresses } = *attachment;
        let device = DeviceBuilder::new().layer(Layer::L3).build_sync()?;
        let interface = device.name()?;
        ip(&["link", "set", &interface, "netns", &self.name])?;
        self.ip(&["link", "set", &interface, "name", name, "mtu", MTU])?;
        for address in addresses.iter().chain(further) {
            // An address that is preferred no more is not chosen for those who leave the choice to the system. Of the IPv4
            // addresses of a network it takes the first anyway.
            let lifetime: &[&str] = if further.contains(address) { &["preferred_lft", "0"] } else { &[] };
            let (family, prefix) = if address.is_ipv4() { ("-4", 24) } else { ("-6", 64) };
            let address = format!("{address}/{prefix}");
            let nodad: &[&str] = if family == "-6" { &["nodad"] } else { &[] };
            self.ip(&[&[family, "addr", "add", &address, "dev", name], nodad, lifetime].concat())?;
        }
        self.ip(&["link", "set", name, "up"])?;
        for family in ["-4", "-6"] {
            self.add_default_route(family, name, number)?;
        }
        device.set_nonblocking(true)?;
        Ok(device)
    }

    /// `command`, to be run in the namespace.
    pub(super) fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("ip");
        wrapped.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(key, value),
                None => wrapped.env_remove(key),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            wrapped.current_dir(dir);
        }
        wrapped
    }

    /// Lets everything leave by an interface, if there is none with a smaller number.
    pub(super) fn add_default_route(&self, family: &str, interface: &str, number: usize) -> Result<()> {
        let metric = (number + 1).to_string();
        self.ip(&[family, "route", "add", "default", "dev", interface, "metric", &metric])
    }

    pub(super) fn ip(&self, arguments: &[&str]) -> Result<()> {
        ip(&[&["-n", &self.name], arguments].concat())
    }

    fn etc(&self) -> PathBuf {
        PathBuf::from(ETC).join(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What cannot be removed has a name that tells where it came from.
        let _ = ip(&["netns", "del", &self.name]);
        let _ = fs::remove_dir_all(self.etc());
        let _ = fs::remove_dir(ETC);
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("ip does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("ip {}: {complaint}", arguments.join(" ")).into())
}
