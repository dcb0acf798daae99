//! A server behind a relay, ready for a client.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Case, Script, Stage};
use crate::Result;
use crate::interop::files;
use crate::interop::peers::{ClientRun, Pair, ServerRun};
use crate::interop::relay::Relay;
use crate::process::{Finished, Process};

/// How long a server may take to start, and to end when told so.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
/// All servers have the same, so that one can take the place of another.
const RESET_KEY: &str = "46756c6d6172206d6565747320737472616e67657273206f6e206c6f6f706261";

pub(super) struct Scene<'a> {
    stage: &'a Stage,
    pair: Pair,
    script: Script,
    /// Where the client puts the files, and the logs of all processes.
    dir: PathBuf,
    server_address: SocketAddr,
    pub(super) server: Process,
    pub(super) relay: Relay,
}

impl<'a> Scene<'a> {
    /// Starts the server and the relay.
    pub(super) fn open(stage: &'a Stage, case: Case, pair: Pair) -> Result<Self> {
        let script = case.script();
        let dir = stage.logs.join(format!("{case}-{}-{}", pair.server, pair.client));
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(dir.join("out"))?;
        let any_port = SocketAddr::from((script.host, 0));
        let (server, server_address) = start_server(stage, pair, &script, &dir, "server", any_port)?;
        let relay = Relay::start(server_address, script.conditions.clone())?;
        Ok(Self { stage, pair, script, dir, server_address, server, relay })
    }

    /// Another way to the same server.
    pub(super) fn new_relay(&self) -> Result<Relay> {
        Ok(Relay::start(self.server_address, self.script.conditions.clone())?)
    }

    /// Kills the server and starts another at the same address, which knows nothing but the reset key.
    pub(super) fn replace_server(&mut self) -> Result<()> {
        self.server.kill()?;
        let Self { stage, pair, script, dir, server_address, .. } = self;
        (self.server, _) = start_server(stage, *pair, script, dir, "server-2", *server_address)?;
        Ok(())
    }

    /// Starts the client that the script describes, with its log under `name`.
    pub(super) fn start_client(&self, name: &str, relay: &Relay) -> Result<Process> {
        if let Some(extension) = self.script.extension {
            let authority = &self.stage.certificates.authority;
            let programs = &self.stage.programs;
            let client =
                programs.extension_client(self.pair.client, extension, relay.address()?, authority)?;
            return Process::start(client, &self.dir, name);
        }
        self.start_client_holding(name, relay, self.script.hold)
    }

    /// As [`Self::start_client`], but with another time to hold the connection.
    pub(super) fn start_client_holding(&self, name: &str, relay: &Relay, hold: Duration) -> Result<Process> {
        let address = relay.address()?;
        let authority =
            if self.script.by_name { format!("localhost:{}", address.port()) } else { address.to_string() };
        let urls: Vec<String> =
            self.script.files.iter().map(|file| format!("https://{authority}/{file}")).collect();
        let run = ClientRun {
            // Verifiers limit the depth of chains, and this one is about bytes.
            authority: (!self.script.long_chain).then_some(&self.stage.certificates.authority),
            chacha20: self.script.chacha20,
            out: &self.dir.join("out"),
            idle: self.script.idle,
            hold,
            urls: &urls,
        };
        Process::start(self.stage.programs.client(self.pair.client, &run)?, &self.dir, name)
    }

    /// Whether the client has all files, and whether they are right.
    pub(super) fn compare_files(&self) -> Result<()> {
        files::compare(&self.stage.www, &self.dir.join("out"), &self.script.files)
    }

    pub(super) fn pair(&self) -> Pair {
        self.pair
    }

    /// Tells the server to end and gives what it left.
    pub(super) fn stop_server(mut self) -> Result<Finished> {
        self.server.interrupt()?;
        self.server.wait(SERVER_PATIENCE)?.ok_or_else(|| "the server does not end when interrupted".into())
    }
}

fn start_server(
    stage: &Stage,
    pair: Pair,
    script: &Script,
    dir: &Path,
    name: &str,
    listen: SocketAddr,
) -> Result<(Process, SocketAddr)> {
    let identity = if script.long_chain { &stage.certificates.long } else { &stage.certificates.short };
    let run = ServerRun {
        listen,
        www: &stage.www,
        identity,
        idle: script.idle,
        reset_key: Some(RESET_KEY),
        retry: script.retry,
    };
    let command = match script.extension {
        Some(_) => stage.programs.extension_server(pair.server, listen, identity)?,
        None => stage.programs.server(pair.server, &run)?,
    };
    let mut server = Process::start(command, dir, name)?;
    let address = server.listening(SERVER_PATIENCE)?.parse()?;
    Ok((server, address))
}
