//! Whether the tasks that read a connection's streams come when they are woken.
//!
//! A reader on a thread of its own that shares a processor with the worker is woken by the first data of a turn and runs only when
//! the worker sleeps, or when the system takes the processor from it. What arrives meanwhile falls out of the processor's
//! cache, and is copied on top of that: see [`UNREAD_SHARED_MAX`]. So the worker receives no more, and sleeps, until such a reader has
//! read what lies there, for a bounded time. One on another processor reads while the worker receives, and is not late; one that the
//! worker's own thread calls has its turn as soon as the worker's is over, which at most ends a little sooner.

use fulmar_proto::UNREAD_SHARED_MAX;

/// What may lie unread although a reader is late: half of what is kept without a copy, as what was received already is handled all
/// the same.
const UNREAD_LATE: u64 = UNREAD_SHARED_MAX / 2;
/// What lies unread when the worker goes on: less, so that it does not stop again at once.
const UNREAD_RESUME: u64 = UNREAD_LATE / 2;

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
    /// They were awaited in vain: they have their reasons. It is not tried again until much was read.
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
    pub(crate) fn on_received(&mut self, unread: u64) -> bool {
        let is_late = *self == Self::Late && unread > UNREAD_LATE;
        match self {
            Self::Late if is_late => *self = Self::Awaited,
            Self::Reading => *self = Self::Late,
            _ => {}
        }
        is_late
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

    /// The worker has waited for long enough.
    pub(crate) fn give_up(&mut self) {
        if *self == Self::Awaited {
            *self = Self::Slow;
        }
    }

    /// Whether the worker waits.
    pub(crate) fn are_awaited(self) -> bool {
        self == Self::Awaited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: u64 = UNREAD_LATE + 1;

    /// Readers that are awaited.
    fn awaited() -> Readers {
        let mut readers = Readers::default();
        readers.on_woken();
        assert!(readers.on_received(MUCH));
        readers
    }

    #[test]
    fn a_reader_that_was_woken_is_awaited_once_much_lies_there_until_most_of_it_is_read() {
        let mut readers = Readers::default();
        assert!(!readers.on_received(MUCH), "nobody was woken");
        readers.on_woken();
        assert!(!readers.on_received(UNREAD_LATE));
        assert!(readers.on_received(MUCH));
        assert!(readers.are_awaited());
        assert!(!readers.on_received(MUCH), "the worker knows");
        assert!(!readers.on_read(UNREAD_RESUME + 1) && readers.are_awaited());
        assert!(readers.on_read(UNREAD_RESUME) && !readers.are_awaited());
    }

    #[test]
    fn one_that_reads_while_more_comes_is_not_awaited_however_much_lies_there() {
        let mut readers = Readers::default();
        readers.on_woken();
        for _ in 0..5 {
            assert!(!readers.on_read(MUCH), "the worker does not wait");
            assert!(!readers.on_received(2 * MUCH));
        }
        assert!(readers.on_received(2 * MUCH), "nothing was read since the last data came");
    }

    #[test]
    fn one_that_has_read_all_that_is_for_it_is_not_awaited_although_much_is_there_for_others() {
        let mut readers = awaited();
        assert!(readers.on_wait());
        assert!(!readers.are_awaited() && !readers.on_received(MUCH));
    }

    #[test]
    fn readers_that_were_awaited_in_vain_are_not_awaited_again_until_much_was_read() {
        let mut readers = awaited();
        readers.give_up();
        for _ in 0..3 {
            assert!(!readers.on_received(MUCH));
            assert!(!readers.on_read(UNREAD_RESUME + 1) && !readers.on_wait());
            readers.on_woken();
        }
        assert!(!readers.on_read(UNREAD_RESUME));
        assert!(!readers.on_received(MUCH) && readers.on_received(MUCH));
    }
}
