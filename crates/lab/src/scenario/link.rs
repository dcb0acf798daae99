//! The link of a scenario file: `[link]` for both directions, `[up]` and `[down]` for one, `[[schedule]]`.

use std::num::NonZeroU16;
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_proto::Side;
use fulmar_sim::{Aqm, Change, EcnPath, Jitter, LinkConfig, Loss, QueueLimit, Reorder, Scheduled};
use serde::Deserialize;

use super::elements::{
    AqmSpec, CrossTrafficSpec, EcnPathSpec, JitterSpec, LossSpec, PolicerSpec, ReorderSpec, SuspendSpec,
    corrupt,
};
use super::values::{Count, Mbps, Millis, Probability, Seconds};

/// The delay of a link that has no rate, no jitter and no other: all of a connection would happen at one instant, at which no round trip
/// can be measured.
const DELAY_MIN: Duration = Duration::from_nanos(1);

/// Keeps what is drawn here apart from what is drawn in the run.
const SALT: u64 = 0x11e4_0ff5_0000_0000;

/// How often an entry of a schedule repeats its change at most: all of them are held in memory.
const REPEATS_MAX: u32 = 100_000;

/// Settings of one direction of a link, or of both. What is not given keeps its value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LinkSpec {
    rate_mbps: Option<Mbps>,
    delay_ms: Option<Millis>,
    queue_ms: Option<Millis>,
    queue_bytes: Option<u64>,
    #[serde(deserialize_with = "AqmSpec::checked")]
    aqm: Option<AqmSpec>,
    policer: Option<PolicerSpec>,
    cross_traffic: Option<CrossTrafficSpec>,
    #[serde(deserialize_with = "JitterSpec::checked")]
    jitter: Option<JitterSpec>,
    jitter_reorders: Option<bool>,
    #[serde(deserialize_with = "LossSpec::checked")]
    loss: Option<LossSpec>,
    duplicate: Option<Probability>,
    corrupt: Option<Probability>,
    reorder: Option<ReorderSpec>,
    ecn_path: Option<EcnPathSpec>,
    mtu: Option<NonZeroU16>,
}

/// One more link, behind a router.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HopSpec {
    link: LinkSpec,
    up: LinkSpec,
    down: LinkSpec,
}

impl HopSpec {
    pub(crate) fn specs(&self) -> LinkSpecs<'_> {
        LinkSpecs { both: &self.link, up: &self.up, down: &self.down, schedule: &[] }
    }
}

/// A change of settings in the course of a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleSpec {
    at_s: Seconds,
    #[serde(default)]
    direction: Direction,
    #[serde(default)]
    set: LinkSpec,
    suspend: Option<SuspendSpec>,
    repeat: Option<RepeatSpec>,
}

/// The same change again and again.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepeatSpec {
    count: Count,
    every_ms: Millis,
}

impl RepeatSpec {
    fn problem(self) -> Option<&'static str> {
        const { assert!(REPEATS_MAX == 100_000, "the complaint names the bound") };
        let idle = self.count.0 > 1 && self.every_ms.0.is_zero();
        match self.count.0 > REPEATS_MAX {
            true => Some("a change is repeated at most 100000 times: the `count` of `repeat` is larger"),
            false => idle.then_some("a change that is repeated needs an `every_ms` above 0"),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Up,
    Down,
    #[default]
    Both,
}

/// A stop of the link that the schedule foresees, or a series of them without much between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkEvent {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    direction: Direction,
}

impl LinkEvent {
    #[cfg(test)]
    pub(crate) fn between(start: Instant, end: Instant) -> Self {
        Self { start, end, direction: Direction::Both }
    }

    /// Whether it stops packets from this side.
    pub(crate) fn concerns(self, sender: Side) -> bool {
        match self.direction {
            Direction::Both => true,
            Direction::Up => sender.is_client(),
            Direction::Down => sender.is_server(),
        }
    }
}

