//! `cargo xtask interop`: Fulmar and strangers talk over real sockets.
//!
//! Each case runs a server and a client as processes of their own, for pairs of peers and in both roles. There are two networks:
//! on loopback, where a relay between the two delays and drops, and which needs no privileges; and [`network`], one of namespaces
//! and TUN devices with the whole list of the public QUIC interop runner, which needs root. [`links`] joins the same namespaces by
//! two links, for several paths. In [`web`] the program itself meets
//! browsers, clients and servers of HTTP/3 that people use, without a relay.

mod cases;
pub(crate) mod certs;
mod emulated;
mod files;
mod links;
mod network;
mod peers;
pub(crate) mod relay;
mod table;
mod trace;
mod web;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;

use self::cases::{Case, Stage};
pub(crate) use self::emulated::{LoadOptions, run_load};
use self::peers::{Pair, Peer, Programs};
use self::table::{Outcome, Verdict};
pub(crate) use self::trace::PacketKeys;
use crate::{Result, programs};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the pairs with these peers; `self-check` lets the strangers talk to each other on loopback, and on the emulated network
    /// each of them to itself, which shows what is theirs.
    #[arg(long = "peer", value_delimiter = ',')]
    peers: Vec<PeerChoice>,
    /// Only these cases.
    #[arg(long = "case", value_delimiter = ',')]
    cases: Vec<String>,
    /// Only this network.
    #[arg(long)]
    network: Option<NetworkChoice>,
    /// Only what takes little time.
    #[arg(long)]
    quick: bool,
    /// How many cases of the emulated network run at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    jobs: u16,
    /// Use this program `fulmar` instead of building one.
    #[arg(long)]
    fulmar: Option<PathBuf>,
    /// Print one line of JSON for each result instead of the tables.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PeerChoice {
    Fulmar,
    Quinn,
    QuicGo,
    Aioquic,
    Ngtcp2,
    Curl,
    Chromium,
    Caddy,
    SelfCheck,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NetworkChoice {
    Loopback,
    Emulated,
    /// Two links in network namespaces, whose interfaces go down and come up.
    Links,
    /// HTTP/3 with curl, Chromium, caddy and quic-go, on loopback without a relay.
    Web,
}

/// How the cases went.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    total: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// What the run comes to. One in which nothing was played proves nothing, and is no success.
    fn judge(self) -> Result<()> {
        let Self { total, failed, skipped } = self;
        if failed > 0 {
            return Err(format!("{failed} of {total} cases failed, and {skipped} were skipped").into());
        }
        if skipped == total {
            return Err(format!("all {total} cases were skipped").into());
        }
        Ok(())
    }
}

/// Runs the chosen cases. A case that fails is an error, and so is a run in which all were skipped.
pub(crate) fn run(options: &Options) -> Result<()> {
    options.check_case_names()?;
    let dir = programs::scratch_dir("interop")?;
    let mut tally = Tally::default();
    let is_wanted = |network| options.network.is_none_or(|chosen| chosen == network);
    if is_wanted(NetworkChoice::Loopback) {
        tally.add(run_loopback(options, &dir)?);
    }
    if is_wanted(NetworkChoice::Web) {
        tally.add(run_web(options, &dir)?);
    }
    if is_wanted(NetworkChoice::Links) {
        tally.add(run_links(options, &dir)?);
    }
    if is_wanted(NetworkChoice::Emulated) {
        tally.add(emulated::run(options, &dir)?);
    }
    if tally.skipped > 0 {
        eprintln!("skipped: {} of {} interop cases", tally.skipped, tally.total);
    }
    tally.judge()
}

impl Options {
    /// A name that no network knows is a mistake.
    fn check_case_names(&self) -> Result<()> {
        let is_known = |name: &String| {
            Case::from_str(name, false).is_ok()
                || emulated::Case::from_str(name, false).is_ok()
                || web::Case::from_str(name, false).is_ok()
                || links::Case::from_str(name, false).is_ok()
        };
        match self.cases.iter().find(|name| !is_known(name)) {
            Some(name) => Err(format!("there is no case {name}").into()),
            None => Ok(()),
        }
    }

    /// Tells how a case on loopback went.
    fn tell(&self, outcome: &Outcome) {
        match self.json {
            true => println!("{}", outcome.to_json()),
            false => eprintln!("{}", outcome.to_line()),
        }
    }

    /// The chosen ones of the cases of a network.
    fn choose<C: ValueEnum + Copy>(&self) -> Vec<C> {
        if self.cases.is_empty() {
            return C::value_variants().to_vec();
        }
        self.cases.iter().filter_map(|name| C::from_str(name, false).ok()).collect()
    }
}

fn run_loopback(options: &Options, dir: &Path) -> Result<Tally> {
    let pairs = loopback_pairs(&options.peers);
    let cases: Vec<Case> = options.choose();
    if pairs.is_empty() || cases.is_empty() {
        return Ok(Tally::default());
    }
    let extensions = cases.iter().any(|case| case.is_about_extensions());
    let programs = Programs::build(&pairs, options.fulmar.as_deref(), extensions)?;
    let stage = Stage::prepare(dir, programs)?;
    let meetings = cases.iter().flat_map(|case| pairs.iter().map(|pair| (*case, *pair)));
    Ok(play_in_turn(options, meetings.map(|(case, pair)| run_case(&stage, case, pair))))
}

