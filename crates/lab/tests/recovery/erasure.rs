//! Forward erasure correction in whole endpoints.

use std::time::Duration;

use fulmar_lab::{Close, Connecting, Lab, Workload};
use fulmar_proto::congestion::{CongestionControl, CubicConfig};
use fulmar_proto::{FecCode, FecConfig, FecDialects, FecMode, FecStats, Protection, TransportConfig};
use fulmar_sim::{LinkConfig, Loss};

use crate::run::{Download, Finished, at, download_of, ms};

/// Downloads of several sizes over a long path that loses some packets.
fn downloads(fec: Option<FecConfig>, size: u64, count: u64) -> Vec<Finished> {
    let link = LinkConfig {
        loss: Loss::Uniform { probability: 0.05 },
        ..LinkConfig::with_rate(20_000_000, ms(100), ms(300))
    };
    let config = TransportConfig { fec, ..TransportConfig::default() };
    let run = |step: u64| {
        let bytes = size + step % 40 * 1_000;
        download_of(1 + step, link.clone(), config.clone(), bytes).finish(Duration::from_secs(60))
    };
    (0..count).map(run).collect()
}

fn mode(mode: FecMode, code: FecCode) -> Option<FecConfig> {
    Some(FecConfig { mode, code, ..FecConfig::default() })
}

fn seconds(runs: &[Finished]) -> f64 {
    runs.iter().map(|run| run.time.as_secs_f64()).sum()
}

/// The figures of the servers, summed up.
fn servers(runs: &[Finished], of: fn(&FecStats) -> u64) -> u64 {
    runs.iter().filter_map(|run| run.server.fec).map(|fec| of(&fec)).sum()
}

#[test]
fn repairs_at_the_tail_replace_lost_packets_of_short_transfers() {
    let without = downloads(None, 10_000, 120);
    assert!(without.iter().all(|run| run.server.fec.is_none()), "off unless it is asked for");
    for code in [FecCode::Xor, FecCode::ReedSolomon, FecCode::Rlc] {
        let with = downloads(mode(FecMode::Tail, code), 10_000, 120);
        // The run ends before the report of the last one has come back.
        let recovered: u64 = with.iter().filter_map(|run| run.client.fec).map(|fec| fec.recovered).sum();
        println!("{code:?}: {} s instead of {} s, {recovered} recovered", seconds(&with), seconds(&without));
        assert!(recovered > 30, "{code:?}: {recovered}");
        assert!(seconds(&with) < 0.95 * seconds(&without), "{code:?}");
        assert_eq!(servers(&with, |fec| u64::from(fec.decoder_off)), 0);
    }
}

/// Times of downloads of so many bytes, sorted: 50 runs over a link that loses packets on the way down only.
fn times_over(link: &LinkConfig, probability: f64, bytes: u64, fec: Option<FecConfig>) -> Vec<Duration> {
    let config = TransportConfig { fec, ..TransportConfig::default() };
    let run = |seed| {
        let down = LinkConfig { loss: Loss::Uniform { probability }, ..link.clone() };
        let connecting = Connecting::new(Workload::requests(1, 100)).close(Close::Never);
        let lab = Lab::new(seed).link(link.clone(), down).both(config.clone());
        let lab = lab.server_workload(Workload::replies(bytes)).connection(connecting);
        let simulation = lab.start().expect("the configuration is valid");
        Download { simulation, bytes }.finish(Duration::from_secs(60)).time
    };
    let mut times: Vec<Duration> = (1..=50).map(run).collect();
    times.sort_unstable();
    times
}

#[test]
fn no_packet_of_a_file_that_fits_the_path_takes_a_round_trip_more() {
    // A packet train shows after the first flight that the rest fits as well.
    let link = LinkConfig::with_rate(50_000_000, ms(50), ms(100));
    let without = times_over(&link, 0.01, 50_000, None);
    let with = times_over(&link, 0.01, 50_000, mode(FecMode::Tail, FecCode::ReedSolomon));
    println!("{:?} without, {:?} with", &without[25..], &with[25..]);
    assert!(without[40] > ms(400), "a fifth of them loses a packet");
    assert!(with[46] < ms(320));
}

