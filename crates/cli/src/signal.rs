//! The wish of the user to end the program.

use std::io;

use crate::failure::Failure;

/// Interrupts (Ctrl-C) and, on Unix, termination signals. None that comes after [`listen`](Self::listen) is missed.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes the signals over from the system, which would end the program. Needs a runtime.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Takes the signals over from the system, which would end the program. Needs a runtime.
    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for the next one.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Hangups (SIGHUP), where there are such: they tell a server to look at its files again. None that comes after
/// [`listen`](Self::listen) is missed.
#[derive(Debug)]
pub(crate) struct Hangups(#[cfg(unix)] tokio::signal::unix::Signal);

impl Hangups {
    /// Takes the signal over from the system, which would end the program. Needs a runtime.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// There are none.
    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self())
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if self.0.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

/// What a server hears: to stop, and to look at its files again.
#[derive(Debug)]
pub(crate) struct ServerSignals {
    pub(crate) stop: Signals,
    pub(crate) look_again: Hangups,
}

impl ServerSignals {
    /// Takes them over from the system. Whoever is told that the server listens may send them at once, so this comes before.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let cannot = "cannot wait for signals";
        Ok(Self {
            stop: Signals::listen().map_err(Failure::io(cannot))?,
            look_again: Hangups::listen().map_err(Failure::io(cannot))?,
        })
    }
}

/// Waits for the first one, or for a hangup, after which there is as much to clean up. One that is ignored, as `nohup` wants it, stays so.
pub(crate) async fn interrupted() -> io::Result<()> {
    let mut signals = Signals::listen()?;
    if is_hangup_ignored() {
        signals.next().await;
        return Ok(());
    }
    let mut hangups = Hangups::listen()?;
    tokio::select! {
        () = signals.next() => {}
        () = hangups.next() => {}
    }
    Ok(())
}

/// Whether whoever started the program has seen to it that hangups do not end it. Where that cannot be told, it may be.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is that of signal 1.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 != 0)
}
