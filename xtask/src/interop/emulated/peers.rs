//! Who can play, which cases each supports, and how its programs are started.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use super::super::certs::Identity;
use super::super::network::{PREFERRED_V4, PREFERRED_V6};
use super::Case;
use crate::python::{self, run_quietly};
use crate::{Result, programs};

/// The port of all servers.
const PORT: u16 = 443;

/// An implementation of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Peer {
    Fulmar,
    Quinn,
    QuicGo,
    Aioquic,
    Ngtcp2,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A server and a client that are to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) server: Peer,
    pub(crate) client: Peer,
}

/// What a server is told.
pub(super) struct ServerRun<'a> {
    pub(super) case: Case,
    pub(super) testcase: &'a str,
    pub(super) www: &'a Path,
    pub(super) identity: &'a Identity,
}

/// What a client is told.
pub(super) struct ClientRun<'a> {
    pub(super) case: Case,
    pub(super) testcase: &'a str,
    pub(super) host: &'a str,
    pub(super) files: &'a [String],
    pub(super) out: &'a Path,
    /// A directory of its own, for what it keeps between connections.
    pub(super) state: &'a Path,
}

/// The programs of the peers, as far as this machine has them; else why not.
pub(crate) struct Programs {
    fulmar: PathBuf,
    quinn: Result<PathBuf, String>,
    quic_go: Result<PathBuf, String>,
    aioquic: Result<PathBuf, String>,
    ngtcp2: Result<PathBuf, String>,
}

impl Programs {
    /// Builds or fetches what `peers` need. A peer that cannot be had stays away.
    pub(crate) fn prepare(peers: &[Peer], dir: &Path, fulmar: Option<&Path>) -> Result<Self> {
        let wanted = |peer, get: &dyn Fn() -> Result<PathBuf>| match peers.contains(&peer) {
            true => get().map_err(|error| error.to_string()),
            false => Err("it was not asked for".to_owned()),
        };
        Ok(Self {
            fulmar: fulmar.map_or_else(programs::build_fulmar, |program| Ok(program.to_owned()))?,
            quinn: wanted(Peer::Quinn, &programs::build_quinn_peer),
            quic_go: wanted(Peer::QuicGo, &|| {
                programs::build_go_peer()?.ok_or_else(|| "there is no Go on this machine".into())
            }),
            aioquic: wanted(Peer::Aioquic, &|| {
                python::environment(&dir.join("aioquic"), "aioquic", "python", &["-c", "import aioquic"])
            }),
            ngtcp2: wanted(Peer::Ngtcp2, &|| ngtcp2_programs(&dir.join("ngtcp2"))),
        })
    }

    /// Why a pair cannot play a case, if it cannot.
    pub(crate) fn obstacle(&self, case: Case, pair: Pair) -> Option<String> {
        for peer in [pair.server, pair.client] {
            if let Err(why) = self.program(peer) {
                return Some(format!("{peer} is missing: {why}"));
            }
        }
        let lacks = |peer: Peer, role: &str| format!("{peer} does not support this as a {role}");
        if lacks_server_side(pair.server).contains(&case) {
            return Some(lacks(pair.server, "server"));
        }
        lacks_client_side(pair.client).contains(&case).then(|| lacks(pair.client, "client"))
    }

    fn program(&self, peer: Peer) -> Result<&PathBuf, &String> {
        match peer {
            Peer::Fulmar => Ok(&self.fulmar),
            Peer::Quinn => self.quinn.as_ref(),
            Peer::QuicGo => self.quic_go.as_ref(),
            Peer::Aioquic => self.aioquic.as_ref(),
            Peer::Ngtcp2 => self.ngtcp2.as_ref(),
        }
    }

    fn command(&self, peer: Peer) -> Result<Command> {
        Ok(Command::new(self.program(peer).map_err(String::as_str)?))
    }

    /// The command that starts `peer` as a server on all addresses.
    pub(super) fn server(&self, peer: Peer, run: &ServerRun<'_>) -> Result<Command> {
        let mut command = self.command(peer)?;
        let Identity { chain, key, .. } = run.identity;
        if peer == Peer::Ngtcp2 {
            let name = if run.case == Case::Http3 { "gtlsserver" } else { "gtlsh09server" };
            let mut command = Command::new(self.program(peer).map_err(String::as_str)?.with_file_name(name));
            ngtcp2_server(&mut command, run);
            return Ok(command);
        }
        match peer {
            Peer::Fulmar => _ = command.args(["-v", "interop", "server", "--testcase", run.testcase]),
            Peer::Aioquic => _ = command.arg(aioquic_script()).arg("server"),
            _ => _ = command.arg("server"),
        }
        command.args(["--listen", &format!("[::]:{PORT}")]).arg("--www").arg(run.www);
        command.arg("--cert").arg(chain).arg("--key").arg(key);
        if peer == Peer::Fulmar && run.case == Case::Connectionmigration {
            command.args(["--preferred", &format!("{PREFERRED_V4}:{PORT}")]);
            command.args(["--preferred", &format!("[{PREFERRED_V6}]:{PORT}")]);
        }
        if peer != Peer::Fulmar && run.case == Case::Retry {
            command.arg("--retry");
        }
        if peer == Peer::Aioquic && run.case == Case::V2 {
            command.arg("--v2");
        }
        if matches!(peer, Peer::Aioquic | Peer::QuicGo) {
            command.args(["--testcase", run.testcase]);
        }
        Ok(command)
    }

