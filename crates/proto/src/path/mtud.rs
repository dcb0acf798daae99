//! The search for the largest datagram that a tuple carries (RFC 8899, RFC 9000 §14.3).

mod arrivals;

use std::time::Duration;

use fulmar_base::Instant;

use self::arrivals::Arrivals;
use crate::packed::packed;

/// The search ends when less than this is left to gain.
const GAIN_MIN: u16 = 20;
/// The largest size is given up after this many probes of it were lost: most paths carry it.
const PROBES_OF_LIMIT: u8 = 3;
/// A size between is given up sooner: there is little to gain, and each probe costs a full datagram.
const PROBES_PER_SIZE: u8 = 2;
/// After a search, another one starts after this long.
const SEARCH_INTERVAL: Duration = Duration::from_secs(600);
/// So many losses of large packets, with none as large acknowledged since, are taken for a black hole.
const BLACK_HOLE_LOSSES: usize = 6;

/// A probe lets so many datagrams with data go first; then data waits for it, or a connection that is always busy
/// would never send one.
const PATIENCE: u32 = 10;

/// The datagram size of a tuple: a binary search between a size that works and one that does not.
#[derive(Debug)]
pub(crate) struct MtuDiscovery {
    /// The size in use.
    current: u16,
    /// The size that every path must carry.
    base: u16,
    /// The largest size that both ends allow.
    limit: u16,
    enabled: bool,
    /// The largest size that may still be possible.
    upper: u16,
    /// A size that is being probed and how many probes of it were lost.
    probing: Option<(u16, u8)>,
    in_flight: bool,
    /// Datagrams that went before the probe that is due.
    passed_over: u32,
    next_search: Option<Instant>,
    /// Whether a probe would be of use: since the last one, a full datagram left, or the application sends
    /// datagrams of its own. An end that only receives leaves its way back to the acknowledgements.
    wanted: bool,
    /// The sizes of the large packets that were lost with none as large acknowledged since; 0 where there is no such one.
    unexplained: [u16; BLACK_HOLE_LOSSES - 1],
    /// When the newest of the small packets that were lost was sent.
    newest_small_lost: Option<Instant>,
    /// The large packets that arrived.
    arrivals: Arrivals,
    /// When the size in use fell back last, and to which one.
    fell: Option<Instant>,
    fell_to: u16,
}

packed!(MtuDiscovery {
    current,
    base,
    limit,
    enabled,
    upper,
    probing,
    in_flight,
    passed_over,
    next_search,
    wanted,
    unexplained,
    newest_small_lost,
    arrivals,
    fell,
    fell_to,
});

impl MtuDiscovery {
    /// Starts at `initial`; `limit` is the largest size that may be tried.
    pub(crate) fn new(initial: u16, limit: u16, enabled: bool) -> Self {
        Self {
            current: initial,
            base: crate::config::MTU_MIN.min(initial),
            limit,
            enabled: false,
            upper: limit,
            probing: None,
            in_flight: false,
            passed_over: 0,
            next_search: None,
            wanted: false,
            unexplained: [0; BLACK_HOLE_LOSSES - 1],
            newest_small_lost: None,
            arrivals: Arrivals::new(),
            fell: None,
            fell_to: 0,
        }
        .with_enabled(enabled)
    }

    fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// The size of a full datagram.
    pub(crate) fn current(&self) -> u16 {
        self.current
    }

    /// The peer takes no larger datagrams than `limit`, from its transport parameters.
    pub(crate) fn on_peer_limit(&mut self, limit: u16) {
        self.limit = self.limit.min(limit.max(self.base));
        self.upper = self.upper.min(self.limit);
        self.current = self.current.min(self.limit);
    }

