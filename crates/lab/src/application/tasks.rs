//! What an application is going to do, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::StreamId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    Open,
    Write(StreamId),
    Read(StreamId),
    SendMessage,
    SendFrame(usize),
}

/// Whether a stream task is over for now, or wants to go on after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// An event will follow, or nothing.
    Wait,
    /// After this time.
    Rest(Duration),
}

/// What is to be done, by time and then in the order in which it was decided.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    planned: BTreeSet<(Instant, u64, Task)>,
    /// How many there were so far.
    made: u64,
}

impl Tasks {
    pub(super) fn plan(&mut self, at: Instant, task: Task) {
        self.made += 1;
        self.planned.insert((at, self.made, task));
    }

    /// When the first of them is due.
    pub(super) fn first(&self) -> Option<Instant> {
        self.planned.first().map(|(at, ..)| *at)
    }

    /// Takes the first one out, if it is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Task> {
        self.first().filter(|at| *at <= now)?;
        self.planned.pop_first().map(|(_, _, task)| task)
    }

    pub(super) fn clear(&mut self) {
        self.planned.clear();
    }
}
