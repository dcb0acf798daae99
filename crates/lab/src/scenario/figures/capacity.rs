//! What links can carry whose rates change.

use fulmar_base::Instant;
use fulmar_sim::{Change, LinkConfig};

/// Bytes that these links together can carry between two times; `None` if one of them has no rate for a part of it.
pub(super) fn capacity(links: &[&LinkConfig], start: Instant, end: Instant) -> Option<f64> {
    let mut rates: Vec<Option<u64>> = links.iter().map(|link| link.rate_bps).collect();
    let (mut since, mut bytes) = (start, 0.0);
    for (at, link, rate_bps) in rate_changes(links) {
        if at >= end {
            break;
        }
        if at > since {
            bytes += carried(&rates, since, at)?;
            since = at;
        }
        rates[link] = rate_bps;
    }
    Some(bytes + carried(&rates, since, end)?)
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

fn carried(rates: &[Option<u64>], from: Instant, to: Instant) -> Option<f64> {
    let rate_bps: u64 = rates.iter().copied().sum::<Option<u64>>()?;
    Some(rate_bps as f64 / 8.0 * to.saturating_since(from).as_secs_f64())
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
        capacity(links, Instant::from_millis(start_s * 1_000), Instant::from_millis(end_s * 1_000))
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
}
