use std::time::Duration;
use fulmar_base::Instant;
use fulmar_lab::*;
use fulmar_proto::{TransportConfig, TimerStyle, congestion::*};
use fulmar_sim::*;

fn ms(n: u64) -> Duration { Duration::from_millis(n) }
fn at(n: u64) -> Instant { Instant::from_millis(n) }

fn show(name: &str, r: &Result<RunReport, Failure>) {
    match r {
        Ok(r) => for c in &r.connections { println!("{name}: {:?} {} sess\n  C {}\n  S {}", r.duration, r.server_sessions, c.client, c.server); 
           for (n, s) in [("c", &c.client), ("s", &c.server)] { if let Some(s) = &s.stats { println!("   {n}: packets {} dgrams {} lost {} spur {} pto {} bh {} mtu {} cwnd {} rtt {:?} var {:?}", s.packets_sent, s.datagrams_sent, s.packets_lost, s.packets_spurious, s.pto_count, s.black_holes, s.mtu, s.cwnd_max, s.rtt, s.rtt_variance); } } },
        Err(e) => println!("{name}: FAIL {e}"),
    }
}

#[test]
fn mtu() {
    for down in [false, true] { for queue in [20u64, 200, 1000] { for (n, c) in [("cubic", CongestionControl::Cubic(CubicConfig::default())), ("reno", CongestionControl::NewReno(NewRenoConfig::default()))] {
      for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
        let link = LinkConfig { mtu: Some(1500), ..LinkConfig::with_rate(1_000_000, ms(100), ms(queue)) }.then(at(1000), Change::Mtu(Some(1394)));
        let config = TransportConfig { timers, congestion: c.clone(), ..Default::default() };
        let (w, s) = if down { (Workload::requests(1, 0), Workload::replies(1_000_000)) } else { (Workload::upload(1_000_000), Workload::default()) };
        let r = Lab::new(1).link(link.clone(), link).both(config).server_workload(s).connection(Connecting::new(w)).run();
        show(&format!("{n} {queue} {timers} down {down}"), &r);
      } } } }
}
#[test]
fn deep() {
    for (name, delay) in [("1min", 60u64), ("mars", 1200), ("saturn", 4800), ("5s", 5)] {
        let link = LinkConfig::with_rate(10_000_000, Duration::from_secs(delay), ms(10_000));
        let config = TransportConfig { handshake_timeout: Duration::from_secs(delay * 5), max_idle_timeout: Some(Duration::from_secs((delay*5).max(30))), ..Default::default() };
        let r = Lab::new(1).link(link.clone(), link).both(config).server_workload(Workload::replies(2_000)).connection(Connecting::new(Workload::requests(1, 100))).limits(Limits { time: Duration::from_secs(200_000), steps: 1_000_000 }).run();
        show(name, &r);
    }
}
