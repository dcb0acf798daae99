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

    /// Gives the namespace a TUN device with these addresses, by which everything leaves.
    pub(super) fn attach(&self, addresses: &[IpAddr]) -> Result<SyncDevice> {
        let device = DeviceBuilder::new().layer(Layer::L3).build_sync()?;
        let interface = device.name()?;
        ip(&["link", "set", &interface, "netns", &self.name])?;
        self.ip(&["link", "set", &interface, "name", "eth0", "mtu", MTU])?;
        for address in addresses {
            match address {
                IpAddr::V4(address) => self.ip(&["addr", "add", &format!("{address}/24"), "dev", "eth0"])?,
                IpAddr::V6(address) => {
                    self.ip(&["-6", "addr", "add", &format!("{address}/64"), "dev", "eth0", "nodad"])?;
                }
            }
        }
        self.ip(&["link", "set", "eth0", "up"])?;
        self.ip(&["route", "add", "default", "dev", "eth0"])?;
        self.ip(&["-6", "route", "add", "default", "dev", "eth0"])?;
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

    fn ip(&self, arguments: &[&str]) -> Result<()> {
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
