//! One direction of a link: a row of elements with a schedule.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::{Instant, Rng};

use crate::bottleneck::Bottleneck;
use crate::corrupt::Corruption;
use crate::cross_traffic::{CrossSink, CrossSource};
use crate::delay::Delay;
use crate::duplicate::Duplicate;
use crate::ecn_path::EcnTreatment;
use crate::loss::Lossy;
use crate::mtu::Mtu;
use crate::policer::Policing;
use crate::reorder::Reordering;
use crate::suspension::Hold;
use crate::trace::Record;
use crate::{BufferPool, Change, Context, Element, LinkConfig, LinkStats, LinkTrace, Packet, Scheduled};

/// One direction of a link. Packets enter at the first element and leave after the last.
#[derive(Debug)]
pub struct Pipe {
    stages: Vec<Stage>,
    /// By time.
    schedule: VecDeque<Scheduled>,
    record: Record,
    /// Packets between two elements, and after the last. Empty between calls.
    arriving: Vec<Packet>,
    passed: Vec<Packet>,
    next_timeout: Option<Instant>,
}

/// An element with a generator of its own, so that its draws do not shift those of the others.
#[derive(Debug)]
struct Stage {
    element: Box<dyn Element>,
    rng: Rng,
    /// What the element said last: packets go past it.
    transparent: bool,
    /// What the element said last.
    timeout: Option<Instant>,
}

impl Stage {
    fn new(element: Box<dyn Element>, rng: Rng) -> Self {
        let mut stage = Self { element, rng, transparent: false, timeout: None };
        stage.update();
        stage
    }

    fn update(&mut self) {
        self.transparent = self.element.is_transparent();
        self.timeout = self.element.next_timeout();
    }
}

impl Pipe {
    /// The elements of `config`, in the order that the crate's documentation gives.
    pub fn new(config: LinkConfig, rng: &mut Rng) -> Self {
        let elements: Vec<Box<dyn Element>> = vec![
            Box::new(Mtu(config.mtu)),
            Box::new(Policing::new(config.policer)),
            Box::new(CrossSource::new(config.cross_traffic)),
            Box::new(Bottleneck::new(config.rate_bps, config.queue, config.aqm)),
            Box::new(CrossSink::new(config.cross_traffic)),
            Box::new(Lossy::new(config.loss)),
            Box::new(Duplicate(config.duplicate)),
            Box::new(Corruption(config.corrupt)),
            Box::new(Reordering::new(config.reorder)),
            Box::new(Delay::new(config.delay, config.jitter, config.jitter_reorders)),
            Box::new(EcnTreatment(config.ecn_path)),
            Box::new(Hold::default()),
        ];
        Self::with_elements(elements, config.schedule, rng)
    }

    /// A row of elements of the caller's own.
    pub fn with_elements(
        elements: Vec<Box<dyn Element>>,
        mut schedule: Vec<Scheduled>,
        rng: &mut Rng,
    ) -> Self {
        // A stable sort: of changes at the same time, the last one given is applied last.
        schedule.sort_by_key(|scheduled| scheduled.at);
        let mut pipe = Self {
            stages: elements.into_iter().map(|element| Stage::new(element, rng.fork())).collect(),
            schedule: schedule.into(),
            record: Record::default(),
            arriving: Vec::new(),
            passed: Vec::new(),
            next_timeout: None,
        };
        pipe.update_timeout();
        pipe
    }

    /// What happened so far.
    pub const fn stats(&self) -> &LinkStats {
        &self.record.stats
    }

    /// What was recorded; `None` if [`Pipe::record`] was not called.
    pub const fn trace(&self) -> Option<&LinkTrace> {
        self.record.trace.as_ref()
    }

    /// Begins to record, with one sample of the queue per `interval` at most. What was recorded before is gone.
    pub fn record(&mut self, interval: Duration) {
        self.record.trace = Some(LinkTrace::new(interval));
    }

    /// When [`Pipe::on_timeout`] is wanted.
    pub(crate) const fn next_timeout(&self) -> Option<Instant> {
        self.next_timeout
    }

    /// Puts a packet in; what comes out at once is appended to `out`.
    pub(crate) fn send(&mut self, mut packet: Packet, at: &mut Turn<'_>) {
        packet.index = self.record.stats.packets_sent;
        self.record.stats.on_sent(packet.size());
        self.passed.push(packet);
        self.carry_on(0, at);
        self.update_timeout();
    }

    /// Deals with everything that is due.
    pub(crate) fn on_timeout(&mut self, at: &mut Turn<'_>) {
        while self.schedule.front().is_some_and(|scheduled| scheduled.at <= at.now) {
            if let Some(scheduled) = self.schedule.pop_front() {
                self.apply_to_all(&scheduled.change, at);
            }
        }
        // Elements only feed those behind them, so one walk leaves nothing due.
        for stage in 0..self.stages.len() {
            if self.stages[stage].timeout.is_some_and(|timeout| timeout <= at.now) {
                self.turn(stage, at, |element, cx| element.on_timeout(cx));
                self.carry_on(stage + 1, at);
            }
        }
        self.update_timeout();
    }

    /// Changes a setting now.
    pub(crate) fn apply(&mut self, change: &Change, at: &mut Turn<'_>) {
        self.apply_to_all(change, at);
        self.update_timeout();
    }

    fn apply_to_all(&mut self, change: &Change, at: &mut Turn<'_>) {
        for stage in 0..self.stages.len() {
            self.turn(stage, at, |element, cx| element.apply(change, cx));
            self.carry_on(stage + 1, at);
        }
    }

    /// Takes what was passed through the elements from `first` on, and out at the end.
    fn carry_on(&mut self, first: usize, at: &mut Turn<'_>) {
        for stage in first..self.stages.len() {
            if self.passed.is_empty() {
                return;
            }
            if self.stages[stage].transparent {
                continue;
            }
            let mut arriving = std::mem::replace(&mut self.passed, std::mem::take(&mut self.arriving));
            let Stage { element, rng, timeout, .. } = &mut self.stages[stage];
            let mut cx = Context::new(at.now, rng, &mut self.passed, &mut self.record, at.pool);
            for packet in arriving.drain(..) {
                element.accept(packet, &mut cx);
            }
            *timeout = element.next_timeout();
            self.arriving = arriving;
        }
        for mut packet in self.passed.drain(..) {
            self.record.stats.on_delivered(&packet);
            packet.is_copy = false;
            at.out.push(packet);
        }
    }

    fn turn(
        &mut self,
        stage: usize,
        at: &mut Turn<'_>,
        action: impl FnOnce(&mut dyn Element, &mut Context<'_>),
    ) {
        let Stage { element, rng, .. } = &mut self.stages[stage];
        let mut cx = Context::new(at.now, rng, &mut self.passed, &mut self.record, at.pool);
        action(element.as_mut(), &mut cx);
        self.stages[stage].update();
    }

    fn update_timeout(&mut self) {
        let elements = self.stages.iter().filter_map(|stage| stage.timeout).min();
        let schedule = self.schedule.front().map(|scheduled| scheduled.at);
        self.next_timeout = elements.into_iter().chain(schedule).min();
    }
}

/// What the world lends to a pipe whose turn it is.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) now: Instant,
    pub(crate) pool: &'a mut BufferPool,
    /// Packets that came out at the far end.
    pub(crate) out: &'a mut Vec<Packet>,
}
