//! One run of one case: a network, a server, a client, and the verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::certs::Certificates;
use super::super::files;
use super::super::network::{Network, Place};
use super::super::trace::{self, KeyLog};
use super::Case;
use super::case::Script;
use super::peers::{ClientRun, Pair, Programs, ServerRun};
use super::rules::{self, Evidence};
use crate::Result;
use crate::process::Process;

/// How long a server may take to start, and to end when told so.
const SERVER_PATIENCE: Duration = Duration::from_secs(20);
/// The servers' port as `/proc/net/udp` shows it.
const PORT_IN_PROC: &str = ":01BB ";
/// What still travels when the client has ended arrives within this time.
const AFTERMATH: Duration = Duration::from_millis(100);

/// What all cases of a run share.
pub(crate) struct Stage {
    programs: Programs,
    certificates: Certificates,
    www: PathBuf,
    logs: PathBuf,
}

impl Stage {
    /// Makes the certificates and files of a run below `dir`.
    pub(crate) fn prepare(dir: &Path, programs: Programs) -> Result<Self> {
        let certificates = Certificates::create(&dir.join("certs"))?;
        Ok(Self { programs, certificates, www: files::create(&dir.join("www"))?, logs: dir.join("emulated") })
    }

    /// Why a pair cannot play a case, if it cannot.
    pub(crate) fn obstacle(&self, case: Case, pair: Pair) -> Option<String> {
        self.programs.obstacle(case, pair)
    }

    /// Runs a case; the number tells the run from others at the same time. Gives a figure where the case measures one.
    pub(crate) fn run(&self, case: Case, pair: Pair, number: usize) -> Result<Option<f64>> {
        let script = case.script();
        let dir = self.logs.join(format!("{case}-{}-{}", pair.server, pair.client));
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        for part in ["out", "state"] {
            fs::create_dir_all(dir.join(part))?;
        }
        let network = Network::open(&number.to_string(), &script.conditions)?;
        let result = self.play(case, pair, &script, &network, &dir);
        let capture = network.close()?;
        let keys = key_log(&dir)?;
        capture.write(&dir.join("capture.pcapng"), keys.text())?;
        let seconds = result?.as_secs_f64();
        files::compare(&self.www, &dir.join("out"), &script.files)?;
        let evidence = Evidence {
            pair,
            at_client: trace::read(capture.at(Place::Client), &keys),
            at_server: trace::read(capture.at(Place::Server), &keys),
            has_keys: !keys.is_empty(),
        };
        if case.is_measurement() {
            let bits = files::total_bytes(&self.www, &script.files)? as f64 * 8.0;
            return Ok(Some(bits / seconds / 1e3));
        }
        rules::check(case, &evidence)?;
        Ok(None)
    }

    /// Starts everything and waits for the client; gives the time that it took.
    fn play(
        &self,
        case: Case,
        pair: Pair,
        script: &Script,
        network: &Network,
        dir: &Path,
    ) -> Result<Duration> {
        let identity = if script.long_chain { &self.certificates.long } else { &self.certificates.short };
        let run = ServerRun { case, testcase: script.testcase, www: &self.www, identity };
        let mut command = network.on_server(&self.programs.server(pair.server, &run)?);
        command.env("SSLKEYLOGFILE", dir.join("server.keys")).env("QLOGDIR", dir);
        let mut server = Process::start(command, dir, "server")?;
        wait_for_port(&mut server)?;
        let _competitors = if script.competes { compete(network, dir)? } else { Vec::new() };

        let run = ClientRun {
            case,
            testcase: script.testcase,
            host: script.host,
            files: &script.files,
            out: &dir.join("out"),
            state: &dir.join("state"),
        };
        let start = Instant::now();
        for (number, command) in self.programs.clients(pair.client, &run)?.into_iter().enumerate() {
            let mut command = network.on_client(&command);
            command.env("SSLKEYLOGFILE", dir.join("client.keys")).env("QLOGDIR", dir);
            let mut client = Process::start(command, dir, &format!("client-{number}"))?;
            let patience = script.patience.saturating_sub(start.elapsed());
            let finished = client.wait(patience)?;
            let finished = finished
                .ok_or_else(|| format!("the client did not end within {} s", script.patience.as_secs()))?;
            if !finished.status.success() {
                return Err(format!("the client failed: {}", finished.complaint()).into());
            }
        }
        let elapsed = start.elapsed();
        sleep(AFTERMATH);
        // A server that has ended before its time has failed.
        if let Some(finished) = server.wait(Duration::ZERO)? {
            return Err(format!("the server failed: {}", finished.complaint()).into());
        }
        server.interrupt()?;
        let _ = server.wait(SERVER_PATIENCE)?;
        Ok(elapsed)
    }
}

/// A TCP download beside that of QUIC, which lasts until the processes are dropped.
fn compete(network: &Network, dir: &Path) -> Result<Vec<Process>> {
    let program = std::env::current_exe()?;
    let mut sink = Command::new(&program);
    sink.args(["load", "--listen", "193.167.0.100:5001"]);
    let mut source = Command::new(&program);
    source.args(["load", "--to", "193.167.0.100:5001"]);
    Ok(vec![
        Process::start(network.on_client(&sink), dir, "tcp-sink")?,
        Process::start(network.on_server(&source), dir, "tcp-source")?,
    ])
}

/// Not every server says when it is ready, but the system knows who has the port.
fn wait_for_port(server: &mut Process) -> Result<()> {
    let deadline = Instant::now() + SERVER_PATIENCE;
    loop {
        let files = ["udp", "udp6"].map(|file| format!("/proc/{}/net/{file}", server.id()));
        let sockets: String = files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
        if sockets.contains(PORT_IN_PROC) {
            return Ok(());
        }
        if let Some(finished) = server.wait(Duration::ZERO)? {
            return Err(format!("the server ended at once: {}", finished.complaint()).into());
        }
        if Instant::now() > deadline {
            return Err("the server never opened its port".into());
        }
        sleep(Duration::from_millis(10));
    }
}

/// The secrets that both sides left.
fn key_log(dir: &Path) -> Result<KeyLog> {
    let mut keys = KeyLog::default();
    for file in ["server.keys", "client.keys"] {
        let path = dir.join(file);
        if path.exists() {
            keys.add(&fs::read_to_string(path)?);
        }
    }
    Ok(keys)
}
