//! The body of a response: a file, read as fast as the client takes it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

use super::super::buffers::Buffers;
use super::super::directory::Access;
use super::super::files::{Block, Source, SourceError};
use super::super::told::Told;

/// What all files together may have in memory, in bytes: a quarter of what hostile clients may make a server hold, as blocks also leave gaps
/// between them. Beyond it each file gets crumbs.
const MEMORY_BYTES: usize = 16 << 20;
/// How many files stay open between two reads. A file beyond them is closed meanwhile, and its response is given up if it is another
/// file when it is opened again. Half of the descriptors that systems commonly grant a process, with those of HTTP/0.9.
const KEPT_OPEN_MAX: usize = 384;
/// How much is read at once, in bytes: enough that the way to another thread and back does not count.
const BLOCK_BYTES: u64 = 128 << 10;
/// The same where there is no room for more. Nothing but the limit of streams bounds how many of these there are.
const CRUMB_BYTES: u64 = 4 << 10;
/// The part of the free memory that one read may take, so that there is some for those that follow.
const SHARE: usize = 32;

/// What bodies share.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    memory: Arc<Semaphore>,
    kept_open: Arc<Semaphore>,
    spare: Arc<Buffers>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            memory: Arc::new(Semaphore::new(MEMORY_BYTES)),
            kept_open: Arc::new(Semaphore::new(KEPT_OPEN_MAX)),
            spare: Arc::default(),
        }
    }
}

impl Budget {
    /// How much may be read now, and the memory for it.
    fn take(&self, wanted: u64) -> (u64, Option<OwnedSemaphorePermit>) {
        let share = (self.memory.available_permits() / SHARE) as u64;
        let bytes = wanted.min(BLOCK_BYTES).min(share.max(CRUMB_BYTES));
        let permit = if bytes > CRUMB_BYTES {
            self.memory.clone().try_acquire_many_owned(bytes as u32).ok()
        } else {
            None
        };
        if permit.is_some() { (bytes, permit) } else { (bytes.min(CRUMB_BYTES), None) }
    }
}

/// Bytes of a file, and the memory that they take until the last slice of them is gone. Then the buffer can be used again.
struct Held {
    bytes: Vec<u8>,
    spare: Arc<Buffers>,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes.len() as u64 == BLOCK_BYTES {
            self.spare.put(std::mem::take(&mut self.bytes));
        }
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same of a file that is kept in memory, too: it need not be for as long.
struct Shared {
    bytes: Bytes,
    _memory: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A part of a file that is sent.
#[derive(Debug)]
pub(super) struct Part {
    source: Source,
    next: u64,
    end: u64,
    budget: Budget,
    kept_open: Option<OwnedSemaphorePermit>,
}

impl Part {
    pub(super) fn new(source: Source, (start, end): (u64, u64), budget: Budget) -> Self {
        Self { source, next: start, end, budget, kept_open: None }
    }

    /// Reads the next block in the thread that calls it. What fails because it takes a disk can be tried again.
    pub(super) fn read(&mut self, access: Access) -> Result<Bytes, SourceError> {
        let (max, memory) = self.budget.take(self.end - self.next);
        // A part would have all of it stay.
        let is_all = |all: &&Bytes| self.next == 0 && all.len() as u64 == max;
        if let Some(all) = self.source.in_memory().filter(is_all).cloned() {
            self.next = max;
            self.source.close();
            return Ok(match memory {
                Some(memory) => Bytes::from_owner(Shared { bytes: all, _memory: memory }),
                None => all,
            });
        }
        let buffer = if max == BLOCK_BYTES { self.budget.spare.take() } else { Vec::new() };
        let Block { bytes, .. } = self.source.read_now(self.next, max, access, buffer)?;
        self.next += bytes.len() as u64;
        if bytes.is_empty() && self.next < self.end {
            return Err(SourceError::Changed);
        }
        self.keep_open();
        Ok(if memory.is_none() && bytes.len() as u64 <= CRUMB_BYTES {
            bytes.into()
        } else {
            Bytes::from_owner(Held { bytes, spare: self.budget.spare.clone(), _memory: memory })
        })
    }

