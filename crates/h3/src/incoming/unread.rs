//! What was read of a stream and is not with the application yet.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fulmar::{ReadError, RecvStream};
use fulmar_h3_proto::{Event, Received};

/// How many chunks of a body are read at once. Each is what one packet has brought, and keeps the buffer that it was received in from
/// being used again while the application takes its time. What it does not read beyond them waits in the transport, which holds the
/// peer back.
const CHUNKS_MAX: usize = 4;

/// How many parts of a body are understood at once, before they are read. A peer may make each of them a byte long, and the chunks of
/// thousands.
const PARTS_MAX: usize = 64;

/// Chunks of a stream, in order. A message of one chunk needs no memory for it.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// The parts of a body that come first.
    body: VecDeque<Bytes>,
    /// What comes next is in this chunk.
    chunk: Bytes,
    rest: VecDeque<Bytes>,
    /// The stream ends with these.
    is_last: bool,
    /// A part of a body has come.
    has_body: bool,
}

impl Unread {
    /// The next part of the body, if one is known to be there.
    pub(super) fn next_of_body(&mut self) -> Option<Bytes> {
        self.body.pop_front()
    }

    /// Whether all of the stream was read and understood.
    pub(super) fn is_over(&self) -> bool {
        self.is_last && self.is_understood()
    }

    /// Whether more has to be read before there is something to understand.
    pub(super) fn wants_more(&self) -> bool {
        !self.is_last && self.is_understood()
    }

    fn is_understood(&self) -> bool {
        self.chunk.is_empty() && self.rest.is_empty()
    }

    /// Reads one chunk, or those that are there if a body is under way.
    ///
    /// # Errors
    ///
    /// See [`RecvStream::read_chunk`].
    pub(super) fn poll_read(
        &mut self,
        stream: &mut RecvStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ReadError>> {
        if self.has_body {
            let mut chunks = [const { Bytes::new() }; CHUNKS_MAX];
            let count = ready!(stream.poll_read_chunks(cx, &mut chunks))?;
            self.rest.extend(chunks.into_iter().take(count.unwrap_or(0)));
        } else {
            let chunk = ready!(stream.poll_read_chunk(cx, usize::MAX, true))?;
            self.chunk = chunk.map(|chunk| chunk.bytes).unwrap_or_default();
        }
        self.is_last = stream.is_finished();
        Poll::Ready(Ok(()))
    }

    /// Goes through the chunks as far as they are parts of a body, [`PARTS_MAX`] of them at most. Returns what comes then, or
    /// [`Received::More`] where nothing is left or so many wait to be read.
    ///
    /// `receive` takes a chunk, and whether it is the last one, and says what has come.
    ///
    /// # Errors
    ///
    /// Those of `receive`. The parts of the body that came before are there.
    pub(super) fn understand<E>(
        &mut self,
        mut receive: impl FnMut(&mut Bytes, bool) -> Result<Received, E>,
    ) -> Result<Received, E> {
        loop {
            if self.chunk.is_empty() {
                self.chunk = self.rest.pop_front().unwrap_or_default();
            }
            let received = receive(&mut self.chunk, self.is_last && self.rest.is_empty())?;
            self.has_body |= matches!(received, Received::Event(Event::Data(_)));
            match received {
                Received::Event(Event::Data(data)) if !self.is_understood() || !self.body.is_empty() => {
                    self.body.push_back(data);
                    if self.is_understood() || self.body.len() >= PARTS_MAX {
                        return Ok(Received::More);
                    }
                }
                Received::More if !self.is_understood() => {}
                received => return Ok(received),
            }
        }
    }
}

#[cfg(test)]
mod tests;