#[test]
fn a_window_of_all_symbols_that_are_kept_gets_repairs_that_say_something_new() {
    // Twelve of 290 packets are lost, and there are four and three repairs for the last 256 of them, and more when losses are known.
    let link = LinkConfig::with_rate(73_000_000, ms(40), ms(90));
    let without = times_over(&link, 0.04, 332_500, None);
    let with = times_over(&link, 0.04, 332_500, mode(FecMode::Tail, FecCode::ReedSolomon));
    println!("{without:?} without, {with:?} with");
    assert!(with[25] < without[25] && with[40] < without[40]);
}

#[test]
fn a_file_that_fills_the_first_window_has_a_repair_in_it() {
    // Ten kilobytes are nine packets, of ten. A probe for larger datagrams would take the room of the tenth.
    let link = LinkConfig::with_rate(50_000_000, ms(50), ms(100));
    let without = times_over(&link, 0.01, 10_000, None);
    let with = times_over(&link, 0.01, 10_000, mode(FecMode::Tail, FecCode::ReedSolomon));
    println!("{:?} without, {:?} with", &without[40..], &with[40..]);
    assert!(without[46] > ms(300));
    assert!(with[46] < ms(210));
}

/// How long a download of so many bytes takes over a link that loses nothing but what its queue does, with CUBIC.
fn time_over(link: LinkConfig, bytes: u64, fec: Option<FecConfig>) -> Duration {
    let congestion = CongestionControl::Cubic(CubicConfig::default());
    let config = TransportConfig { congestion, fec, ..TransportConfig::default() };
    download_of(1, link, config, bytes).finish(Duration::from_secs(60)).time
}

#[test]
fn what_a_queue_drops_at_the_end_of_slow_start_takes_no_longer_with_erasure_correction() {
    // Twenty packets and more are lost, the first of them half a round trip before the last ones.
    for bytes in [240_000, 255_000, 270_000] {
        let link = LinkConfig::with_rate(1_753_000, ms(209), ms(190));
        let without = time_over(link.clone(), bytes, None);
        let with = time_over(link, bytes, mode(FecMode::Tail, FecCode::ReedSolomon));
        assert!(with < without.mul_f64(1.01), "{bytes} bytes: {with:?} with, {without:?} without");
    }
}

#[test]
fn the_end_of_a_file_leaves_where_it_fits_the_rest_of_the_window_though_no_full_packet_does() {
    // Twelve full packets, and one of half the size.
    let link = || LinkConfig::with_rate(58_000_000, ms(72), ms(144));
    let one_round_trip = time_over(link(), 14_600, None) + ms(20);
    let time = time_over(link(), 15_200, None);
    assert!(time < one_round_trip, "{time:?}");
    // Packets with source symbols are shorter, and leave as much of the window as they are.
    let time = time_over(link(), 15_000, mode(FecMode::Tail, FecCode::ReedSolomon));
    assert!(time < one_round_trip, "{time:?} with erasure correction");
}

#[test]
fn what_the_peer_reports_beside_the_acknowledgement_that_gave_it_up_is_not_sent_again() {
    // The second of two repair symbols is acknowledged in the packet that reports what it has recovered, in front of the report.
    let link = LinkConfig {
        loss: Loss::Uniform { probability: 0.03 },
        ..LinkConfig::with_rate(10_000_000, ms(100), ms(200))
    };
    let fec = mode(FecMode::Tail, FecCode::ReedSolomon);
    let config = TransportConfig { fec, ..TransportConfig::default() };
    let run = |seed| {
        let mut download = download_of(seed, link.clone(), config.clone(), 200_000);
        // The last report comes after the last byte.
        download.run_until(at(5_000));
        download.server().fec.expect("both ends have it")
    };
    let runs: Vec<FecStats> = (1..=100).map(run).collect();
    let sum = |of: fn(&FecStats) -> u64| runs.iter().map(of).sum::<u64>();
    let recovered = sum(|fec| fec.symbols_recovered);
    let again = recovered - sum(|fec| fec.retransmissions_spared);
    assert!(recovered > 200 && again * 100 < recovered, "{again} of {recovered} were sent again");
}

