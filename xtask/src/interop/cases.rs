//! The cases: what runs under which conditions and what must come out of it.
//!
//! Most cases are a download described by a [`Script`] and judged by [`check`]. The two about the end of a
//! connection have a course of their own, in [`idle`] and [`reset`].

mod check;
mod idle;
mod reset;
mod scene;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;

use self::check::Evidence;
use self::scene::Scene;
use super::certs::Certificates;
use super::files;
use super::peers::{Extension, Pair, Peer, Programs};
use super::relay::{Conditions, Link, Loss, Rate};
use crate::Result;
use crate::process::Finished;

/// The round trip of the long link.
const LONG_RTT: Duration = Duration::from_millis(750);
/// An idle timeout that does not matter within a case.
const IDLE_LONG: Duration = Duration::from_secs(30);
/// How long a download may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Named as in the QUIC interop runner, where it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Case {
    /// 1 KiB.
    Handshake,
    /// 2, 3 and 5 MiB over one connection.
    Transfer,
    /// 1,999 files of 32 bytes over one connection.
    Multiplexing,
    /// The client offers ChaCha20-Poly1305 alone.
    Chacha20,
    /// 1 KiB over a link with a round trip of 750 ms.
    Longrtt,
    /// A chain of nine certificates while the first answers of the client are lost.
    Amplification,
    /// The server demands a Retry.
    Retry,
    /// 2 MiB over 10 Mbit/s, 15 ms each way, with 2 % losses.
    Transferloss,
    /// 1 KiB and 10 KiB over IPv6.
    Ipv6,
    /// A connection without traffic ends on both sides by itself.
    Idle,
    /// A client learns from a stateless reset that the server was restarted.
    Reset,
    /// 200 DATAGRAM frames of the client, and as many of the server that bring them back (RFC 9221).
    Datagrams,
    /// Both ends reset a stream but for its first 100,000 bytes (RESET_STREAM_AT), over 10 Mbit/s with 10 % losses.
    ResetAt,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// What a server and a client have to do, and the network between them.
struct Script {
    files: Vec<String>,
    host: IpAddr,
    /// The client knows the server by name, which it has to look up, send and verify.
    by_name: bool,
    conditions: Conditions,
    long_chain: bool,
    chacha20: bool,
    retry: bool,
    idle: Duration,
    hold: Duration,
    /// What client and server do instead of moving files.
    extension: Option<Extension>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            files: vec!["1k".to_owned()],
            host: Ipv4Addr::LOCALHOST.into(),
            by_name: false,
            conditions: Conditions::default(),
            long_chain: false,
            chacha20: false,
            retry: false,
            idle: IDLE_LONG,
            hold: Duration::ZERO,
            extension: None,
        }
    }
}

impl Case {
    /// Whether the case needs the programs that try extensions.
    pub(super) fn is_about_extensions(self) -> bool {
        self.script().extension.is_some()
    }

    fn script(self) -> Script {
        let names = |names: &[&str]| names.iter().copied().map(str::to_owned).collect();
        let plain = Script::default();
        match self {
            Self::Handshake => Script { by_name: true, ..plain },
            Self::Transfer => Script { files: names(&["2m", "3m", "5m"]), ..plain },
            Self::Multiplexing => Script { files: files::small_names().collect(), ..plain },
            Self::Chacha20 => Script { files: names(&["3m"]), chacha20: true, ..plain },
            Self::Longrtt => {
                let link = Link { delay: LONG_RTT / 2, ..Link::default() };
                Script { conditions: Conditions::symmetric(link), ..plain }
            }
            Self::Amplification => {
                // The first datagram gets through; then the server is on its own with what it allows.
                let to_client = Link { delay: Duration::from_millis(15), ..Link::default() };
                let to_server = Link { drop: Some(2..=7), ..to_client.clone() };
                let conditions = Conditions { to_server, to_client };
                Script { conditions, long_chain: true, ..plain }
            }
            Self::Retry => Script { files: names(&["10k"]), retry: true, ..plain },
            Self::Transferloss => {
                Script { files: names(&["2m"]), conditions: lossy_conditions(0.02), ..plain }
            }
            Self::Ipv6 => Script { files: names(&["1k", "10k"]), host: Ipv6Addr::LOCALHOST.into(), ..plain },
            Self::Idle => Script { idle: idle::TIMEOUT, hold: idle::HOLD, ..plain },
            Self::Reset => Script { hold: IDLE_LONG, ..plain },
            Self::Datagrams => Script { extension: Some(Extension::Datagrams), ..plain },
            Self::ResetAt => {
                // What must arrive is not yet delivered when the streams are reset, and some of it is lost.
                let conditions = lossy_conditions(0.1);
                Script { extension: Some(Extension::ResetAt), conditions, ..plain }
            }
        }
    }
}