    /// Larger datagrams would be of use.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// The size that a probe should have now, if one should be sent.
    pub(crate) fn poll_probe(&mut self, now: Instant) -> Option<u16> {
        if !self.enabled || !self.wanted || self.in_flight {
            return None;
        }
        if self.next_search.is_some_and(|at| at <= now) {
            self.next_search = None;
            self.upper = self.limit;
        }
        if self.next_search.is_some() {
            return None;
        }
        if self.probing.is_none() {
            if self.upper < self.current + GAIN_MIN {
                self.next_search = Some(now + SEARCH_INTERVAL);
                return None;
            }
            // The largest size is tried first: on most paths it works, and the search is over.
            let size = if self.upper == self.limit { self.limit } else { self.current.midpoint(self.upper) };
            self.probing = Some((size, 0));
        }
        self.probing.map(|(size, _)| size)
    }

    /// The probe left.
    pub(crate) fn on_probe_sent(&mut self) {
        self.in_flight = true;
        self.wanted = false;
        self.passed_over = 0;
    }

    /// What is under way will not be heard of: a probe is sent anew.
    pub(crate) fn forget_flight(&mut self) {
        self.in_flight = false;
    }

    /// A datagram with data went before the probe that is due.
    pub(crate) fn on_passed_over(&mut self) {
        self.passed_over = self.passed_over.saturating_add(1);
    }

    /// Whether data has to wait for the probe that is due.
    pub(crate) fn is_impatient(&self) -> bool {
        self.passed_over >= PATIENCE
    }

    /// A probe arrived. Returns the new size.
    pub(crate) fn on_probe_acked(&mut self, size: u16) -> u16 {
        self.in_flight = false;
        self.probing = None;
        self.explain_up_to(size);
        self.current = self.current.max(size.min(self.limit));
        self.current
    }

    /// A probe was lost.
    pub(crate) fn on_probe_lost(&mut self) {
        self.in_flight = false;
        if let Some((size, lost)) = self.probing.take() {
            let probes_max = if size == self.limit { PROBES_OF_LIMIT } else { PROBES_PER_SIZE };
            if lost + 1 < probes_max {
                self.probing = Some((size, lost + 1));
            } else {
                self.upper = size - 1;
            }
        }
    }

    /// A packet of `size` bytes, not a probe, that was sent at `sent` arrived.
    pub(crate) fn on_packet_acked(&mut self, size: u16, sent: Instant) {
        if size > self.base {
            self.explain_up_to(size);
            self.arrivals.note(size, sent);
        }
    }

    /// A packet of this size has arrived: the path carries it, and nothing is said of larger ones.
    #[inline]
    fn explain_up_to(&mut self, size: u16) {
        if self.unexplained != [0; BLACK_HOLE_LOSSES - 1] {
            self.unexplained.iter_mut().filter(|lost| **lost <= size).for_each(|lost| *lost = 0);
        }
    }

    /// A packet of `size` bytes, not a probe, that was sent at `sent` was lost and fits every path: the losses
    /// before it were of another kind.
    pub(crate) fn on_small_lost(&mut self, size: u16, sent: Instant) {
        if size <= self.base {
            self.newest_small_lost = self.newest_small_lost.max(Some(sent));
        }
    }

    /// A packet of `size` bytes, not a probe, that was sent at `sent` was lost. Returns true if the size in use
    /// fell back, because the path seems to have become narrower. All of the smaller packets that were lost with
    /// it are known by now.
    ///
    /// The search begins anew at once, with one more probe of the old size: if the path was silent rather than
    /// narrow, that restores it after a round trip.
    pub(crate) fn on_packet_lost(&mut self, now: Instant, size: u16, sent: Instant) -> bool {
        // A loss before a packet as large that arrived is congestion: the path carries the size. A loss before that
        // of a small packet may be a silence of the path, and that of a small one itself says nothing of the size.
        let is_silence = self.newest_small_lost.is_some_and(|newest| newest >= sent);
        if size > self.current || is_silence || self.arrivals.prove(size, sent) {
            return false;
        }
        if let Some(free) = self.unexplained.iter_mut().find(|lost| **lost == 0) {
            *free = size;
            return false;
        }
        self.fall(now, sent);
        true
    }

