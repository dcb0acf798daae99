//! What is sent again after a loss, and may be lost once more.

use std::time::Duration;

use fulmar_proto::TransportConfig;
use fulmar_sim::{LinkConfig, Loss};

use crate::run::{Finished, download_of, ms};

/// Enough that chance decides little.
const DOWNLOADS: u32 = 60;

/// Downloads of several sizes over a path that loses packets by chance.
fn downloads(delay: Duration, preemptive_repeat: bool) -> Vec<Finished> {
    let link = LinkConfig {
        loss: Loss::Uniform { probability: 0.1 },
        ..LinkConfig::with_rate(20_000_000, delay, ms(300))
    };
    let config = TransportConfig { preemptive_repeat, ..TransportConfig::default() };
    let run = |step| {
        let (seed, bytes) = (u64::from(step), 200_000 + u64::from(step) * 5_000);
        download_of(seed, link.clone(), config.clone(), bytes).finish(Duration::from_secs(60))
    };
    (0..DOWNLOADS).map(run).collect()
}

fn seconds(runs: &[Finished]) -> f64 {
    runs.iter().map(|run| run.time.as_secs_f64()).sum()
}

fn retransmitted(runs: &[Finished]) -> u64 {
    runs.iter().map(|run| run.server.streams.bytes_retransmitted).sum()
}

#[test]
fn on_a_long_path_a_second_copy_saves_the_last_round_trips() {
    let (once, twice) = (downloads(ms(300), false), downloads(ms(300), true));
    let saved = seconds(&once) - seconds(&twice);
    assert!(
        saved > f64::from(DOWNLOADS) * 0.3,
        "half a round trip for each download: {saved} s of {}",
        seconds(&once)
    );
}

#[test]
fn on_a_long_path_that_loses_much_a_copy_has_up_to_two_copies() {
    let (once, several) =
        (retransmitted(&downloads(ms(300), false)), retransmitted(&downloads(ms(300), true)));
    // What nothing else waits behind, the most of these files, leaves three or four times instead of once.
    assert!(several > once * 5 / 2 && several < once * 9 / 2, "{once} and {several} bytes");
}

#[test]
fn on_a_short_path_copies_have_no_copies() {
    let (once, twice) = (retransmitted(&downloads(ms(2), false)), retransmitted(&downloads(ms(2), true)));
    assert!(twice < once * 5 / 2, "{once} and {twice} bytes");
}

#[test]
fn on_a_short_path_a_second_copy_saves_time_as_well() {
    let (once, twice) = (downloads(ms(30), false), downloads(ms(30), true));
    let saved = seconds(&once) - seconds(&twice);
    assert!(
        saved > f64::from(DOWNLOADS) * 0.015,
        "a quarter of a round trip for each download: {saved} s of {}",
        seconds(&once)
    );
}