    /// The commands that fetch the files, one after the other.
    pub(super) fn clients(&self, peer: Peer, run: &ClientRun<'_>) -> Result<Vec<Command>> {
        let urls: Vec<String> =
            run.files.iter().map(|file| format!("https://{}:{PORT}/{file}", run.host)).collect();
        if peer == Peer::Ngtcp2 {
            return self.ngtcp2_clients(run, &urls);
        }
        let mut command = self.command(peer)?;
        match peer {
            Peer::Fulmar => {
                command.args(["-v", "interop", "client", "--testcase", run.testcase]);
                command.arg("--downloads").arg(run.out).env("REQUESTS", urls.join(" "));
                return Ok(vec![command]);
            }
            Peer::Aioquic => _ = command.arg(aioquic_script()).arg("client"),
            _ => _ = command.arg("client"),
        }
        command.arg("--insecure").arg("--out").arg(run.out);
        match (peer, run.case) {
            (Peer::Quinn | Peer::QuicGo, Case::Chacha20) => _ = command.arg("--chacha20"),
            (Peer::Aioquic, Case::V2) => _ = command.arg("--v2"),
            _ => {}
        }
        command.args(["--testcase", run.testcase]).args(urls);
        Ok(vec![command])
    }

    /// ngtcp2's client makes one connection per run.
    fn ngtcp2_clients(&self, run: &ClientRun<'_>, urls: &[String]) -> Result<Vec<Command>> {
        let parts: Vec<&[String]> = match run.testcase {
            "multiconnect" => urls.chunks(1).collect(),
            "resumption" | "zerortt" => vec![&urls[..1], &urls[1..]],
            _ => vec![urls],
        };
        let mut commands = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            let mut command = self.command(Peer::Ngtcp2)?;
            if run.case == Case::Http3 {
                command = Command::new(Path::new(command.get_program()).with_file_name("gtlsclient"));
            }
            command.args(["--quiet", "--exit-on-all-streams-close", "--timeout=30s"]);
            command.arg("--download").arg(run.out);
            let state = |name: &str| run.state.join(name);
            match run.case {
                Case::Chacha20 => {
                    let ciphers = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305";
                    command.arg(format!("--ciphers={ciphers}"));
                }
                Case::Keyupdate => _ = command.arg("--key-update=100ms"),
                Case::V2 => {
                    _ = command.args([
                        "--version=v1",
                        "--available-versions=v2,v1",
                        "--preferred-versions=v2,v1",
                    ])
                }
                Case::Resumption | Case::Zerortt => {
                    command.arg("--session-file").arg(state("session")).arg("--tp-file").arg(state("tp"));
                    if number == 0 {
                        command.arg("--wait-for-ticket");
                    }
                    // As ngtcp2's own script for the public runner has it: the runner counts the bytes of 1-RTT packets, and
                    // probes for the datagram size would use up what it allows.
                    command.arg(match run.case {
                        Case::Resumption => "--disable-early-data",
                        _ => "--no-pmtud",
                    });
                }
                _ => {}
            }
            command.arg(run.host).arg(PORT.to_string()).args(part);
            commands.push(command);
        }
        Ok(commands)
    }
}

/// ngtcp2's server always listens for one family of addresses unless told `*`.
fn ngtcp2_server(command: &mut Command, run: &ServerRun<'_>) {
    command.args(["--quiet", "--timeout=30s"]).arg("--htdocs").arg(run.www);
    match run.case {
        Case::Retry => _ = command.arg("--validate-addr"),
        Case::V2 => _ = command.args(["--preferred-versions=v2,v1", "--available-versions=v2,v1"]),
        Case::Connectionmigration => {
            command.args([
                "--preferred-ipv4-addr=193.167.100.100:4443",
                "--preferred-ipv6-addr=[fd00:cafe:cafe:100::100]:4443",
            ]);
        }
        _ => {}
    }
    command.args(["*", &PORT.to_string()]).arg(&run.identity.key).arg(&run.identity.chain);
}

/// The cases that a server has nothing to offer for.
fn lacks_server_side(peer: Peer) -> &'static [Case] {
    match peer {
        Peer::Fulmar => &[],
        // Without compatible version negotiation and without a preferred address.
        Peer::QuicGo => &[Case::V2, Case::Connectionmigration],
        // Nor HTTP.
        Peer::Quinn => &[Case::V2, Case::Connectionmigration, Case::Http3],
        // It sets no ECN marks and has no preferred address.
        Peer::Aioquic => &[Case::Ecn, Case::Connectionmigration],
        Peer::Ngtcp2 => &[],
    }
}

/// The cases that a client cannot play.
fn lacks_client_side(peer: Peer) -> &'static [Case] {
    match peer {
        Peer::Fulmar => &[],
        Peer::QuicGo => &[Case::V2, Case::Connectionmigration],
        Peer::Quinn => &[Case::V2, Case::Connectionmigration, Case::Http3],
        Peer::Aioquic => &[Case::Ecn, Case::Connectionmigration],
        Peer::Ngtcp2 => &[],
    }
}

fn aioquic_script() -> PathBuf {
    programs::repository().join("interop/aioquic/peer.py")
}

/// ngtcp2's client, which has the server beside it. Both are built from Debian's sources when they are not there.
fn ngtcp2_programs(dir: &Path) -> Result<PathBuf> {
    let client = dir.join("gtlsh09client");
    if !["gtlsclient", "gtlsserver", "gtlsh09client", "gtlsh09server"]
        .iter()
        .all(|name| dir.join(name).exists())
    {
        let script = programs::repository().join("interop/ngtcp2/build.sh");
        run_quietly(Command::new(script).arg(dir))
            .map_err(|error| format!("ngtcp2 cannot be built: {error}"))?;
    }
    Ok(client)
}
