//! Paths of different width: where what was lost is sent again.

mod pair;

use std::time::Duration;

use fulmar_proto::{FourTuple, Instant, PathId, Side};
use pair::{Flying, Pair, Setup, Wire, multipath_config};

/// A way from one end to the other.
#[derive(Debug, Clone, Copy)]
struct Link {
    bytes_per_s: u64,
    delay: Duration,
    queue_bytes: u64,
    /// From when on everything is lost.
    dies_at: Option<Instant>,
}

impl Link {
    fn new(mbps: u64, delay_ms: u64, queue_bytes: u64) -> Self {
        let delay = Duration::from_millis(delay_ms);
        Self { bytes_per_s: mbps * 125_000, delay, queue_bytes, dies_at: None }
    }

    /// When a datagram is at the other end, behind what entered before until `free_at`.
    fn carry(&self, flying: &Flying, free_at: &mut Instant) -> Option<Instant> {
        if self.dies_at.is_some_and(|at| at <= flying.at) {
            return None;
        }
        let time = |bytes: u64| Duration::from_micros(bytes * 1_000_000 / self.bytes_per_s);
        if free_at.saturating_since(flying.at) > time(self.queue_bytes) {
            return None;
        }
        *free_at = flying.at.max(*free_at) + time(flying.payload.len() as u64);
        Some(*free_at + self.delay)
    }
}

/// A client with as many paths as there are links.
fn with_links(links: &[Link]) -> Pair {
    let mut pair =
        Setup { client: multipath_config(), server: multipath_config(), ..Setup::default() }.connect();
    let remote = pair.server.addr;
    pair.client.more_addrs =
        (1..links.len()).map(|index| format!("10.0.{index}.1:1000").parse().unwrap()).collect();
    let mut addrs = vec![pair.client.addr];
    addrs.extend(&pair.client.more_addrs);
    let (links, mut free_at) = (links.to_vec(), vec![pair.now; links.len()]);
    let out: Wire = Box::new(move |it| {
        let index = addrs.iter().position(|addr| *addr == it.from).unwrap();
        let at = links[index].carry(&it, &mut free_at[index]);
        at.map(|at| Flying { at, ..it }).into_iter().collect()
    });
    pair.client.wire = out;
    for (index, addr) in pair.client.more_addrs.clone().into_iter().enumerate() {
        let now = pair.now;
        let opened = pair.client.conn().open_path(now, FourTuple::new(remote, Some(addr.ip())));
        assert_eq!(opened, Ok(PathId(index as u32 + 1)));
        pair.run_for(Duration::from_millis(300));
    }
    pair
}

#[test]
fn what_was_lost_waits_like_what_was_never_sent_and_takes_all_paths() {
    let wide = Link { dies_at: Some(Instant::from_millis(1_500)), ..Link::new(100, 75, 2_000_000) };
    let mut pair = with_links(&[wide, Link::new(2, 10, 7_500), Link::new(50, 55, 750_000)]);
    let start = pair.now;
    pair.transfer(Side::Client, 9_000_000, Duration::from_secs(20));
    let took = pair.now - start;
    // The quickest path alone takes seven seconds for what has died with the wide one.
    assert!(took < Duration::from_millis(2_500), "{took:?}");
}
