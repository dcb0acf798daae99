use std::time::Duration;
use fulmar_base::Instant;
use fulmar_lab::*;
use fulmar_proto::{TransportConfig, TimerStyle, congestion::*};
use fulmar_sim::*;

fn ms(n: u64) -> Duration { Duration::from_millis(n) }
fn at(n: u64) -> Instant { Instant::from_millis(n) }

fn trace(name: &str, lab: Lab, limit: Duration, step: Duration, verbose: bool) {
    let mut sim = lab.start().unwrap();
    let mut last = (0, 0, 0, 0);
    loop {
        let r = sim.run_for(step);
        if let Err(e) = r { println!("{name}: FAIL {e}"); return; }
        let c = sim.client().sessions()[0].connection().stats();
        let s = sim.server().sessions().first().map(|s| s.connection().stats());
        let cur = (c.pto_count, c.packets_lost, s.as_ref().map_or(0, |s| s.pto_count), s.as_ref().map_or(0, |s| s.packets_lost));
        if verbose && cur != last { println!("  {:?} c pto {} lost {} sent {} cwnd {} | s pto {} lost {} sent {} cwnd {} mtu {} rtt {:?} var {:?}", sim.now(), cur.0, cur.1, c.packets_sent, c.cwnd, cur.2, cur.3, s.as_ref().map_or(0, |s| s.packets_sent),s.as_ref().map_or(0, |s| s.cwnd), s.as_ref().map_or(0, |s| s.mtu), s.as_ref().map(|s| s.rtt), s.as_ref().map(|s| s.rtt_variance)); last = cur; }
        let done = sim.client().sessions()[0].is_settled() && sim.server().sessions().first().is_some_and(|s| s.is_settled());
        if done || sim.now() > Instant::ZERO + limit {
            println!("{name}: done {done} {:?} client sent {} lost {} spur {} pto {}; server sent {} lost {} spur {} pto {} bh {} cidch {}", sim.now(), c.packets_sent, c.packets_lost, c.packets_spurious, c.pto_count, s.as_ref().map_or(0, |s| s.packets_sent), cur.3, s.as_ref().map_or(0, |s| s.packets_spurious), cur.2, s.as_ref().map_or(0, |s| s.black_holes), c.cid_changes);
            return;
        }
    }
}

#[test]
fn mtu() {
    for (n, c) in [("bbr", CongestionControl::Bbr(BbrConfig::default())), ("cubic", CongestionControl::Cubic(CubicConfig::default())), ("reno", CongestionControl::NewReno(NewRenoConfig::default()))] {
      for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let link = LinkConfig { mtu: Some(1500), ..LinkConfig::with_rate(1_000_000, ms(100), ms(200)) }.then(at(1000), Change::Mtu(Some(1394)));
        let config = TransportConfig { timers, congestion: c.clone(), ..Default::default() };
        let (w, s) = (Workload::requests(1, 0), Workload::replies(1_000_000));
        let lab = Lab::new(1).link(link.clone(), link).both(config).server_workload(s).connection(Connecting::new(w).close(Close::Never));
        trace(&format!("{n} {timers}"), lab, ms(30_000), ms(10), timers == TimerStyle::OncePerRtt);
      } }
}
#[test]
fn deep() {
    for guess in [false, true] {
    for (name, delay) in [("1min", 60u64), ("mars", 1200), ("saturn", 4800), ("5s", 5)] {
        let link = LinkConfig::with_rate(10_000_000, Duration::from_secs(delay), ms(10_000));
        let config = TransportConfig { handshake_timeout: Duration::from_secs(delay * 5), max_idle_timeout: Some(Duration::from_secs((delay*5).max(30))), initial_rtt: if guess { Duration::from_secs(delay * 2) } else { ms(100) }, ..Default::default() };
        let lab = Lab::new(1).link(link.clone(), link).both(config).server_workload(Workload::replies(2_000)).connection(Connecting::new(Workload::requests(1, 100)).close(Close::Never));
        trace(name, lab, Duration::from_secs(delay * 10), ms(100), name == "5s");
    } }
}

