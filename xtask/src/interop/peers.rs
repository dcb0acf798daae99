//! The programs that talk to each other and how to start them in either role.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::certs::Identity;
use crate::{Result, programs};

/// An implementation of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Fulmar,
    Quinn,
    QuicGo,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fulmar => "fulmar",
            Self::Quinn => "quinn",
            Self::QuicGo => "quic-go",
        })
    }
}

/// A server and a client that are to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) server: Peer,
    pub(super) client: Peer,
}

/// What is tried instead of moving files, by programs that speak a protocol of their own (`interop/README.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    Datagrams,
    ResetAt,
}

/// How a server is to run.
pub(super) struct ServerRun<'a> {
    pub(super) listen: SocketAddr,
    pub(super) www: &'a Path,
    pub(super) identity: &'a Identity,
    pub(super) idle: Duration,
    pub(super) reset_key: Option<&'a str>,
    /// Whether every client is asked for a proof of its address.
    pub(super) retry: bool,
}

/// How a client is to run.
pub(super) struct ClientRun<'a> {
    /// The certificate to trust; without one the client accepts any.
    pub(super) authority: Option<&'a Path>,
    pub(super) chacha20: bool,
    pub(super) out: &'a Path,
    pub(super) idle: Duration,
    /// How long to keep the connection after the last file.
    pub(super) hold: Duration,
    pub(super) urls: &'a [String],
}

/// The programs of the peers that this run needs.
#[derive(Default)]
pub(super) struct Programs {
    fulmar: Option<PathBuf>,
    /// The example `extensions` of the library, which the program `fulmar` has no use for.
    fulmar_extensions: Option<PathBuf>,
    quinn: Option<PathBuf>,
    quic_go: Option<PathBuf>,
}

impl Programs {
    /// Builds what `pairs` need, and what they need for the extensions if `extensions` are to be tried. A peer whose language
    /// is not installed stays away.
    pub(super) fn build(pairs: &[Pair], fulmar: Option<&Path>, extensions: bool) -> Result<Self> {
        let needs = |peer| pairs.iter().any(|pair| pair.server == peer || pair.client == peer);
        let mut programs = Self::default();
        if needs(Peer::Fulmar) {
            let built = fulmar.map_or_else(programs::build_fulmar, |program| Ok(program.to_owned()));
            programs.fulmar = Some(built?);
            if extensions {
                programs.fulmar_extensions = Some(programs::build_extensions_example()?);
            }
        }
        if needs(Peer::Quinn) {
            programs.quinn = Some(programs::build_quinn_peer()?);
        }
        if needs(Peer::QuicGo) {
            programs.quic_go = programs::build_go_peer()?;
        }
        Ok(programs)
    }

    /// Why a pair cannot meet on this machine, if it cannot.
    pub(super) fn missing(&self, pair: Pair) -> Option<&'static str> {
        let needs_go = pair.server == Peer::QuicGo || pair.client == Peer::QuicGo;
        (needs_go && self.quic_go.is_none()).then_some("there is no Go on this machine")
    }

    /// The command that starts `peer` as a server.
    pub(super) fn server(&self, peer: Peer, run: &ServerRun<'_>) -> Result<Command> {
        let mut command = self.command(peer)?;
        // Fulmar's program and the strangers', which are all alike, differ in the names of their options.
        let is_fulmar = peer == Peer::Fulmar;
        if is_fulmar {
            // With a log of connections that come and go, as the strangers print it without being asked.
            command.arg("-v").arg("serve").arg(run.www);
        } else {
            command.arg("server").arg("--www").arg(run.www);
        }
        command.arg("--listen").arg(run.listen.to_string());
        command.arg("--cert").arg(&run.identity.chain).arg("--key").arg(&run.identity.key);
        command.arg(idle_option(is_fulmar)).arg(seconds(run.idle));
        if let Some(key) = run.reset_key {
            command.arg("--reset-key").arg(key);
        }
        if run.retry {
            command.arg("--retry");
            if is_fulmar {
                command.arg("always");
            }
        }
        Ok(command)
    }

    /// The command that starts `peer` as a client.
    pub(super) fn client(&self, peer: Peer, run: &ClientRun<'_>) -> Result<Command> {
        let mut command = self.command(peer)?;
        let is_fulmar = peer == Peer::Fulmar;
        command.arg(if is_fulmar { "get" } else { "client" });
        if is_fulmar {
            command.arg("--hq");
        }
        match run.authority {
            Some(file) => command.arg("--ca").arg(file),
            None => command.arg("--insecure"),
        };
        command.arg(if is_fulmar { "-o" } else { "--out" }).arg(run.out);
        command.arg(idle_option(is_fulmar)).arg(seconds(run.idle));
        if !run.hold.is_zero() {
            command.arg("--hold").arg(seconds(run.hold));
        }
        match (is_fulmar, run.chacha20) {
            (true, true) => _ = command.args(["--cipher", "chacha20"]),
            (false, true) => _ = command.arg("--chacha20"),
            (_, false) => {}
        }
        if is_fulmar {
            command.arg("--json");
        }
        command.args(run.urls);
        Ok(command)
    }

    /// The command that starts `peer` as the server of all cases about extensions.
    pub(super) fn extension_server(
        &self,
        peer: Peer,
        listen: SocketAddr,
        identity: &Identity,
    ) -> Result<Command> {
        let mut command = self.extensions_command(peer)?;
        command.args(["server", &listen.to_string()]).arg(&identity.chain).arg(&identity.key);
        Ok(command)
    }

    /// The command that starts `peer` as the client of a case about extensions.
    pub(super) fn extension_client(
        &self,
        peer: Peer,
        extension: Extension,
        server: SocketAddr,
        authority: &Path,
    ) -> Result<Command> {
        let case = match extension {
            Extension::Datagrams => "datagrams",
            Extension::ResetAt => "reset-at",
        };
        let mut command = self.extensions_command(peer)?;
        command.args(["client", case, &server.to_string()]).arg(authority);
        Ok(command)
    }

    fn extensions_command(&self, peer: Peer) -> Result<Command> {
        if peer == Peer::Fulmar {
            return Ok(Command::new(self.fulmar_extensions.as_ref().ok_or("the example was not built")?));
        }
        let mut command = self.command(peer)?;
        command.arg("extensions");
        Ok(command)
    }

    fn command(&self, peer: Peer) -> Result<Command> {
        let program = match peer {
            Peer::Fulmar => &self.fulmar,
            Peer::Quinn => &self.quinn,
            Peer::QuicGo => &self.quic_go,
        };
        Ok(Command::new(program.as_ref().ok_or_else(|| format!("{peer} was not built"))?))
    }
}

fn idle_option(is_fulmar: bool) -> &'static str {
    if is_fulmar { "--idle-timeout" } else { "--idle" }
}

fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs())
}