/// 10 Mbit/s, 15 ms each way, with losses.
fn lossy_conditions(probability: f64) -> Conditions {
    Conditions::symmetric(Link {
        delay: Duration::from_millis(15),
        rate: Some(Rate { bit_per_s: 10_000_000, queue_datagrams: 25 }),
        loss: Some(Loss { probability, burst_max: 3, seed: 1 }),
        drop: None,
    })
}

/// What all cases of a run share.
pub(super) struct Stage {
    programs: Programs,
    certificates: Certificates,
    www: PathBuf,
    logs: PathBuf,
}

impl Stage {
    /// Makes the certificates and files of a run below `dir`.
    pub(super) fn prepare(dir: &Path, programs: Programs) -> Result<Self> {
        let certificates = Certificates::create(&dir.join("certs"))?;
        Ok(Self { programs, certificates, www: files::create(&dir.join("www"))?, logs: dir.join("logs") })
    }

    /// Why a case cannot run for a pair, if it cannot.
    pub(super) fn obstacle(&self, case: Case, pair: Pair) -> Option<&'static str> {
        if case == Case::ResetAt && [pair.server, pair.client].contains(&Peer::Quinn) {
            return Some("quinn does not know RESET_STREAM_AT");
        }
        self.programs.missing(pair)
    }

    /// Runs a case for a pair; the error tells what went wrong.
    pub(super) fn run(&self, case: Case, pair: Pair) -> Result<()> {
        let scene = Scene::open(self, case, pair)?;
        match case {
            Case::Idle => idle::run(scene),
            Case::Reset => reset::run(scene),
            Case::Datagrams | Case::ResetAt => extension(case, scene),
            _ => download(case, scene),
        }
    }
}

/// The client sees that everything comes back or arrives, also at the server, and says so in its exit status.
fn extension(case: Case, scene: Scene<'_>) -> Result<()> {
    finish_client(&scene)?;
    let evidence = Evidence::without_reports(scene.pair(), scene.relay.traffic());
    scene.stop_server()?;
    check::check(case, &evidence)
}

/// The client gets the files and ends; then everything that was seen is judged.
fn download(case: Case, scene: Scene<'_>) -> Result<()> {
    let start = Instant::now();
    let client = finish_client(&scene)?;
    let elapsed = start.elapsed();
    scene.compare_files()?;
    let (pair, traffic) = (scene.pair(), scene.relay.traffic());
    let server = scene.stop_server()?;
    check::check(case, &Evidence { pair, client: client.report(), server: server.report(), traffic, elapsed })
}

/// Runs the client to its end, which must be a good one.
fn finish_client(scene: &Scene<'_>) -> Result<Finished> {
    let client = scene.start_client("client", &scene.relay)?.wait(PATIENCE)?;
    let client = client.ok_or_else(|| format!("the client did not end within {} s", PATIENCE.as_secs()))?;
    if !client.status.success() {
        return Err(format!("the client failed: {}", client.complaint()).into());
    }
    Ok(client)
}
