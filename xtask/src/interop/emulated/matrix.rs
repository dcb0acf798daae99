//! All the chosen cases on the emulated network, for each pair of peers, several at a time.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::ValueEnum;

use super::super::{Options, PeerChoice, Tally, network};
use super::{Case, Outcome, Pair, Peer, Programs, Stage, Verdict, render};
use crate::Result;

/// Runs what was chosen, and tells how it went. Where there may be no such network, all is skipped.
pub(in crate::interop) fn run(options: &Options, dir: &Path) -> Result<Tally> {
    let peers = chosen_peers(options);
    let pairs = match options.peers.contains(&PeerChoice::SelfCheck) {
        true => peers.iter().map(|&peer| Pair { server: peer, client: peer }).collect(),
        false => pairs_of(&peers),
    };
    let mut cases: Vec<Case> = options.choose();
    if options.quick && options.cases.is_empty() {
        cases = Case::QUICK.to_vec();
    }
    if pairs.is_empty() || cases.is_empty() {
        return Ok(Tally::default());
    }
    if let Some(reason) = network::obstacle() {
        eprintln!("the cases on the emulated network are skipped: {reason}");
        let total = cases.len() * pairs.len();
        return Ok(Tally { total, failed: 0, skipped: total });
    }
    let programs = Programs::prepare(&peers, &dir.join("peers"), options.fulmar.as_deref())?;
    let stage = Stage::prepare(dir, programs)?;
    let outcomes = run_in_parallel(options, &stage, &cases, &pairs);
    if !options.json {
        println!("{}", render(&cases, &pairs, &outcomes));
    }
    Ok(Tally {
        total: outcomes.len(),
        failed: outcomes.iter().filter(|outcome| outcome.is_failure()).count(),
        skipped: outcomes.iter().filter(|outcome| outcome.is_skipped()).count(),
    })
}

/// Runs each case for each pair, several at a time.
fn run_in_parallel(options: &Options, stage: &Stage, cases: &[Case], pairs: &[Pair]) -> Vec<Outcome> {
    let work: Vec<_> = cases.iter().flat_map(|case| pairs.iter().map(|pair| (*case, *pair))).collect();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some((case, pair)) = work.get(number) else { return };
                    let outcome = run_case(stage, *case, *pair, number);
                    if options.json {
                        println!("{}", outcome.to_json());
                    } else {
                        eprintln!("{}", outcome.to_line());
                    }
                    outcomes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn run_case(stage: &Stage, case: Case, pair: Pair, number: usize) -> Outcome {
    let start = Instant::now();
    let verdict = match stage.obstacle(case, pair) {
        Some(reason) => Verdict::Skip(reason),
        None => match stage.run(case, pair, number) {
            Ok(None) => Verdict::Pass,
            Ok(Some(kbit_per_s)) => Verdict::Measured(kbit_per_s),
            Err(error) => Verdict::Fail(error.to_string()),
        },
    };
    Outcome { case, pair, verdict, seconds: start.elapsed().as_secs_f64() }
}

/// The peers that are to meet Fulmar, itself among them.
fn chosen_peers(options: &Options) -> Vec<Peer> {
    if options.peers.is_empty() {
        return Peer::value_variants().to_vec();
    }
    options
        .peers
        .iter()
        .filter_map(|choice| match choice {
            PeerChoice::Fulmar => Some(Peer::Fulmar),
            PeerChoice::Quinn => Some(Peer::Quinn),
            PeerChoice::QuicGo => Some(Peer::QuicGo),
            PeerChoice::Aioquic => Some(Peer::Aioquic),
            PeerChoice::Ngtcp2 => Some(Peer::Ngtcp2),
            PeerChoice::SelfCheck | PeerChoice::Curl | PeerChoice::Chromium | PeerChoice::Caddy => None,
        })
        .collect()
}

/// Fulmar with each of them in both roles, and with itself.
fn pairs_of(peers: &[Peer]) -> Vec<Pair> {
    peers
        .iter()
        .flat_map(|&peer| match peer {
            Peer::Fulmar => vec![Pair { server: peer, client: peer }],
            _ => {
                vec![Pair { server: Peer::Fulmar, client: peer }, Pair { server: peer, client: Peer::Fulmar }]
            }
        })
        .collect()
}
