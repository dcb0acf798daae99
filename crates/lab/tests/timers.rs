use fulmar_base::Instant;
use fulmar_lab::*;
use fulmar_proto::{TimerStyle, TransportConfig, congestion::*};
use fulmar_sim::*;
use std::time::Duration;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn at(n: u64) -> Instant {
    Instant::from_millis(n)
}

fn trace(name: &str, lab: Lab, limit: Duration, step: Duration, verbose: bool) {
    let mut sim = lab.start().unwrap();
    let mut last = (0, 0, 0, 0);
    loop {
        let r = sim.run_for(step);
        if let Err(e) = r {
            println!("{name}: FAIL {e}");
            return;
        }
        let c = sim.client().sessions()[0].connection().stats();
        let s = sim.server().sessions().first().map(|s| s.connection().stats());
        let cur = (
            c.pto_count,
            c.packets_lost,
            s.as_ref().map_or(0, |s| s.pto_count),
            s.as_ref().map_or(0, |s| s.packets_lost),
        );
        if verbose && cur != last {
            println!(
                "  {:?} c pto {} lost {} sent {} cwnd {} | s pto {} lost {} sent {} cwnd {} mtu {} rtt {:?} var {:?}",
                sim.now(),
                cur.0,
                cur.1,
                c.packets_sent,
                c.cwnd,
                cur.2,
                cur.3,
                s.as_ref().map_or(0, |s| s.packets_sent),
                s.as_ref().map_or(0, |s| s.cwnd),
                s.as_ref().map_or(0, |s| s.mtu),
                s.as_ref().map(|s| s.rtt),
                s.as_ref().map(|s| s.rtt_variance)
            );
            last = cur;
        }
        let done = sim.client().sessions()[0].is_settled()
            && sim.server().sessions().first().is_some_and(|s| s.is_settled());
        if done || sim.now() > Instant::ZERO + limit {
            println!(
                "{name}: done {done} {:?} client sent {} lost {} spur {} pto {}; server sent {} lost {} spur {} pto {} bh {} cidch {}",
                sim.now(),
                c.packets_sent,
                c.packets_lost,
                c.packets_spurious,
                c.pto_count,
                s.as_ref().map_or(0, |s| s.packets_sent),
                cur.3,
                s.as_ref().map_or(0, |s| s.packets_spurious),
                cur.2,
                s.as_ref().map_or(0, |s| s.black_holes),
                c.cid_changes
            );
            return;
        }
    }
}

#[test]
fn mtu() {
    for (n, c) in [
        ("bbr", CongestionControl::Bbr(BbrConfig::default())),
        ("cubic", CongestionControl::Cubic(CubicConfig::default())),
        ("reno", CongestionControl::NewReno(NewRenoConfig::default())),
    ] {
        for timers in [TimerStyle::OncePerRtt, TimerStyle::Classic] {
            let link = LinkConfig { mtu: Some(1500), ..LinkConfig::with_rate(1_000_000, ms(100), ms(200)) }
                .then(at(1000), Change::Mtu(Some(1394)));
            let config = TransportConfig { timers, congestion: c.clone(), ..Default::default() };
            let (w, s) = (Workload::requests(1, 0), Workload::replies(1_000_000));
            let lab = Lab::new(1)
                .link(link.clone(), link)
                .both(config)
                .server_workload(s)
                .connection(Connecting::new(w).close(Close::Never));
            trace(&format!("{n} {timers}"), lab, ms(30_000), ms(10), timers == TimerStyle::OncePerRtt);
        }
    }
}
#[test]
fn deep() {
    for guess in [false, true] {
        for (name, delay) in [("1min", 60u64), ("mars", 1200), ("saturn", 4800), ("5s", 5)] {
            let link = LinkConfig::with_rate(10_000_000, Duration::from_secs(delay), ms(10_000));
            let config = TransportConfig {
                handshake_timeout: Duration::from_secs(delay * 5),
                max_idle_timeout: Some(Duration::from_secs((delay * 5).max(30))),
                initial_rtt: if guess { Duration::from_secs(delay * 2) } else { ms(100) },
                ..Default::default()
            };
            let lab = Lab::new(1)
                .link(link.clone(), link)
                .both(config)
                .server_workload(Workload::replies(2_000))
                .connection(Connecting::new(Workload::requests(1, 100)).close(Close::Never));
            trace(name, lab, Duration::from_secs(delay * 10), ms(100), name == "5s");
        }
    }
}