impl LinkSpec {
    /// These settings, and those of `base` where there are none.
    fn over(&self, base: &Self) -> Self {
        let (own, base) = (self.clone(), base.clone());
        Self {
            rate_mbps: own.rate_mbps.or(base.rate_mbps),
            delay_ms: own.delay_ms.or(base.delay_ms),
            queue_ms: own.queue_ms.or(base.queue_ms),
            queue_bytes: own.queue_bytes.or(base.queue_bytes),
            aqm: own.aqm.or(base.aqm),
            policer: own.policer.or(base.policer),
            cross_traffic: own.cross_traffic.or(base.cross_traffic),
            jitter: own.jitter.or(base.jitter),
            jitter_reorders: own.jitter_reorders.or(base.jitter_reorders),
            loss: own.loss.or(base.loss),
            duplicate: own.duplicate.or(base.duplicate),
            corrupt: own.corrupt.or(base.corrupt),
            reorder: own.reorder.or(base.reorder),
            ecn_path: own.ecn_path.or(base.ecn_path),
            mtu: own.mtu.or(base.mtu),
        }
    }

    fn queue(&self) -> QueueLimit {
        QueueLimit { bytes: self.queue_bytes, time: self.queue_ms.map(|time| time.0) }
    }

    fn jitter(&self) -> Jitter {
        self.jitter.map_or(Jitter::None, JitterSpec::model)
    }

    fn delay(&self) -> Duration {
        let delay = self.delay_ms.unwrap_or_default().0;
        match (self.rate_mbps, self.jitter()) {
            (None, Jitter::None) => delay.max(DELAY_MIN),
            _ => delay,
        }
    }

    fn config(&self, rng: &mut Rng) -> LinkConfig {
        LinkConfig {
            rate_bps: self.rate_mbps.map(|rate| rate.0),
            queue: self.queue(),
            aqm: self.aqm.map_or(Aqm::DropTail, AqmSpec::model),
            policer: self.policer.map(PolicerSpec::model),
            cross_traffic: self.cross_traffic.map(CrossTrafficSpec::model),
            delay: self.delay(),
            jitter: self.jitter(),
            jitter_reorders: self.jitter_reorders.unwrap_or(false),
            loss: self.loss.as_ref().map_or(Loss::None, |loss| loss.model(rng)),
            duplicate: self.duplicate.unwrap_or_default().0,
            corrupt: corrupt(self.corrupt.unwrap_or_default()),
            reorder: self.reorder.map_or(Reorder::None, ReorderSpec::model),
            ecn_path: self.ecn_path.map_or(EcnPath::Keep, EcnPathSpec::model),
            mtu: self.mtu.map(|mtu| usize::from(mtu.get())),
            ..LinkConfig::default()
        }
    }

    /// A change for each setting that is given.
    fn changes(&self, rng: &mut Rng) -> Vec<Change> {
        let queue = (self.queue_ms.is_some() || self.queue_bytes.is_some()).then(|| self.queue());
        let changes = [
            self.rate_mbps.map(|rate| Change::Rate(Some(rate.0))),
            self.delay_ms.map(|delay| Change::Delay(delay.0)),
            queue.map(Change::Queue),
            self.aqm.map(|aqm| Change::Aqm(aqm.model())),
            self.policer.map(|policer| Change::Policer(Some(policer.model()))),
            self.cross_traffic.map(|traffic| Change::CrossTraffic(Some(traffic.model()))),
            self.jitter.map(|jitter| Change::Jitter(jitter.model())),
            self.loss.as_ref().map(|loss| Change::Loss(loss.model(rng))),
            self.duplicate.map(|probability| Change::Duplicate(probability.0)),
            self.corrupt.map(|probability| Change::Corrupt(corrupt(probability))),
            self.reorder.map(|reorder| Change::Reorder(reorder.model())),
            self.ecn_path.map(|path| Change::EcnPath(path.model())),
            self.mtu.map(|mtu| Change::Mtu(Some(usize::from(mtu.get())))),
        ];
        changes.into_iter().flatten().collect()
    }

    /// Why these settings cannot be changed by a schedule, if so.
    fn not_scheduled(&self) -> Option<&'static str> {
        self.jitter_reorders.map(|_| "`jitter_reorders` cannot change in the course of a run")
    }
}

/// The link of a scenario: what holds in both directions, and what holds in one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkSpecs<'a> {
    pub(crate) both: &'a LinkSpec,
    pub(crate) up: &'a LinkSpec,
    pub(crate) down: &'a LinkSpec,
    pub(crate) schedule: &'a [ScheduleSpec],
}

