//! Random scenarios: see `fulmar_lab::swarm`. A failure names its seed, and `cargo xtask swarm --seed N` repeats
//! it.

use fulmar_lab::swarm::{self, Worlds};

/// Seeds in the test command; `cargo xtask swarm` runs as many as one likes.
const SEEDS: u64 = 200;
/// Of those, how many are run twice to compare the traces.
const REPEATED: u64 = 40;

/// Seeds with several paths.
const SEEDS_WITH_PATHS: u64 = 60;

#[test]
fn every_seed_does_its_work_and_the_same_work_twice() {
    let failures: Vec<String> = (0..SEEDS)
        .filter_map(|seed| {
            let result = if seed < REPEATED { swarm::run_twice(seed) } else { swarm::run(seed) };
            result.err().map(|failure| failure.to_string())
        })
        .collect();
    assert!(failures.is_empty(), "{} of {SEEDS} seeds failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_seed_with_paths_that_come_and_go_does_its_work_and_the_same_work_twice() {
    let run = |seed: u64| Worlds::Paths.run_twice(seed).map_err(|failure| failure.to_string());
    let (reports, failures): (Vec<_>, Vec<_>) = (0..SEEDS_WITH_PATHS).map(run).partition(Result::is_ok);
    let failures: Vec<String> = failures.into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{} seeds failed:\n{}", failures.len(), failures.join("\n"));
    let counts: std::collections::BTreeSet<usize> =
        reports.into_iter().flatten().map(|report| report.paths.len()).collect();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn some_seeds_recover_lost_packets_by_erasure_correction() {
    let recovered = |seed: u64| {
        let report = swarm::run(seed).expect("the seed works");
        let sides = report.connections.iter().flat_map(|connection| [&connection.client, &connection.server]);
        sides.filter_map(|side| side.stats.as_ref()?.fec).map(|fec| fec.recovered).sum::<u64>()
    };
    let recovered: Vec<u64> = (0..REPEATED).map(recovered).collect();
    assert!(recovered.iter().filter(|count| **count > 0).count() > 3, "{recovered:?}");
}

#[test]
fn different_seeds_are_different_runs() {
    let traces = [1, 2].map(|seed| swarm::run(seed).expect("the seed works").trace);
    assert_ne!(traces[0], traces[1]);
}