#[test]
fn recovered_packets_are_lost_for_congestion_control_and_are_not_sent_again() {
    let constant = FecMode::Constant { source: 20, repair: 10 };
    let with = downloads(mode(constant, FecCode::ReedSolomon), 5_000_000, 5);
    let (lost, recovered) =
        (servers(&with, |fec| fec.symbols_lost), servers(&with, |fec| fec.symbols_recovered));
    let spared = servers(&with, |fec| fec.retransmissions_spared);
    println!("{lost} lost, {recovered} recovered, {spared} not sent again");
    assert!(recovered > lost * 3 / 4 && spared > recovered * 3 / 4, "reports are lost, too");
    let packets_lost: u64 = with.iter().map(|run| run.server.packets_lost).sum();
    assert!(packets_lost >= recovered, "{packets_lost} of them were seen");
}

#[test]
fn an_end_that_protects_nothing_itself_recovers_what_its_peer_protects() {
    let without = downloads(mode(FecMode::None, FecCode::ReedSolomon), 10_000, 40);
    assert_eq!(servers(&without, |fec| fec.repairs_sent + fec.symbols_sent), 0);
}

#[test]
fn ends_that_speak_dialect_m_recover_losses_with_both_of_its_codes() {
    for (code, source, repair) in [(FecCode::Xor, 2, 1), (FecCode::ReedSolomon, 20, 10)] {
        let fec = FecConfig { code, dialects: FecDialects::M, ..FecConfig::default() };
        let with = downloads(Some(fec), 1_000_000, 5);
        let recovered: u64 = with.iter().filter_map(|run| run.client.fec).map(|fec| fec.recovered).sum();
        let lost = servers(&with, |fec| fec.symbols_lost);
        println!("{code:?}: {lost} lost, {recovered} recovered");
        assert!(recovered > lost / 2, "{code:?}: {recovered} of {lost}");
        assert_eq!(servers(&with, |fec| u64::from(fec.decoder_off)), 0);
        for run in &with {
            let fec = run.server.fec.unwrap();
            // A block that is not full has no repair symbols, and those of the last one may not have left.
            let blocks = fec.symbols_sent / source;
            assert!(
                fec.repairs_sent <= blocks * repair && fec.repairs_sent > (blocks - 2) * repair,
                "{fec:?}"
            );
            assert_eq!(fec.symbols_recovered, 0, "nobody tells what was recovered");
            assert_eq!(run.client.fec.unwrap().repairs_dropped, 0);
        }
    }
}

#[test]
fn ends_that_speak_both_dialects_use_their_own() {
    let mode = FecMode::Constant { source: 20, repair: 10 };
    let fec = FecConfig { mode, dialects: FecDialects::Both, ..FecConfig::default() };
    let with = downloads(Some(fec), 1_000_000, 5);
    assert!(servers(&with, |fec| fec.symbols_recovered) > 0, "in dialect M nobody tells");
}

/// A server answers two requests at the same time, with answers whose protection is this.
fn two_answers(protection: [Protection; 2]) -> FecStats {
    let link = LinkConfig {
        loss: Loss::Uniform { probability: 0.05 },
        ..LinkConfig::with_rate(20_000_000, ms(100), ms(300))
    };
    let config = TransportConfig { fec: Some(FecConfig::default()), ..TransportConfig::default() };
    let answers = Workload { protection: protection.into(), ..Workload::replies(200_000) };
    let connecting = Connecting::new(Workload::requests(2, 100)).close(Close::Never);
    let lab = Lab::new(1).link(link.clone(), link).both(config).server_workload(answers);
    let mut simulation = lab.connection(connecting).start().expect("the configuration is valid");
    simulation.run_for(Duration::from_secs(20)).expect("nothing goes wrong");
    simulation.server().sessions()[0].connection().stats().fec.expect("both ends have it")
}

#[test]
fn a_stream_without_protection_gets_no_repairs_beside_one_that_has_it() {
    use Protection::{None, Tail};
    let of = |protection| {
        let stats = two_answers(protection);
        println!("{protection:?}: {stats:?}");
        (stats.symbols_sent, stats.repairs_sent)
    };
    let (both, one, none) = (of([Tail, Tail]), of([None, Tail]), of([None, None]));
    // Half of the bytes are those of the stream that has it. Limits of flow control leave in packets of their own, with the protection
    // of the connection.
    assert!(both.0 > 280 && one.0 > both.0 / 3 && one.0 < both.0 * 2 / 3, "{both:?} {one:?}");
    assert!(none.0 < 10 && none.1 < 10, "{none:?}");
    assert!(both.1 > 3 && one.1 > 3, "{both:?} {one:?}");
}
