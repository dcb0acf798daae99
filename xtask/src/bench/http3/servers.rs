//! The servers, each with the configuration that lets it do its best with one process for the requests.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::tools::{self, Found};
use crate::bench::cores::Cores;
use crate::bench::pair::Outcome;
use crate::bench::plan::Stack;
use crate::interop::certs::Identity;
use crate::process::Process;
use crate::{Result, programs};

/// How long a server may take to say where it listens, and to end.
const START_PATIENCE: Duration = Duration::from_secs(10);
const END_PATIENCE: Duration = Duration::from_secs(5);
/// How often a port is looked for that is free over UDP and TCP.
const PORT_TRIES_MAX: u32 = 16;

/// The programs; what is not there has a reason.
pub(super) struct Servers {
    pub(super) fulmar: PathBuf,
    quic_go: Found,
    h3_quinn: PathBuf,
    nginx: Found,
    caddy: Found,
}

impl Servers {
    /// Builds what is ours to build, and looks for the others.
    pub(super) fn build(fulmar: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            fulmar: fulmar.map_or_else(programs::build_fulmar, Ok)?,
            quic_go: programs::build_go_bench()?.ok_or_else(|| "there is no Go on this machine".to_owned()),
            h3_quinn: programs::build_bench("fulmar-bench-h3-quinn", "bench-h3-quinn")?,
            nginx: tools::nginx()?,
            caddy: tools::caddy()?,
        })
    }

    /// The versions of those that are not built here.
    pub(super) fn versions(&self) -> Vec<String> {
        let nginx = self.nginx.iter().map(|program| tools::version(program, "-v"));
        let caddy = self.caddy.iter().map(|program| format!("caddy {}", tools::version(program, "version")));
        nginx.chain(caddy).collect()
    }

    fn program(&self, stack: Stack) -> Result<&Path, &str> {
        match stack {
            Stack::QuicGo => self.quic_go.as_deref().map_err(String::as_str),
            Stack::H3Quinn => Ok(&self.h3_quinn),
            Stack::Nginx => self.nginx.as_deref().map_err(String::as_str),
            Stack::Caddy => self.caddy.as_deref().map_err(String::as_str),
            Stack::Fulmar | Stack::Http2 => Ok(&self.fulmar),
            Stack::Limit | Stack::Quinn | Stack::S2n | Stack::Tcp => Err("it does not serve files over HTTP"),
        }
    }
}

/// What all servers are told.
pub(super) struct Site<'a> {
    pub(super) www: &'a Path,
    pub(super) identity: &'a Identity,
    /// For configurations and logs.
    pub(super) dir: &'a Path,
}

/// A server that runs. When this is dropped, it is told to end, so that it can end its own children.
pub(super) struct Server {
    process: Process,
    pub(super) address: String,
}

impl Server {
    /// Starts the server of a stack; what the run comes to if there is none, or it does not start.
    pub(super) fn start(
        servers: &Servers,
        stack: Stack,
        cores: Cores,
        site: &Site<'_>,
    ) -> Result<Result<Self, Outcome>> {
        let program = match servers.program(stack) {
            Ok(program) => program,
            Err(why) => return Ok(Err(Outcome::Nothing(why.to_owned()))),
        };
        let mut command = cores.server(program);
        let port = match stack {
            Stack::Nginx => Some(nginx(&mut command, site)?),
            Stack::Caddy => Some(caddy(&mut command, site)?),
            Stack::QuicGo => {
                command.arg("http3");
                None
            }
            Stack::Fulmar | Stack::Http2 => {
                command.arg("serve").arg(site.www);
                command.args(["--listen", "127.0.0.1:0", "--workers", "1", "--grace", "0s"]);
                None
            }
            _ => None,
        };
        if matches!(stack, Stack::QuicGo | Stack::H3Quinn) {
            command.arg("--dir").arg(site.www);
        }
        if port.is_none() {
            command.arg("--cert").arg(&site.identity.chain).arg("--key").arg(&site.identity.key);
        }
        let mut process = Process::start(command, site.dir, &format!("{}-server", stack.name()))?;
        let address = match port {
            Some(port) => format!("127.0.0.1:{port}"),
            None => match process.listening(START_PATIENCE) {
                Ok(address) => address,
                Err(error) => return Ok(Err(Outcome::Failed(error.to_string()))),
            },
        };
        Ok(Ok(Self { process, address }))
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What cannot be told, or does not listen, is killed when the process is dropped.
        if self.process.interrupt().is_ok() {
            let _ = self.process.wait(END_PATIENCE);
        }
    }
}

/// One worker, without a log, with GSO, and without an end of connections after a number of requests.
fn nginx(command: &mut Command, site: &Site<'_>) -> Result<u16> {
    let port = free_port()?;
    let dir = site.dir.join("nginx");
    fs::create_dir_all(dir.join("temp"))?;
    let (dir_text, www) = (dir.display(), site.www.display());
    let (chain, key) = (site.identity.chain.display(), site.identity.key.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {dir_text}/temp;\n"))
        .concat();
    // Where it runs as root, its worker would become a user who cannot read everything below a home.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let config = format!(
        "daemon off;\n{user}worker_processes 1;\npid {dir_text}/nginx.pid;\nerror_log {dir_text}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n  keepalive_requests 1000000000;\n  quic_gso on;\n{temporary}  server {{\n    \
         listen 127.0.0.1:{port} quic;\n    listen 127.0.0.1:{port} ssl;\n    http2 on;\n    \
         ssl_certificate {chain};\n    ssl_certificate_key {key};\n    ssl_protocols TLSv1.3;\n    root {www};\n    \
         add_header Alt-Svc 'h3=\":{port}\"; ma=86400';\n  }}\n}}\n"
    );
    let file = dir.join("nginx.conf");
    fs::write(&file, config)?;
    command.arg("-p").arg(&dir).arg("-e").arg(dir.join("error.log")).arg("-c").arg(&file);
    Ok(port)
}

/// Its file server as it is.
fn caddy(command: &mut Command, site: &Site<'_>) -> Result<u16> {
    let port = free_port()?;
    let dir = site.dir.join("caddy");
    fs::create_dir_all(&dir)?;
    let (chain, key) = (site.identity.chain.display(), site.identity.key.display());
    let config = format!(
        "{{\n\tadmin off\n\tauto_https off\n\tskip_install_trust\n}}\nhttps://:{port} {{\n\tbind 127.0.0.1\n\t\
         tls {chain} {key}\n\troot * {}\n\tfile_server\n}}\n",
        site.www.display()
    );
    let file = dir.join("Caddyfile");
    fs::write(&file, config)?;
    // It keeps state in the directories of the user otherwise.
    command.env("XDG_DATA_HOME", &dir).env("XDG_CONFIG_HOME", &dir);
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
    Ok(port)
}

/// A port of loopback that nobody has, over UDP and TCP.
fn free_port() -> Result<u16> {
    for _ in 0..PORT_TRIES_MAX {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = socket.local_addr()?.port();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err("no port is free over UDP and TCP".into())
}
