//! Streams: what `h3` hands over is written as the peer takes it.

use std::collections::VecDeque;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};

use crate::connection::code;
use crate::error;

/// A stream that this end sends on.
pub struct SendStream<B: Buf> {
    stream: fulmar::SendStream,
    /// What `h3` has handed over and the transport has not taken yet. Where a write was given up before its end there are several: what was
    /// begun of a frame has to be followed by its rest.
    waiting: VecDeque<WriteBuf<B>>,
}

/// How many writes may wait that were given up.
const WAITING_MAX: usize = 64;

/// A stream that the peer sends on.
pub struct RecvStream(fulmar::RecvStream);

/// A stream in both directions.
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B: Buf> SendStream<B> {
    pub(crate) fn new(stream: fulmar::SendStream) -> Self {
        Self { stream, waiting: VecDeque::new() }
    }

    /// Writes of `data` until nothing is left.
    fn poll_write_all(
        stream: &mut fulmar::SendStream,
        cx: &mut Context<'_>,
        data: &mut impl Buf,
    ) -> Poll<Result<(), StreamErrorIncoming>> {
        while data.has_remaining() {
            let written = ready!(stream.poll_write(cx, data.chunk())).map_err(error::write)?;
            data.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(first) = self.waiting.front_mut() {
            let written = ready!(Self::poll_write_all(&mut self.stream, cx, first));
            if written.is_err() {
                // Nothing that waits can be sent any more.
                self.waiting.clear();
                return Poll::Ready(written);
            }
            self.waiting.pop_front();
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.waiting.len() >= WAITING_MAX {
            // An error of the connection would end all of its streams.
            return Err(StreamErrorIncoming::Unknown(
                "too many writes were given up before their end".into(),
            ));
        }
        self.waiting.push_back(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        Poll::Ready(self.stream.finish().map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, reset_code: u64) {
        self.waiting.clear();
        // A stream that is over already needs none.
        let _ = self.stream.reset(code(reset_code));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        // What was handed over before comes first.
        ready!(quic::SendStream::poll_ready(self, cx))?;
        if !buf.has_remaining() {
            return Poll::Ready(Ok(0));
        }
        let written = ready!(self.stream.poll_write(cx, buf.chunk())).map_err(error::write)?;
        buf.advance(written);
        Poll::Ready(Ok(written))
    }
}

impl RecvStream {
    pub(crate) fn new(stream: fulmar::RecvStream) -> Self {
        Self(stream)
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        loop {
            match ready!(self.0.poll_read_chunk(cx, usize::MAX, true)).map_err(error::read)? {
                // The end of the stream may come with no bytes.
                Some(chunk) if chunk.bytes.is_empty() => {}
                chunk => return Poll::Ready(Ok(chunk.map(|chunk| chunk.bytes))),
            }
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
        // A stream that is over already needs none.
        let _ = self.0.stop(code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id())
    }
}

impl<B: Buf> BidiStream<B> {
    pub(crate) fn new((send, recv): (fulmar::SendStream, fulmar::RecvStream)) -> Self {
        Self { send: SendStream::new(send), recv: RecvStream::new(recv) }
    }
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream<B>, RecvStream) {
        (self.send, self.recv)
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for BidiStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        self.send.poll_send(cx, buf)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

fn id(id: fulmar::StreamId) -> StreamId {
    StreamId::try_from(id.as_u64()).expect("the numbers of streams are variable-length integers")
}

impl<B: Buf> std::fmt::Debug for SendStream<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SendStream").field(&self.stream.id()).finish()
    }
}

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RecvStream").field(&self.0.id()).finish()
    }
}

impl<B: Buf> std::fmt::Debug for BidiStream<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BidiStream").field(&self.recv.0.id()).finish()
    }
}