/// Plays what is on loopback, and tells of it.
fn play_in_turn(options: &Options, outcomes: impl Iterator<Item = Outcome>) -> Tally {
    let outcomes: Vec<Outcome> = outcomes.inspect(|outcome| options.tell(outcome)).collect();
    if !options.json {
        println!("{}", table::render(&outcomes));
    }
    Tally {
        total: outcomes.len(),
        failed: outcomes.iter().filter(|outcome| outcome.is_failure()).count(),
        skipped: outcomes.iter().filter(|outcome| outcome.is_skipped()).count(),
    }
}

fn run_case(stage: &Stage, case: Case, pair: Pair) -> Outcome {
    let start = Instant::now();
    let verdict = match stage.obstacle(case, pair) {
        Some(reason) => Verdict::Skip(reason.to_owned()),
        None => match stage.run(case, pair) {
            Ok(()) => Verdict::Pass,
            Err(error) => Verdict::Fail(error.to_string()),
        },
    };
    Outcome::new(case, (pair.server, pair.client), verdict, start.elapsed())
}

fn run_web(options: &Options, dir: &Path) -> Result<Tally> {
    let meetings = web::meetings(&options.choose::<web::Case>(), &web_pairs(&options.peers));
    if meetings.is_empty() {
        return Ok(Tally::default());
    }
    let pairs: Vec<web::Pair> = meetings.iter().map(|(_, pair)| *pair).collect();
    let programs = web::Programs::prepare(&pairs, &dir.join("peers"), options.fulmar.as_deref())?;
    let stage = web::Stage::prepare(dir, programs)?;
    let mut missing: Vec<String> = pairs.iter().filter_map(|pair| stage.obstacle(*pair)).collect();
    missing.sort();
    missing.dedup();
    for obstacle in missing {
        eprintln!("skipped: {obstacle}");
    }
    Ok(play_in_turn(options, meetings.into_iter().map(|(case, pair)| stage.play(case, pair))))
}

/// The program meets itself over two links.
fn run_links(options: &Options, dir: &Path) -> Result<Tally> {
    let cases: Vec<links::Case> = options.choose();
    let is_wanted = options.peers.is_empty() || options.peers.contains(&PeerChoice::Fulmar);
    if cases.is_empty() || !is_wanted {
        return Ok(Tally::default());
    }
    if let Some(reason) = network::obstacle() {
        eprintln!("the cases with two links are skipped: {reason}");
        return Ok(Tally { total: cases.len(), failed: 0, skipped: cases.len() });
    }
    let stage = links::Stage::prepare(dir, options.fulmar.as_deref())?;
    Ok(play_in_turn(options, cases.into_iter().map(|case| stage.play(case))))
}

/// Who meets whom in the web: strangers meet the program, and each other where the run is about them.
fn web_pairs(choices: &[PeerChoice]) -> Vec<web::Pair> {
    use web::{Pair, Peer};
    const FULMAR: Peer = Peer::Fulmar;
    let all =
        [PeerChoice::Fulmar, PeerChoice::Curl, PeerChoice::Chromium, PeerChoice::Caddy, PeerChoice::QuicGo];
    let choices = if choices.is_empty() { &all[..] } else { choices };
    choices
        .iter()
        .flat_map(|choice| match choice {
            PeerChoice::Fulmar => vec![Pair { server: FULMAR, client: FULMAR }],
            PeerChoice::Curl => vec![Pair { server: FULMAR, client: Peer::Curl }],
            PeerChoice::Chromium => vec![Pair { server: FULMAR, client: Peer::Chromium }],
            PeerChoice::Caddy => vec![Pair { server: Peer::Caddy, client: FULMAR }],
            PeerChoice::QuicGo => vec![Pair { server: Peer::QuicGo, client: FULMAR }],
            PeerChoice::SelfCheck => {
                let of_caddy = |client| Pair { server: Peer::Caddy, client };
                vec![of_caddy(Peer::Curl), of_caddy(Peer::Chromium)]
            }
            PeerChoice::Quinn | PeerChoice::Aioquic | PeerChoice::Ngtcp2 => Vec::new(),
        })
        .collect()
}

/// Who meets whom on loopback: Fulmar itself and the strangers in both roles, or the strangers among themselves.
fn loopback_pairs(choices: &[PeerChoice]) -> Vec<Pair> {
    const FULMAR: Peer = Peer::Fulmar;
    let both = |a, b| vec![Pair { server: a, client: b }, Pair { server: b, client: a }];
    let all = [PeerChoice::Fulmar, PeerChoice::Quinn, PeerChoice::QuicGo];
    let choices = if choices.is_empty() { &all[..] } else { choices };
    choices
        .iter()
        .flat_map(|choice| match choice {
            PeerChoice::Fulmar => vec![Pair { server: FULMAR, client: FULMAR }],
            PeerChoice::Quinn => both(FULMAR, Peer::Quinn),
            PeerChoice::QuicGo => both(FULMAR, Peer::QuicGo),
            PeerChoice::SelfCheck => both(Peer::Quinn, Peer::QuicGo),
            PeerChoice::Aioquic
            | PeerChoice::Ngtcp2
            | PeerChoice::Curl
            | PeerChoice::Chromium
            | PeerChoice::Caddy => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_which_nothing_was_played_is_no_success() {
        let tally = |total, failed, skipped| Tally { total, failed, skipped };
        assert!(tally(3, 0, 3).judge().is_err());
        assert!(tally(0, 0, 0).judge().is_err());
        assert!(tally(3, 1, 1).judge().is_err());
        assert!(tally(3, 0, 2).judge().is_ok());
    }
}
