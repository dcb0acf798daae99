//! Every pair of stacks, on links that are plain and on links that are not.

use std::time::Duration;

use fulmar_base::Rng;
use fulmar_sim::{Jitter, LinkConfig, Loss};
use lab_peers::{Download, Outcome, Stack, run};

const BYTES: u64 = 1_000_000;
/// 10 Mbit/s for a megabyte.
const FLOOR_S: f64 = 0.8;

fn plain() -> LinkConfig {
    LinkConfig::with_rate(10_000_000, Duration::from_millis(10), Duration::from_millis(50))
}

#[track_caller]
fn download(client: Stack, server: Stack, link: &LinkConfig, seed: u64) -> Outcome {
    download_with_moves(client, server, link, seed, Vec::new())
}

#[track_caller]
fn download_with_moves(
    client: Stack,
    server: Stack,
    link: &LinkConfig,
    seed: u64,
    moves: Vec<Duration>,
) -> Outcome {
    let (up, down) = (link.clone(), link.clone());
    let download = Download { client, server, up, down, bytes: BYTES, moves, seed };
    run(&download).unwrap_or_else(|failure| panic!("{client:?} from {server:?}, seed {seed}: {failure}"))
}

fn pairs() -> impl Iterator<Item = (Stack, Stack)> {
    Stack::ALL.into_iter().flat_map(|client| Stack::ALL.map(|server| (client, server)))
}

#[test]
fn every_pair_uses_the_link_well() {
    for (client, server) in pairs() {
        let outcome = download(client, server, &plain(), 1);
        assert_eq!(outcome.bytes, BYTES);
        let time = outcome.completion_s;
        assert!((FLOOR_S..2.0 * FLOOR_S).contains(&time), "{client:?} from {server:?}: {time} s");
    }
}

#[test]
fn every_pair_gets_everything_over_a_rough_link() {
    let rough = LinkConfig {
        loss: Loss::Uniform { probability: 0.03 },
        jitter: Jitter::Normal { mean: Duration::from_millis(5), deviation: Duration::from_millis(3) },
        jitter_reorders: true,
        duplicate: 0.01,
        ..plain()
    };
    for (client, server) in pairs() {
        for seed in 1..4 {
            assert_eq!(download(client, server, &rough, seed).bytes, BYTES);
        }
    }
}

#[test]
fn a_run_repeats_itself() {
    let lossy = LinkConfig { loss: Loss::Uniform { probability: 0.02 }, ..plain() };
    for (client, server) in [(Stack::FulmarBbr, Stack::QuinnCubic), (Stack::QuinnBbr, Stack::FulmarCubic)] {
        let outcomes = [1, 1, 2].map(|seed| download(client, server, &lossy, seed));
        assert_eq!(outcomes[0], outcomes[1]);
        assert_ne!(outcomes[0], outcomes[2]);
    }
}

#[test]
fn a_client_that_goes_from_socket_to_socket_within_milliseconds_gets_everything() {
    for client in [Stack::FulmarCubic, Stack::QuinnCubic] {
        for server in [Stack::FulmarCubic, Stack::QuinnCubic] {
            for seed in 1..10 {
                let mut rng = Rng::from_u64(seed);
                let mut at = Duration::from_millis(200);
                let moves = (0..5 * seed).map(|_| {
                    at += Duration::from_micros(rng.below(5_000));
                    at
                });
                let moves = moves.collect();
                let outcome = download_with_moves(client, server, &plain(), seed, moves);
                println!("{client:?} from {server:?}, seed {seed}: {:.2} s", outcome.completion_s);
                assert_eq!(outcome.bytes, BYTES);
                // A few probe timeouts of either stack after the last move, and not the silence of a lost connection.
                assert!(outcome.completion_s < 5.0, "{client:?} from {server:?}, seed {seed}: {outcome:?}");
            }
        }
    }
}
