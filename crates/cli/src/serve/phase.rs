//! How far a server has come that is told to stop.

use tokio::sync::watch;

/// What all who serve look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// No more requests are taken, and those under way may end.
    Stopping,
    /// What is still under way is cut short.
    Over,
}

/// Waits until the server has come as far as `phase`.
pub(super) async fn reached(now: &mut watch::Receiver<Phase>, phase: Phase) {
    // Where nobody is left to say so, it is over.
    let _ = now.wait_for(|now| *now >= phase).await;
}
