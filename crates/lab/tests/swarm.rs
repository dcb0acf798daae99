//! Random scenarios: see `fulmar_lab::swarm`. A failure names its seed, and `cargo xtask swarm --seed N` repeats
//! it.

use fulmar_lab::swarm;

/// Seeds in the test command; `cargo xtask swarm` runs as many as one likes.
const SEEDS: u64 = 200;
/// Of those, how many are run twice to compare the traces.
const REPEATED: u64 = 40;

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
fn different_seeds_are_different_runs() {
    let traces = [1, 2].map(|seed| swarm::run(seed).expect("the seed works").trace);
    assert_ne!(traces[0], traces[1]);
}
