//! Whether the tasks that read a connection's streams come when they are woken.
//!
//! A reader on a thread of its own that shares a processor with the worker is woken by the first data of a turn and runs only when
//! the worker sleeps, or when the system takes the processor from it. What arrives meanwhile falls out of the processor's
//! cache, and is copied on top of that: see [`UNREAD_SHARED_MAX`]. So the worker receives no more, and sleeps, until such a reader has
//! read what lies there, for a bounded time. One on another processor reads while the worker receives, and is not late; one that the
//! worker's own thread calls has its turn as soon as the worker's is over, which at most ends a little sooner.
//!
//! A reader may be late for other reasons than the processor: it reads what is there and is away for some milliseconds, again and
//! again. Nothing is received meanwhile for any connection, so the worker has little [`Patience`] with that.

use fulmar_proto::UNREAD_SHARED_MAX;

/// What may lie unread although a reader is late: half of what is kept without a copy, as what was received already is handled all
/// the same.
const UNREAD_LATE: u64 = UNREAD_SHARED_MAX / 2;
/// What lies unread when the worker goes on: less, so that it does not stop again at once.
const UNREAD_RESUME: u64 = UNREAD_LATE / 2;

/// So many late readers are not waited for after a wait in vain, at most.
const SKIPPED_MAX: u32 = 256;

/// Whether a worker waits for readers: one for all of its connections, since all of them have to wait. Each wait in vain doubles how
/// many late readers it does not wait for before it tries again, and one in time makes it forget that.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Late readers that it does not wait for until it tries again.
    left: u32,
    /// As many as there were of them after the last wait; zero if that was in time.
    skipped: u32,
}

impl Patience {
    /// A reader is late. Returns whether to wait for it.
    fn allows(&mut self) -> bool {
        let allows = self.left == 0;
        self.left = self.left.saturating_sub(1);
        allows
    }

    /// A wait is over.
    fn note(&mut self, in_time: bool) {
        self.skipped = if in_time { 0 } else { (2 * self.skipped).clamp(1, SKIPPED_MAX) };
        self.left = self.skipped;
    }
}

/// What is known of the tasks that read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The last that was heard of them is that one has read all there was and waits for more.
    #[default]
    Waiting,
    /// One was woken, and since the last data came nothing was read.
    Late,
    /// Since the last data came something was read: they read while the worker receives, or were not long away.
    Reading,
    /// They are late, and the worker receives nothing until much was read or one waits.
    Awaited,
    /// They were awaited in vain, or would have been: they have their reasons. It is not tried again until much was read.
    Slow,
}

impl Readers {
    /// A task that waited was woken.
    pub(crate) fn on_woken(&mut self) {
        if *self == Self::Waiting {
            *self = Self::Late;
        }
    }

    /// Something was received, and so much is unread. Returns whether the worker is to wait for a reader now.
    pub(crate) fn on_received(&mut self, unread: u64, patience: &mut Patience) -> bool {
        match self {
            Self::Late if unread > UNREAD_LATE => {
                *self = if patience.allows() { Self::Awaited } else { Self::Slow };
                self.are_awaited()
            }
            Self::Reading => {
                *self = Self::Late;
                false
            }
            _ => false,
        }
    }

    /// Something was read, and so much is left. Returns whether the worker need not wait any longer.
    pub(crate) fn on_read(&mut self, unread: u64) -> bool {
        let before = *self;
        match self {
            Self::Late => *self = Self::Reading,
            Self::Awaited | Self::Slow if unread <= UNREAD_RESUME => *self = Self::Reading,
            _ => {}
        }
        before == Self::Awaited && *self != before
    }

    /// A task found nothing to read, and waits. Returns whether the worker need not wait any longer.
    pub(crate) fn on_wait(&mut self) -> bool {
        let was_awaited = self.are_awaited();
        if *self != Self::Slow {
            *self = Self::Waiting;
        }
        was_awaited
    }

    /// The worker waits no longer: a reader has come, or it has waited for long enough.
    pub(crate) fn end_wait(&mut self, patience: &mut Patience) {
        let in_vain = self.are_awaited();
        if in_vain {
            *self = Self::Slow;
        }
        patience.note(!in_vain);
    }

    /// Whether the worker waits.
    pub(crate) fn are_awaited(self) -> bool {
        self == Self::Awaited
    }
}

#[cfg(test)]
mod tests;