    fn keep_open(&mut self) {
        if self.next < self.end && self.kept_open.is_none() {
            self.kept_open = self.budget.kept_open.clone().try_acquire_owned().ok();
        }
        if self.next >= self.end || self.kept_open.is_none() {
            self.source.close();
        }
    }
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct WebBody {
    /// What comes next.
    ready: Bytes,
    rest: Rest,
    /// How much is to come.
    left: u64,
    told: Option<Told>,
}

#[derive(Debug)]
enum Rest {
    None,
    Part(Box<Part>),
    /// Others had their turn after the block before.
    Turn(Box<Part>),
    Reading(JoinHandle<Result<(Box<Part>, Bytes), SourceError>>),
}

impl WebBody {
    /// A body that is there.
    pub(super) fn of(bytes: impl Into<Bytes>) -> Self {
        let ready = bytes.into();
        Self { left: ready.len() as u64, ready, rest: Rest::None, told: None }
    }

    /// The part of a file, of which the first block was read.
    pub(super) fn file(part: Part, first: Bytes) -> Self {
        let left = first.len() as u64 + (part.end - part.next);
        let rest = if part.next < part.end { Rest::Part(Box::new(part)) } else { Rest::None };
        Self { ready: first, rest, left, told: None }
    }

    /// All of it, if it is there.
    pub(super) fn whole(&self) -> Option<&Bytes> {
        matches!(self.rest, Rest::None).then_some(&self.ready)
    }

    /// Lets it be told when it has gone.
    pub(super) fn telling(self, told: Told) -> Self {
        Self { told: Some(told), ..self }
    }

    fn on_block(&mut self, part: Box<Part>, bytes: Bytes) {
        self.ready = bytes;
        self.rest = if part.next < part.end { Rest::Part(part) } else { Rest::None };
    }

    fn poll_block(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, SourceError>>> {
        loop {
            if !self.ready.is_empty() {
                let bytes = std::mem::take(&mut self.ready);
                self.left -= bytes.len() as u64;
                return Poll::Ready(Some(Ok(bytes)));
            }
            match std::mem::replace(&mut self.rest, Rest::None) {
                Rest::None => return Poll::Ready(None),
                // A client that takes all at once shall not keep those waiting that share its thread.
                Rest::Part(part) => {
                    self.rest = Rest::Turn(part);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Rest::Turn(mut part) => match part.read(Access::Cached) {
                    Ok(bytes) => self.on_block(part, bytes),
                    Err(error) if error.is_not_cached() => {
                        self.rest = Rest::Reading(spawn_blocking(move || {
                            let bytes = part.read(Access::Disk)?;
                            Ok((part, bytes))
                        }));
                    }
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                Rest::Reading(mut reading) => match Pin::new(&mut reading).poll(cx) {
                    Poll::Pending => {
                        self.rest = Rest::Reading(reading);
                        return Poll::Pending;
                    }
                    Poll::Ready(read) => match read.map_err(io::Error::other) {
                        Ok(Ok((part, bytes))) => self.on_block(part, bytes),
                        Ok(Err(error)) => return Poll::Ready(Some(Err(error))),
                        Err(error) => return Poll::Ready(Some(Err(error.into()))),
                    },
                },
            }
        }
    }
}

impl http_body::Body for WebBody {
    type Data = Bytes;
    type Error = SourceError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SourceError>>> {
        let block = ready!(self.poll_block(cx));
        if let Some(told) = &mut self.told {
            match &block {
                Some(Ok(bytes)) => told.add(bytes.len() as u64),
                Some(Err(error)) => told.failed(error),
                None => {}
            }
        }
        Poll::Ready(block.map(|block| block.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
