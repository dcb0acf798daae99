//! A body on its way to where it is written.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fulmar_h3::Body;
use http_body::Body as _;
use indicatif::ProgressBar;
use tokio::time::{Sleep, sleep};

use super::super::limit::Limit;
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
    pub(super) async fn copy(
        &mut self,
        done: &mut Done,
        body: &mut Body,
        expected: Option<u64>,
        bar: &ProgressBar,
    ) -> Result<Result<Option<Elsewhere>, fulmar_h3::Error>, Failure> {
        let pace = self.job.args.http.limit_rate.map(|rate| Pace::new(Instant::now(), rate));
        let limit = self.limit.clone();
        let mut over = std::pin::pin!(limit.over());
        let (mut batches, mut silence) = (Batches::new(self.sink.as_ref()), Silence::new());
        let ended = loop {
            let enough = batches.enough(pace.as_ref());
            let more = tokio::select! {
                biased;
                failure = &mut over => break Err(failure),
                more = batches.fill(body, enough) => more,
                () = silence.passed() => {
                    if !silence.is_long() || !self.may_go_on_elsewhere(done, expected) {
                        silence.go_on();
                        continue;
                    }
                    // The rest is what is not written yet.
                    batches.write_all(&mut self.sink, &limit).await?;
                    tokio::select! {
                        biased;
                        failure = &mut over => break Err(failure),
                        more = batches.fill(body, enough) => more,
                        rest = self.elsewhere(done) => break Ok(Ok(Some(rest))),
                    }
                }
            };
            silence.end();
            let came = batches.take_came();
            done.bytes += came;
            bar.inc(came);
            match more {
                Ok(true) => {}
                Ok(false) => break Ok(Ok(None)),
                Err(error) => break Ok(Err(error)),
            }
            if batches.is_due() {
                limit.settle(batches.write(&mut self.sink)).await??;
            }
            if let Some(early) = pace.as_ref().and_then(|pace| pace.wait(Instant::now(), done.bytes)) {
                tokio::select! {
                    failure = &mut over => break Err(failure),
                    () = sleep(early) => {}
                }
            }
        };
        batches.write_all(&mut self.sink, &limit).await?;
        ended
    }
}

/// What has come and is to be written, and what is being written.
///
/// The bytes are copied to batches: to write them as many small slices costs the kernel several times what that does.
struct Batches {
    batch: Vec<u8>,
    /// The batch before, with the sink.
    writing: Option<Writing>,
    written_at: Instant,
    /// Whether someone waits for it at the other end of the sink.
    is_stream: bool,
    /// How much has come that was not counted yet.
    came: u64,
}

impl Batches {
    fn new(sink: Option<&Sink>) -> Self {
        let is_stream = sink.is_some_and(Sink::is_stream);
        Self { batch: Vec::new(), writing: None, written_at: Instant::now(), is_stream, came: 0 }
    }

    /// How long the batch may become before it is looked at.
    fn enough(&self, pace: Option<&Pace>) -> usize {
        let room = BATCH_BYTES - self.batch.len();
        self.batch.len() + pace.map_or(room, |pace| pace.at_once().clamp(1, room))
    }

    /// Waits for a part of a body, and takes those that are there until the batch has `enough` bytes. False at the end; what came before
    /// that, or before an error, is in the batch.
    async fn fill(&mut self, body: &mut Body, enough: usize) -> Result<bool, fulmar_h3::Error> {
        poll_fn(|cx| self.poll_fill(body, enough, cx)).await
    }

    fn poll_fill(
        &mut self,
        body: &mut Body,
        enough: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, fulmar_h3::Error>> {
        let before = self.batch.len();
        let result = loop {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Pending if self.batch.len() == before => return Poll::Pending,
                Poll::Pending => break Ok(true),
                Poll::Ready(None) => break Ok(false),
                Poll::Ready(Some(Err(error))) => break Err(error),
                Poll::Ready(Some(Ok(frame))) => {
                    self.batch.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                }
            }
            if self.batch.len() >= enough {
                break Ok(true);
            }
        };
        self.came += (self.batch.len() - before) as u64;
        Poll::Ready(result)
    }

    /// How much has come since this was asked last.
    fn take_came(&mut self) -> u64 {
        std::mem::take(&mut self.came)
    }

    /// What someone waits for is shown as soon as there is no more of it for now.
    fn is_due(&self) -> bool {
        self.batch.len() >= BATCH_BYTES || self.is_stream || self.written_at.elapsed() >= WRITE_AFTER
    }

    /// Writes the batch when the one before it is written.
    async fn write(&mut self, sink: &mut Option<Sink>) -> Result<(), Failure> {
        let (sink, mut spare) = match (self.writing.take(), sink.take()) {
            (Some(writing), _) => writing.finish().await?,
            (None, Some(sink)) => (sink, Vec::new()),
            (None, None) => return Err(Failure::Thread("disk")),
        };
        spare.clear();
        self.writing = Some(sink.write(std::mem::replace(&mut self.batch, spare)));
        self.written_at = Instant::now();
        Ok(())
    }

    /// Writes what has come, waits until it is written, and gives the sink back.
    async fn write_all(&mut self, sink: &mut Option<Sink>, limit: &Limit) -> Result<(), Failure> {
        if !self.batch.is_empty() {
            limit.settle(self.write(sink)).await??;
        }
        if let Some(writing) = self.writing.take() {
            *sink = Some(limit.settle(writing.finish()).await??.0);
        }
        Ok(())
    }
}

/// How long nothing has come.
struct Silence {
    timer: Pin<Box<Sleep>>,
    came_at: Instant,
}

impl Silence {
    fn new() -> Self {
        Self { timer: Box::pin(sleep(SUSPECTED_AFTER)), came_at: Instant::now() }
    }

    /// Waits until it is to be looked at.
    async fn passed(&mut self) {
        self.timer.as_mut().await;
    }

    /// Whether what comes no more is suspected.
    fn is_long(&self) -> bool {
        self.came_at.elapsed() >= SUSPECTED_AFTER
    }

    /// Nothing can be done about it now.
    fn go_on(&mut self) {
        let next = (self.came_at + SUSPECTED_AFTER).max(Instant::now() + SILENCE_STEP);
        self.timer.as_mut().reset(next.into());
    }

    /// Something has come. The timer is set anew when it rings, which is seldom.
    fn end(&mut self) {
        self.came_at = Instant::now();
    }
}
