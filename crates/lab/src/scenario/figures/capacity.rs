//! What links can carry whose rates change.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::Side;
use fulmar_sim::{Change, LinkConfig};

/// What links side by side can carry together over time.
#[derive(Debug)]
pub(crate) struct Capacity {
    /// The times from which on they have other rates, ascending. The first is the beginning.
    courses: Vec<Course>,
}

/// From a change of a rate to the next one.
#[derive(Debug, Clone, Copy)]
struct Course {
    from: Instant,
    /// Bytes until then, and seconds without a bound.
    before: Carried,
    /// All rates together; `None` if one of the links has none.
    bytes_per_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Carried {
    bytes: f64,
    unbound_s: f64,
}

impl Capacity {
    /// That of these links.
    pub(crate) fn of(links: &[&LinkConfig]) -> Self {
        let mut rates: Vec<Option<u64>> = links.iter().map(|link| link.rate_bps).collect();
        let course = |rates: &[Option<u64>], from: Instant, before: Carried| {
            let rate_bps: Option<u64> = rates.iter().copied().sum();
            Course { from, before, bytes_per_s: rate_bps.map(|rate_bps| rate_bps as f64 / 8.0) }
        };
        let mut courses = vec![course(&rates, Instant::ZERO, Carried::default())];
        for (at, link, rate_bps) in rate_changes(links) {
            rates[link] = rate_bps;
            let last = courses[courses.len() - 1];
            if last.from == at {
                courses.pop();
            }
            courses.push(course(&rates, at, last.until(at)));
        }
        Self { courses }
    }

    /// Bytes that they can carry between two times; `None` if one of them has no rate for a part of it.
    pub(crate) fn between(&self, start: Instant, end: Instant) -> Option<f64> {
        let (before, after) = (self.until(start), self.until(end));
        (after.unbound_s <= before.unbound_s).then_some(after.bytes - before.bytes)
    }

    fn until(&self, at: Instant) -> Carried {
        let behind = self.courses.partition_point(|course| course.from <= at);
        self.courses[behind.saturating_sub(1)].until(at)
    }
}

impl Course {
    /// What is carried until a time in this course.
    fn until(&self, at: Instant) -> Carried {
        let seconds = at.saturating_since(self.from).as_secs_f64();
        let Carried { bytes, unbound_s } = self.before;
        match self.bytes_per_s {
            Some(bytes_per_s) => Carried { bytes: bytes + bytes_per_s * seconds, unbound_s },
            None => Carried { bytes, unbound_s: unbound_s + seconds },
        }
    }
}

/// When which of the links gets which rate, by time; of changes at one time, the last one given is the last.
fn rate_changes(links: &[&LinkConfig]) -> Vec<(Instant, usize, Option<u64>)> {
    let changes = links.iter().enumerate().flat_map(|(number, link)| {
        link.schedule.iter().filter_map(move |scheduled| match scheduled.change {
            Change::Rate(rate_bps) => Some((scheduled.at, number, rate_bps)),
            _ => None,
        })
    });
    let mut changes: Vec<_> = changes.collect();
    changes.sort_by_key(|(at, ..)| *at);
    changes
}

/// What the packets of a side go through, one link after another.
#[derive(Debug)]
pub(crate) struct Way {
    /// The capacity of each, and the time from its transmitter to the end of the way.
    links: Vec<(Capacity, Duration)>,
    /// How long a packet takes that never waits.
    pub(crate) delay: Duration,
}

impl Way {
    /// From `sender` through `first`, links side by side at the client, and through the hops behind them, each from the client to the
    /// server and back.
    pub(crate) fn of(sender: Side, first: &[&LinkConfig], hops: &[(LinkConfig, LinkConfig)]) -> Self {
        let mut stages = vec![first.to_vec()];
        stages.extend(hops.iter().map(|(up, down)| vec![if sender.is_client() { up } else { down }]));
        // From the end of the way to its beginning.
        if sender.is_client() {
            stages.reverse();
        }
        let (mut links, mut delay) = (Vec::new(), Duration::ZERO);
        for stage in &stages {
            delay += stage.iter().map(|link| link.delay).max().unwrap_or_default();
            links.push((Capacity::of(stage), delay));
        }
        Self { links, delay }
    }

    /// Bytes that can come out between two times: what the narrowest link carries so much earlier. `None` if no link has a rate.
    pub(crate) fn between(&self, start: Instant, end: Instant) -> Option<f64> {
        let earlier =
            |at: Instant, delay: Duration| Instant::ZERO + at.saturating_since(Instant::ZERO + delay);
        let each = self.links.iter();
        let each =
            each.filter_map(|(link, delay)| link.between(earlier(start, *delay), earlier(end, *delay)));
        each.min_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rate_bps: u64, changes: &[(u64, u64)]) -> LinkConfig {
        let link = LinkConfig { rate_bps: Some(rate_bps), ..LinkConfig::default() };
        changes.iter().fold(link, |link, (at_s, rate_bps)| {
            link.then(Instant::from_millis(at_s * 1_000), Change::Rate(Some(*rate_bps)))
        })
    }

    fn between(links: &[&LinkConfig], start_s: u64, end_s: u64) -> Option<f64> {
        let [start, end] = [start_s, end_s].map(|at_s| Instant::from_millis(at_s * 1_000));
        Capacity::of(links).between(start, end)
    }

    #[test]
    fn each_rate_counts_for_the_time_in_which_it_holds() {
        // In any order; of the two at 0 s the last one holds.
        let changing = link(800, &[(4, 80), (0, 16), (0, 160), (9, 8_000)]);
        assert_eq!(between(&[&changing], 0, 6), Some(4.0 * 20.0 + 2.0 * 10.0));
        assert_eq!(between(&[&changing], 3, 5), Some(20.0 + 10.0));
        assert_eq!(between(&[&changing], 0, 0), Some(0.0));
        assert_eq!(between(&[&changing, &link(80, &[(1, 0)])], 0, 2), Some(2.0 * 20.0 + 10.0));
    }

    #[test]
    fn a_time_without_a_rate_has_no_bound() {
        let free = LinkConfig::default().then(Instant::from_millis(2_000), Change::Rate(Some(80)));
        assert_eq!(between(&[&free], 0, 3), None);
        assert_eq!(between(&[&free], 2, 3), Some(10.0));
    }

    #[test]
    fn the_narrowest_link_bounds_a_way_at_the_time_at_which_it_carries() {
        let delayed =
            |link: LinkConfig, delay_ms| LinkConfig { delay: Duration::from_millis(delay_ms), ..link };
        // From the client 800 bit/s, half of that from 4 s on, and then a hop of 640 bit/s.
        let first = delayed(link(800, &[(4, 400)]), 500);
        let hops = [(delayed(link(640, &[]), 500), LinkConfig::default())];
        let way = Way::of(Side::Client, &[&first], &hops);
        assert_eq!(way.delay, Duration::from_secs(1));
        let between = |start_s: u64, end_s: u64| {
            let [start, end] = [start_s, end_s].map(|at_s| Instant::from_millis(at_s * 1_000));
            way.between(start, end)
        };
        // What comes out has left the first link a second before.
        assert_eq!((between(3, 5), between(5, 7)), (Some(160.0), Some(100.0)));
        assert_eq!(
            Way::of(Side::Server, &[&LinkConfig::default()], &hops)
                .between(Instant::ZERO, Instant::from_millis(1)),
            None
        );
    }
}
