//! The wish of the user to end the program.

use std::io;

/// Waits for an interrupt (Ctrl-C) or, on Unix, a termination signal.
#[cfg(unix)]
pub(crate) async fn interrupted() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}

/// Waits for an interrupt (Ctrl-C) or, on Unix, a termination signal.
#[cfg(not(unix))]
pub(crate) async fn interrupted() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
