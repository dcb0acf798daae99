//! `cargo xtask interop`: Fulmar and strangers talk over real sockets.
//!
//! Each case runs a server and a client as processes of their own with a relay between them, for each pair of
//! peers and in both roles. The cases follow those of the QUIC interop runner.

mod cases;
pub(crate) mod certs;
mod files;
mod network;
mod peers;
pub(crate) mod relay;
mod table;

use std::time::Instant;

use clap::ValueEnum;

use self::cases::{Case, Stage};
use self::peers::{Pair, Peer, Programs};
use self::table::{Outcome, Verdict};
use crate::{Result, programs};

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the pairs with this peer; `self-check` lets the strangers talk to each other.
    #[arg(long)]
    peer: Option<PeerChoice>,
    /// Only this case.
    #[arg(long)]
    case: Option<Case>,
    /// Print one line of JSON for each result instead of the table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PeerChoice {
    Fulmar,
    Quinn,
    QuicGo,
    SelfCheck,
}

/// Runs the chosen cases. Only real failures are errors, a skipped case is none.
pub(crate) fn run(options: &Options) -> Result<()> {
    let pairs = pairs(options.peer);
    let cases: Vec<Case> = Case::value_variants()
        .iter()
        .copied()
        .filter(|case| options.case.is_none_or(|only| only == *case))
        .collect();
    let programs = Programs::build(&pairs)?;
    let stage = Stage::prepare(&programs::scratch_dir("interop")?, programs)?;
    let mut outcomes = Vec::new();
    for case in &cases {
        for pair in &pairs {
            let outcome = run_case(&stage, *case, *pair);
            if options.json {
                println!("{}", outcome.to_json());
            } else {
                eprintln!("{}", outcome.to_line());
            }
            outcomes.push(outcome);
        }
    }
    if !options.json {
        println!("{}", table::render(&cases, &pairs, &outcomes));
    }
    match outcomes.iter().filter(|outcome| outcome.is_failure()).count() {
        0 => Ok(()),
        failures => Err(format!("{failures} of {} cases failed", outcomes.len()).into()),
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
    Outcome { case, pair, verdict, seconds: start.elapsed().as_secs_f64() }
}

/// Who meets whom: Fulmar itself and every stranger in both roles, or the strangers among themselves.
fn pairs(choice: Option<PeerChoice>) -> Vec<Pair> {
    const FULMAR: Peer = Peer::Fulmar;
    let both = |a, b| [Pair { server: a, client: b }, Pair { server: b, client: a }];
    let alone = [Pair { server: FULMAR, client: FULMAR }];
    match choice {
        None => [&alone[..], &both(FULMAR, Peer::Quinn), &both(FULMAR, Peer::QuicGo)].concat(),
        Some(PeerChoice::Fulmar) => alone.into(),
        Some(PeerChoice::Quinn) => both(FULMAR, Peer::Quinn).into(),
        Some(PeerChoice::QuicGo) => both(FULMAR, Peer::QuicGo).into(),
        Some(PeerChoice::SelfCheck) => both(Peer::Quinn, Peer::QuicGo).into(),
    }
}