impl LinkSpecs<'_> {
    /// The directions from the client and to it. The seed draws where patterns of loss begin.
    pub(crate) fn build(self, seed: u64) -> (LinkConfig, LinkConfig) {
        let mut rng = Rng::from_u64(seed ^ SALT);
        let mut up = self.up.over(self.both).config(&mut rng);
        let mut down = self.down.over(self.both).config(&mut rng);
        for entry in self.schedule {
            if entry.direction != Direction::Down {
                up.schedule.extend(entry.scheduled(&mut rng));
            }
            if entry.direction != Direction::Up {
                down.schedule.extend(entry.scheduled(&mut rng));
            }
        }
        (with_whole_queues(up), with_whole_queues(down))
    }

    /// The stops, in the order of their beginning.
    pub(crate) fn events(self) -> Vec<LinkEvent> {
        let mut events: Vec<LinkEvent> = self.schedule.iter().filter_map(ScheduleSpec::event).collect();
        events.sort_by_key(|event| event.start);
        events
    }

    /// The first entry of the schedule that makes no sense, by its number, and why.
    pub(crate) fn problem(self) -> Option<(usize, &'static str)> {
        self.schedule.iter().enumerate().find_map(|(number, entry)| Some((number, entry.problem()?)))
    }
}

/// The link, where each change of the queue has the half that it leaves as it is: of the link, a change replaces both.
fn with_whole_queues(mut link: LinkConfig) -> LinkConfig {
    // The sort is stable: of changes at one time, the last one given is the last.
    link.schedule.sort_by_key(|scheduled| scheduled.at);
    let mut limit = link.queue;
    for scheduled in &mut link.schedule {
        if let Change::Queue(queue) = &mut scheduled.change {
            limit = QueueLimit { bytes: queue.bytes.or(limit.bytes), time: queue.time.or(limit.time) };
            *queue = limit;
        }
    }
    link
}

impl ScheduleSpec {
    fn scheduled(&self, rng: &mut Rng) -> Vec<Scheduled> {
        let repeat = self.repeat.unwrap_or(RepeatSpec { count: Count(1), every_ms: Millis::default() });
        let times = (0..repeat.count.0).map(|turn| self.at_s.0 + repeat.every_ms.0 * turn);
        let suspension = self.suspend.map(|suspend| Change::Suspend(suspend.model()));
        let changes: Vec<Change> = self.set.changes(rng).into_iter().chain(suspension).collect();
        let at = |time, change: &Change| Scheduled { at: Instant::ZERO + time, change: change.clone() };
        times.flat_map(|time| changes.iter().map(move |change| at(time, change))).collect()
    }

    /// The stop that it makes; a repeated one lasts from the first beginning to the last end.
    fn event(&self) -> Option<LinkEvent> {
        let suspend = self.suspend?;
        let start = Instant::ZERO + self.at_s.0;
        let series = self.repeat.map_or(Duration::ZERO, |repeat| repeat.every_ms.0 * (repeat.count.0 - 1));
        Some(LinkEvent { start, end: start + series + suspend.duration_ms.0, direction: self.direction })
    }

    /// From when until when the change holds, each time; to the same time if it is for good.
    pub(super) fn times(&self) -> impl Iterator<Item = (Instant, Instant)> {
        let repeat = self.repeat.unwrap_or(RepeatSpec { count: Count(1), every_ms: Millis::default() });
        let (first, lasts) =
            (self.at_s.0, self.suspend.map(|suspend| suspend.duration_ms.0).unwrap_or_default());
        (0..repeat.count.0).map(move |turn| {
            let start = Instant::ZERO + (first + repeat.every_ms.0 * turn);
            (start, start + lasts)
        })
    }

    fn problem(&self) -> Option<&'static str> {
        let nothing = self.suspend.is_none() && self.set == LinkSpec::default();
        let nothing = nothing.then_some("an entry needs `suspend`, or `set` with something in it");
        self.set.not_scheduled().or(nothing).or_else(|| self.repeat?.problem())
    }
}

#[cfg(test)]
mod tests;
