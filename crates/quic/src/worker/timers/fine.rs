//! A timer finer than that of the runtime, whose unit is the millisecond.

pub(super) use self::platform::FineTimer;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod platform {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use fulmar_base::Instant;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Each ring costs some microseconds. So that many connections share them, as they do those of the runtime, one comes so long
    /// after the one before. No train that is paced is shorter, those for queues of L4S included.
    const RINGS_APART: Duration = Duration::from_micros(250);

    /// A timer of the kernel that the runtime watches like a socket (`timerfd_create(2)`). It rings some ten microseconds late, never
    /// early, and by the time of the system, whether or not the runtime's is paused.
    pub(in super::super) struct FineTimer {
        fd: AsyncFd<OwnedFd>,
        set_for: Option<Instant>,
        /// For when it was set when it rang last.
        rang_at: Instant,
    }

    impl FineTimer {
        /// A timer that is not set, watched by the runtime of the context. `None` if the system has none to give, for instance because
        /// the process has as many files open as it may.
        pub(in super::super) fn new() -> Option<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags).ok()?;
            Some(Self { fd: watch(fd)?, set_for: None, rang_at: Instant::ZERO })
        }

        /// Makes sure that the task of `cx` is called at `deadline`, which is after `now`, or before; or somewhat later, if
        /// there was a ring less than [`RINGS_APART`] before.
        ///
        /// # Errors
        ///
        /// The runtime shuts down, or the system refuses. The task may not be called.
        pub(in super::super) fn set(
            &mut self,
            deadline: Instant,
            now: Instant,
            cx: &mut Context<'_>,
        ) -> io::Result<()> {
            let rings = self.take_ring(cx)?;
            if let Some(set_for) = self.set_for
                && (rings || set_for <= now)
            {
                self.rang_at = set_for.min(now);
                self.set_for = None;
            }
            let deadline = deadline.max(self.rang_at + RINGS_APART);
            if self.set_for.is_none_or(|set_for| deadline < set_for) {
                let left = deadline.saturating_since(now);
                let it_value = Timespec::try_from(left).map_err(io::Error::other)?;
                let once = Itimerspec { it_interval: Timespec::default(), it_value };
                timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once)?;
                self.set_for = Some(deadline);
            }
            Ok(())
        }

        /// Whether the runtime has told of a ring. Afterwards the next one wakes the task.
        ///
        /// Nothing has to be read for that: the runtime hears of each ring anew (`EPOLLET`), and whatever rang is forgotten by the
        /// kernel when the timer is set again.
        fn take_ring(&self, cx: &mut Context<'_>) -> io::Result<bool> {
            let mut rings = false;
            while let Poll::Ready(ready) = self.fd.poll_read_ready(cx) {
                ready?.clear_ready();
                rings = true;
            }
            Ok(rings)
        }

        /// When it rings, if it is set.
        #[cfg(test)]
        pub(in super::super) fn set_for(&self) -> Option<Instant> {
            self.set_for
        }
    }

    /// Has the runtime watch a timer, if it can.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, for types that may tell another number each time; this one cannot"
    )]
    fn watch(fd: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
        AsyncFd::with_interest(fd, Interest::READABLE).ok()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod platform {
    use std::io;
    use std::task::Context;

    use fulmar_base::Instant;

    /// There is none on this system.
    pub(in super::super) enum FineTimer {}

    impl FineTimer {
        pub(in super::super) fn new() -> Option<Self> {
            None
        }

        pub(in super::super) fn set(
            &mut self,
            _deadline: Instant,
            _now: Instant,
            _cx: &mut Context<'_>,
        ) -> io::Result<()> {
            match *self {}
        }
    }
}