/// A radio that stops at `start` for `length`: what was sent meanwhile arrives together at the end.
fn with_stop(mut link: LinkConfig, start: u64, length: u64) -> LinkConfig {
    let delay = link.delay;
    for i in 0..length { link = link.then(at(start + i), Change::Delay(delay + ms(length - i))); }
    link.then(at(start + length), Change::Delay(delay))
}
fn controllers() -> [(&'static str, CongestionControl); 3] {
 [("bbr", CongestionControl::Bbr(BbrConfig::default())), ("cubic", CongestionControl::Cubic(CubicConfig::default())), ("reno", CongestionControl::NewReno(NewRenoConfig::default()))]
}
#[test]
fn wifi() {
    for stop in [false, true] {
    for (n, c) in controllers() { for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let link = LinkConfig::with_rate(10_000_000, ms(3), ms(260));
        let link = if stop { with_stop(link, 1000, 250) } else { link };
        let config = TransportConfig { timers, congestion: c.clone(), ..Default::default() };
        let lab = Lab::new(1).link(link.clone(), link).both(config).server_workload(Workload::replies(3_000_000)).connection(Connecting::new(Workload::requests(1, 0)).close(Close::Never));
        trace(&format!("wifi {stop} {n} {timers}"), lab, ms(30_000), ms(5), false);
    } } }
}
#[test]
fn outage() {
    for (n, c) in controllers() { for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let link = LinkConfig::with_rate(10_000_000, ms(50), ms(100)).then(at(2_000), Change::Loss(Loss::Everything)).then(at(12_000), Change::Loss(Loss::None));
        let config = TransportConfig { timers, congestion: c.clone(), ..Default::default() };
        let lab = Lab::new(1).link(link.clone(), link).both(config).server_workload(Workload::replies(5_000_000)).connection(Connecting::new(Workload::requests(1, 0)).close(Close::Never));
        trace(&format!("outage {n} {timers}"), lab, ms(60_000), ms(5), timers == TimerStyle::OncePerRtt && n == "cubic");
    } }
}
#[test]
fn reorder() {
    for (n, c) in controllers() { for timers in [TimerStyle::OncePerRtt] { for probability in [0.0, 0.05] { for seed in 0..4 {
        let link = LinkConfig { reorder: Reorder::ByDepth { probability, depth_max: 20, hold_max: ms(20) }, ..LinkConfig::with_rate(50_000_000, ms(20), ms(50)) };
        let config = TransportConfig { timers, congestion: c.clone(), ..Default::default() };
        let lab = Lab::new(seed).link(link.clone(), link).both(config).server_workload(Workload::replies(10_000_000)).connection(Connecting::new(Workload::requests(1, 0)).close(Close::Never));
        trace(&format!("reorder {probability} {n} {timers}"), lab, ms(60_000), ms(5), false);
    } } } }
}
#[test]
fn l1() {
    let mut bad = 0;
    for (kind, loss) in [("burst", Loss::Burst { probability: 0.1765, length: 1..=3 }), ("capped", Loss::Capped { probability: 0.318, run_max: 3 })] {
    for initial in [50, 100, 333] {
    let (mut hs, mut count, mut packets) = (Duration::ZERO, 0u32, 0);
    for seed in 0..40 {
        let link = LinkConfig { loss: loss.clone(), ..LinkConfig::with_rate(10_000_000, ms(15), ms(50)) };
        let config = TransportConfig { initial_rtt: ms(initial), ..Default::default() };
        let mut lab = Lab::new(seed).link(link.clone(), link).both(config).server_workload(Workload::replies(1_000));
        for i in 0..50 { lab = lab.connection(Connecting::new(Workload::requests(1, 100)).start(Duration::from_secs(70 * i))); }
        match lab.run() {
            Ok(r) => { if r.server_sessions != 50 || r.connections.iter().any(|c| c.client.bytes_read != 1_000) { bad += 1; println!("seed {seed}: {} sessions", r.server_sessions); }
                for c in &r.connections { let s = c.client.stats.as_ref().unwrap(); hs += s.handshake_duration.unwrap_or(Duration::from_secs(30)); count += 1; packets += s.packets_sent + c.server.stats.as_ref().map_or(0, |s| s.packets_sent); } }
            Err(e) => { bad += 1; println!("seed {seed}: {e}"); }
        }
    }
    println!("l1 {kind} initial {initial}: bad {bad} mean handshake {:?}, packets per connection {}", hs / count.max(1), packets as f64 / f64::from(count));
    } }
}
