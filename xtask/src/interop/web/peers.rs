//! The programs that meet, where they come from, and how the servers are started.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::super::certs::Identity;
use crate::process::Process;
use crate::python::{self, run_quietly};
use crate::{Result, programs};

/// How long a server may take to start.
const SERVER_PATIENCE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// What the log of caddy says when it takes requests.
const CADDY_IS_READY: &str = "serving initial configuration";
/// The names that Debian and others have for the browser, with and without a window.
const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "chromium-browser"];

/// A program that speaks HTTP/3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum Peer {
    /// `fulmar serve` and `fulmar get`.
    Fulmar,
    /// The server of `interop/quic-go`.
    QuicGo,
    Caddy,
    Curl,
    Chromium,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A server and a client that are to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Pair {
    pub(in super::super) server: Peer,
    pub(in super::super) client: Peer,
}

/// The programs of the peers, as far as this machine has them; else why not.
pub(in super::super) struct Programs {
    fulmar: PathBuf,
    quic_go: Result<PathBuf, String>,
    caddy: Result<PathBuf, String>,
    /// A Python with pycurl.
    curl: Result<PathBuf, String>,
    chromium: Result<PathBuf, String>,
}

impl Programs {
    /// Builds or fetches what `pairs` need. A peer that cannot be had stays away.
    pub(in super::super) fn prepare(pairs: &[Pair], dir: &Path, fulmar: Option<&Path>) -> Result<Self> {
        let wanted = |peer, get: &dyn Fn() -> Result<PathBuf>| match pairs
            .iter()
            .any(|pair| pair.server == peer || pair.client == peer)
        {
            true => get().map_err(|error| error.to_string()),
            false => Err("it was not asked for".to_owned()),
        };
        Ok(Self {
            fulmar: fulmar.map_or_else(programs::build_fulmar, |program| Ok(program.to_owned()))?,
            quic_go: wanted(Peer::QuicGo, &|| {
                programs::build_go_peer()?.ok_or_else(|| "there is no Go on this machine".into())
            }),
            caddy: wanted(Peer::Caddy, &|| {
                python::environment(&dir.join("caddy"), "caddy", "caddy", &["version"])
            }),
            curl: wanted(Peer::Curl, &|| {
                let probe = "import pycurl; assert pycurl.version_info()[4] & pycurl.VERSION_HTTP3";
                python::environment(&dir.join("curl"), "curl", "python", &["-c", probe])
            }),
            chromium: wanted(Peer::Chromium, &find_browser),
        })
    }

    /// Why a pair cannot meet on this machine, if it cannot.
    pub(super) fn obstacle(&self, pair: Pair) -> Option<String> {
        [pair.server, pair.client]
            .into_iter()
            .find_map(|peer| self.program(peer).err().map(|why| format!("{peer} is missing: {why}")))
    }

    fn program(&self, peer: Peer) -> Result<&Path, &str> {
        let program = match peer {
            Peer::Fulmar => return Ok(&self.fulmar),
            Peer::QuicGo => &self.quic_go,
            Peer::Caddy => &self.caddy,
            Peer::Curl => &self.curl,
            Peer::Chromium => &self.chromium,
        };
        program.as_deref().map_err(String::as_str)
    }

    fn command(&self, peer: Peer) -> Result<Command> {
        Ok(Command::new(self.program(peer)?))
    }

    /// `fulmar get`, without its arguments.
    pub(super) fn get(&self) -> Command {
        let mut command = Command::new(&self.fulmar);
        command.arg("get");
        command
    }

    /// The client over curl, without its arguments.
    pub(super) fn curl(&self) -> Result<Command> {
        let mut command = self.command(Peer::Curl)?;
        command.arg(programs::repository().join("interop/curl/peer.py"));
        Ok(command)
    }

    /// The browser, without its arguments.
    pub(super) fn chromium(&self) -> Result<Command> {
        self.command(Peer::Chromium)
    }

    /// Starts `peer` as a server of the files in `www`, and gives it with its address when it takes requests.
    pub(super) fn start_server(
        &self,
        peer: Peer,
        www: &Path,
        identity: &Identity,
        dir: &Path,
    ) -> Result<(Process, SocketAddr)> {
        if peer == Peer::Caddy {
            return self.start_caddy(www, identity, dir);
        }
        let mut command = self.command(peer)?;
        match peer {
            Peer::Fulmar => _ = command.args(["-v", "serve"]).arg(www),
            Peer::QuicGo => _ = command.args(["server", "--testcase", "http3", "--www"]).arg(www),
            _ => return Err(format!("{peer} is no server").into()),
        }
        command.args(["--listen", "127.0.0.1:0"]);
        command.arg("--cert").arg(&identity.chain).arg("--key").arg(&identity.key);
        let mut server = Process::start(command, dir, "server")?;
        let address = server.listening(SERVER_PATIENCE)?.parse()?;
        Ok((server, address))
    }

    fn start_caddy(&self, www: &Path, identity: &Identity, dir: &Path) -> Result<(Process, SocketAddr)> {
        let address = free_address()?;
        let config = dir.join("Caddyfile");
        std::fs::write(&config, caddyfile(address, www, identity))?;
        let mut command = self.command(Peer::Caddy)?;
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(config);
        // What it keeps of itself stays here.
        command.env("XDG_DATA_HOME", dir).env("XDG_CONFIG_HOME", dir);
        let mut server = Process::start(command, dir, "server")?;
        let deadline = Instant::now() + SERVER_PATIENCE;
        while !server.says(CADDY_IS_READY)? {
            if let Some(finished) = server.wait(Duration::ZERO)? {
                return Err(format!("the server ended at once: {}", finished.complaint()).into());
            }
            if Instant::now() > deadline {
                return Err("the server was never ready".into());
            }
            sleep(POLL_INTERVAL);
        }
        Ok((server, address))
    }
}

/// A server of files that also sends back what is posted to `/echo`.
fn caddyfile(address: SocketAddr, www: &Path, identity: &Identity) -> String {
    let (www, chain, key) = (www.display(), identity.chain.display(), identity.key.display());
    format!(
        r#"{{
	admin off
	auto_https off
	persist_config off
	skip_install_trust
	default_sni localhost
}}

https://{address} {{
	bind {ip}
	tls "{chain}" "{key}"
	root "{www}"
	respond /echo "{{http.request.body}}"
	file_server {{
		precompressed gzip
	}}
}}
"#,
        ip = address.ip(),
    )
}

/// An address whose port nobody has, neither for UDP nor for TCP.
fn free_address() -> Result<SocketAddr> {
    for _ in 0..16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        if std::net::UdpSocket::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err("no port is free".into())
}

fn find_browser() -> Result<PathBuf> {
    let runs = |name: &&&str| run_quietly(Command::new(name).arg("--version")).is_ok();
    let found = BROWSERS.iter().find(runs).ok_or("none of its names is a program here")?;
    Ok(PathBuf::from(found))
}
