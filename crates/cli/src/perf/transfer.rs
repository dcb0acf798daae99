//! Throughput: one stream with much in it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::client::{Dialed, End};
use super::{TIME_OVER, drain, read_failure, send_zeros, write_failure};
use crate::duration::Span;
use crate::failure::Failure;
use crate::net::Figures;
use crate::progress::Bars;
use crate::report::{Output, Transfer, Verified};
use crate::size::{Rate, Size};

/// How often the bar is brought up to date.
const TICK: Duration = Duration::from_millis(200);

/// What a transfer came to.
struct Outcome {
    bytes: u64,
    duration: Duration,
    /// Whether all that was asked for has arrived; unknown if the time was over before.
    is_whole: Option<bool>,
}

/// Receives `size` bytes, or what comes until the end.
pub(super) async fn download(
    dialed: &Dialed<'_>,
    size: u64,
    end: End,
    output: Output,
) -> Result<(), Failure> {
    let start = Instant::now();
    let peer = dialed.peer;
    let (mut send, mut recv) = dialed.connection.open_bi().await.map_err(Failure::connection(peer))?;
    send.write_all(&size.to_be_bytes()).await.map_err(|error| write_failure(peer, error))?;
    let _ = send.finish();
    let bytes = Cell::new(0);
    let complete = tokio::select! {
        result = drain(&mut recv, |more| bytes.set(bytes.get() + more)) => {
            result.map(|()| true).map_err(|error| read_failure(peer, error))?
        }
        () = end.come() => false,
        never = watch(&bytes, output) => match never {},
    };
    let duration = start.elapsed();
    if !complete {
        let _ = recv.stop(TIME_OVER);
    }
    let is_whole = complete.then_some(bytes.get() == size);
    let outcome = Outcome { bytes: bytes.get(), duration, is_whole };
    conclude("download", dialed, &outcome, output)
}

/// Sends `size` bytes, or what goes until the end. It is complete when the server has answered that it has
/// everything; without that, what the stream has taken is counted.
pub(super) async fn upload(dialed: &Dialed<'_>, size: u64, end: End, output: Output) -> Result<(), Failure> {
    let start = Instant::now();
    let peer = dialed.peer;
    let (mut send, mut recv) = dialed.connection.open_bi().await.map_err(Failure::connection(peer))?;
    let (bytes, answered) = (Cell::new(0), Cell::new(0));
    let transfer = async {
        let failed = |error| write_failure(peer, error);
        send.write_all(&0u64.to_be_bytes()).await.map_err(failed)?;
        send_zeros(&mut send, size, |more| bytes.set(bytes.get() + more)).await.map_err(failed)?;
        let _ = send.finish();
        drain(&mut recv, |more| answered.set(answered.get() + more))
            .await
            .map_err(|error| read_failure(peer, error))
    };
    let complete = tokio::select! {
        result = transfer => result.map(|()| true)?,
        () = end.come() => false,
        never = watch(&bytes, output) => match never {},
    };
    let duration = start.elapsed();
    if !complete {
        let _ = send.reset(TIME_OVER);
    }
    // The server was asked for an empty response, which is its receipt.
    let is_whole = complete.then_some(bytes.get() == size && answered.get() == 0);
    conclude("upload", dialed, &Outcome { bytes: bytes.get(), duration, is_whole }, output)
}

/// Shows how much has been transferred, as long as it is asked.
async fn watch(bytes: &Cell<u64>, output: Output) -> std::convert::Infallible {
    let bar = Bars::new(output.wants_bars()).open_ended("");
    loop {
        tokio::time::sleep(TICK).await;
        bar.set_position(bytes.get());
    }
}

fn conclude(
    kind: &'static str,
    dialed: &Dialed<'_>,
    outcome: &Outcome,
    output: Output,
) -> Result<(), Failure> {
    let figures = Figures::of(&dialed.connection);
    let Outcome { bytes, duration, is_whole } = *outcome;
    let verified = (is_whole == Some(true)).then_some(Verified::Length);
    let transfer = Transfer::of(kind, (bytes, duration), dialed.handshake, &figures, verified);
    output.print(&transfer, || {
        format!(
            "{kind} of {} in {}: {} (handshake {}, round trip {} at least)",
            Size(bytes),
            Span(duration),
            Rate { bytes, duration },
            Span(dialed.handshake),
            Span(figures.rtt_min),
        )
    });
    match is_whole {
        Some(false) => {
            Err(Failure::NotVerified(format!("{}: {bytes} bytes are not what was asked for", dialed.peer)))
        }
        _ => Ok(()),
    }
}