    /// The path does not carry the size in use, as the loss of what left at `sent` has shown.
    fn fall(&mut self, now: Instant, sent: Instant) {
        self.unexplained = [0; BLACK_HOLE_LOSSES - 1];
        self.fell = Some(now);
        self.upper = self.current;
        self.probing = Some((self.current, PROBES_OF_LIMIT - 1));
        // What has arrived meanwhile need not be searched for, and an application that sends datagrams of that size can go on.
        self.current = self.arrivals.largest_since(sent).unwrap_or(self.base);
        self.fell_to = self.current;
        self.in_flight = false;
        self.next_search = None;
        self.wanted = true;
    }

    /// Whether the loss of such a packet says nothing about congestion: it was too large for a path on which the
    /// size has fallen back since (RFC 8899 §4.4).
    pub(crate) fn explains_loss(&self, size: u16, sent: Instant) -> bool {
        size > self.fell_to && self.fell.is_some_and(|fell| sent <= fell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search on a path that carries `path` bytes and returns the size found and the probes needed.
    fn search(path: u16, limit: u16) -> (u16, u32) {
        let mut mtud = MtuDiscovery::new(1_200, limit, true);
        let mut probes = 0;
        mtud.want();
        while let Some(size) = mtud.poll_probe(Instant::ZERO) {
            mtud.on_probe_sent();
            mtud.want();
            assert_eq!(mtud.poll_probe(Instant::ZERO), None, "one probe at a time");
            probes += 1;
            if size <= path {
                mtud.on_probe_acked(size);
            } else {
                mtud.on_probe_lost();
            }
        }
        (mtud.current(), probes)
    }

    #[test]
    fn a_usual_path_takes_one_probe() {
        assert_eq!(search(1_500, 1_452), (1_452, 1));
    }

    #[test]
    fn a_narrow_path_is_found_within_the_gain_that_matters() {
        for path in [1_200, 1_280, 1_394, 4_000, 8_999] {
            let (size, probes) = search(path, 9_000);
            assert!(size <= path && path - size < GAIN_MIN * 2, "{path}: {size}");
            assert!(probes <= 40, "{path}: {probes} probes");
        }
    }

    #[test]
    fn a_black_hole_falls_back_and_is_probed_again() {
        let mut mtud = MtuDiscovery::new(1_200, 1_452, true);
        mtud.poll_probe(Instant::ZERO);
        mtud.on_probe_sent();
        mtud.on_probe_acked(1_452);
        let at = Instant::from_millis;
        for n in 0..BLACK_HOLE_LOSSES as u64 - 1 {
            assert!(!mtud.on_packet_lost(at(100), 1_452, at(n)));
        }
        mtud.on_packet_acked(1_452, at(50));
        for n in 0..50 {
            assert!(
                !mtud.on_packet_lost(at(100), 1_452, at(n)),
                "a burst of losses before a large packet that arrived"
            );
        }
        let fell = (0..BLACK_HOLE_LOSSES).map(|_| mtud.on_packet_lost(Instant::ZERO, 1_452, at(60))).last();
        assert_eq!(fell, Some(true));
        assert_eq!(mtud.current(), 1_200);
        assert!(mtud.explains_loss(1_452, at(0)) && !mtud.explains_loss(1_200, at(0)));
        assert_eq!(mtud.poll_probe(at(100)), Some(1_452), "was it the size?");
        mtud.on_probe_sent();
        mtud.on_probe_lost();
        assert_eq!(mtud.poll_probe(at(100)), None, "nobody sends");
        mtud.want();
        assert_eq!(mtud.poll_probe(at(100)), Some(1_325), "one loss more is enough");
    }

    #[test]
    fn what_arrives_between_the_losses_proves_no_larger_size() {
        let at = Instant::from_millis;
        let mut mtud = MtuDiscovery::new(1_452, 1_452, true);
        mtud.on_packet_acked(1_452, at(0));
        let losses = (1..=BLACK_HOLE_LOSSES as u64).map(|n| {
            mtud.on_packet_acked(1_270, at(2 * n + 1));
            mtud.on_packet_lost(at(100), 1_452, at(2 * n))
        });
        assert_eq!(losses.collect::<Vec<_>>(), [false, false, false, false, false, true]);
        assert_eq!(mtud.current(), 1_270, "what has arrived meanwhile stays in use");
        assert!(mtud.explains_loss(1_452, at(12)) && !mtud.explains_loss(1_270, at(12)));
        // What left before says nothing of the smaller size.
        assert!((0..50).all(|_| !mtud.on_packet_lost(at(100), 1_452, at(13))));
        assert_eq!(mtud.poll_probe(at(100)), Some(1_452));
        // That may become too large in turn.
        assert!((0..BLACK_HOLE_LOSSES).any(|_| mtud.on_packet_lost(at(200), 1_270, at(150))));
        assert_eq!(mtud.current(), 1_200);
    }

    #[test]
    fn congestion_that_takes_packets_of_several_sizes_is_no_black_hole() {
        let at = Instant::from_millis;
        let mut mtud = MtuDiscovery::new(1_452, 1_452, true);
        // The last that arrived of a train were small; larger ones arrived after the losses, too.
        mtud.on_packet_acked(1_452, at(50));
        mtud.on_packet_acked(1_270, at(51));
        for n in 0..50 {
            assert!(
                !mtud.on_packet_lost(at(100), 1_452, at(n)) && !mtud.on_packet_lost(at(100), 1_270, at(n))
            );
        }
        // Losses that a later arrival explains do not add up.
        for n in 60..100 {
            assert!(
                !mtud.on_packet_lost(at(200), 1_452, at(n)) && !mtud.on_packet_lost(at(200), 1_270, at(n))
            );
            mtud.on_packet_acked(1_452, at(n));
        }
    }

    #[test]
    fn a_silence_in_which_small_packets_are_lost_as_well_is_no_black_hole() {
        let at = Instant::from_millis;
        let mut mtud = MtuDiscovery::new(1_452, 1_452, true);
        mtud.on_small_lost(1_200, at(50));
        assert!((0..50).chain([50; 10]).all(|n| !mtud.on_packet_lost(at(100), 1_452, at(n))));
        // Those after it count.
        assert!((51..60).any(|n| mtud.on_packet_lost(at(100), 1_452, at(n))));
    }

    #[test]
    fn an_end_that_sends_nothing_large_does_not_probe() {
        let mut mtud = MtuDiscovery::new(1_200, 1_452, true);
        assert_eq!(mtud.poll_probe(Instant::ZERO), None);
        mtud.want();
        assert_eq!(mtud.poll_probe(Instant::ZERO), Some(1_452));
    }

    #[test]
    fn a_path_that_was_only_silent_is_used_as_before_after_one_probe() {
        let mut mtud = MtuDiscovery::new(1_200, 1_452, true);
        mtud.on_probe_acked(1_452);
        assert!((0..BLACK_HOLE_LOSSES).any(|_| mtud.on_packet_lost(Instant::ZERO, 1_452, Instant::ZERO)));
        assert_eq!(mtud.poll_probe(Instant::ZERO), Some(1_452));
        mtud.on_probe_sent();
        assert_eq!(mtud.on_probe_acked(1_452), 1_452);
        assert_eq!(mtud.poll_probe(Instant::ZERO), None);
    }

    #[test]
    fn the_largest_size_gets_three_probes_and_each_other_one_two() {
        let mut mtud = MtuDiscovery::new(1_200, 1_452, true);
        let mut probe = || {
            mtud.want();
            let size = mtud.poll_probe(Instant::ZERO);
            mtud.on_probe_sent();
            mtud.on_probe_lost();
            size
        };
        let sizes: Vec<_> = std::iter::repeat_with(&mut probe).take(7).map(Option::unwrap).collect();
        assert_eq!(sizes, [1_452, 1_452, 1_452, 1_325, 1_325, 1_262, 1_262]);
    }

    #[test]
    fn data_waits_for_a_probe_that_has_let_ten_datagrams_go_first() {
        let mut mtud = MtuDiscovery::new(1_200, 1_452, true);
        for _ in 0..PATIENCE {
            assert!(!mtud.is_impatient());
            mtud.on_passed_over();
        }
        assert!(mtud.is_impatient());
        mtud.on_probe_sent();
        assert!(!mtud.is_impatient());
    }
}
