//! A body on its way to where it is written.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fulmar_h3::Body;
use http_body::Body as _;
use indicatif::ProgressBar;
use tokio::time::sleep;

use super::super::pace::Pace;
use super::super::sink::{Sink, Writing};
use super::elsewhere::{Elsewhere, SUSPECTED_AFTER};
use super::{Done, Exchange};
use crate::failure::Failure;

/// How much is collected before it is written, in bytes: enough that the way to another thread and back does not count. Half of it costs a
/// download of 1 GB on one core 3 % more time. Twice as much may be in memory for each file, one half being written.
const BATCH_BYTES: usize = 512 << 10;

/// After which time less is written, too, so that what came over a slow link stays if the user ends the program.
const WRITE_AFTER: Duration = Duration::from_secs(1);

/// How often a silence is looked at in which nothing can be done.
const SILENCE_STEP: Duration = Duration::from_secs(1);

impl Exchange<'_> {
    /// Writes the body, one batch while the next one comes. The inner error is that of the body. What has come is written, too, when the
    /// limit is reached, and when the rest comes elsewhere, which is returned then.
    ///
    /// The bytes are copied to batches: to write them as many small slices costs the kernel several times what that does.
    pub(super) async fn copy(
        &mut self,
        done: &mut Done,
        body: &mut Body,
        expected: Option<u64>,
        bar: &ProgressBar,
    ) -> Result<Result<Option<Elsewhere>, fulmar_h3::Error>, Failure> {
        let pace = self.job.args.http.limit_rate.map(|rate| Pace::new(Instant::now(), rate));
        let is_stream = self.sink.as_ref().is_some_and(Sink::is_stream);
        let mut batch = Vec::new();
        let mut writing: Option<Writing> = None;
        let mut written_at = Instant::now();
        let limit = self.limit.clone();
        let mut over = std::pin::pin!(limit.over());
        let (mut silence, mut came_at) = (std::pin::pin!(sleep(SUSPECTED_AFTER)), Instant::now());
        let ended = loop {
            let mut before = batch.len();
            let room = BATCH_BYTES - before;
            let enough = before + pace.as_ref().map_or(room, |pace| pace.at_once().clamp(1, room));
            let more = tokio::select! {
                biased;
                failure = &mut over => break Err(failure),
                more = poll_fn(|cx| poll_parts(body, &mut batch, enough, cx)) => more,
                () = &mut silence => {
                    let is_silent = came_at.elapsed() >= SUSPECTED_AFTER;
                    if !is_silent || !self.may_go_on_elsewhere(done, expected) {
                        silence.as_mut().reset((came_at + SUSPECTED_AFTER).max(Instant::now() + SILENCE_STEP).into());
                        continue;
                    }
                    // The rest is what is not written yet.
                    batch = self.write_all(&mut writing, batch).await?;
                    before = 0;
                    tokio::select! {
                        biased;
                        failure = &mut over => break Err(failure),
                        more = poll_fn(|cx| poll_parts(body, &mut batch, enough, cx)) => more,
                        rest = self.elsewhere(done) => break Ok(Ok(Some(rest))),
                    }
                }
            };
            came_at = Instant::now();
            let came = (batch.len() - before) as u64;
            done.bytes += came;
            bar.inc(came);
            match more {
                Ok(true) => {}
                Ok(false) => break Ok(Ok(None)),
                Err(error) => break Ok(Err(error)),
            }
            // What someone waits for is shown as soon as there is no more of it for now.
            if batch.len() >= BATCH_BYTES || is_stream || written_at.elapsed() >= WRITE_AFTER {
                batch = limit.settle(self.write(&mut writing, batch)).await??;
                written_at = Instant::now();
            }
            if let Some(early) = pace.as_ref().and_then(|pace| pace.wait(Instant::now(), done.bytes)) {
                tokio::select! {
                    failure = &mut over => break Err(failure),
                    () = sleep(early) => {}
                }
            }
        };
        self.write_all(&mut writing, batch).await?;
        ended
    }

    /// Writes what has come, and waits until it is written. Returns what the next batch goes to.
    async fn write_all(&mut self, writing: &mut Option<Writing>, batch: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let limit = self.limit.clone();
        let spare = match batch.is_empty() {
            true => batch,
            false => limit.settle(self.write(writing, batch)).await??,
        };
        if let Some(writing) = writing.take() {
            self.sink = Some(limit.settle(writing.finish()).await??.0);
        }
        Ok(spare)
    }

    /// Writes a batch when the one before it is written, and returns what the next one goes to.
    async fn write(&mut self, writing: &mut Option<Writing>, batch: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let (sink, mut spare) = match (writing.take(), self.sink.take()) {
            (Some(writing), _) => writing.finish().await?,
            (None, Some(sink)) => (sink, Vec::new()),
            (None, None) => return Err(Failure::Thread("disk")),
        };
        *writing = Some(sink.write(batch));
        spare.clear();
        Ok(spare)
    }
}

/// Waits for a part of a body, and takes those that are there until the batch has `enough` bytes. False at the end; what came before
/// that, or before an error, is in the batch.
fn poll_parts(
    body: &mut Body,
    batch: &mut Vec<u8>,
    enough: usize,
    cx: &mut Context<'_>,
) -> Poll<Result<bool, fulmar_h3::Error>> {
    let before = batch.len();
    while batch.len() < enough {
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending if batch.len() == before => return Poll::Pending,
            Poll::Pending => break,
            Poll::Ready(None) => return Poll::Ready(Ok(false)),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(Some(Ok(frame))) => {
                batch.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data))
            }
        }
    }
    Poll::Ready(Ok(true))
}
