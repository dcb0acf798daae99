//! Connections: streams that are opened and accepted.

use std::task::{Context, Poll};

use bytes::Buf;
use fulmar::{DropCodes, Side, VarInt};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};

use crate::error;
use crate::stream::{BidiStream, RecvStream, SendStream};

/// A connection for [`h3::server`] or [`h3::client`].
pub struct Connection(fulmar::Connection);

/// What opens streams of a connection; clones are for the same one.
#[derive(Clone)]
pub struct OpenStreams(fulmar::Connection);

impl Connection {
    /// Gives a connection to `h3`. It sets what the peer is told of streams and connections that are dropped
    /// ([`fulmar::Connection::set_drop_codes`]), for all handles.
    #[must_use]
    pub fn new(quic: fulmar::Connection) -> Self {
        let stop_sending = match quic.side() {
            Side::Server => Code::H3_NO_ERROR,
            Side::Client => Code::H3_REQUEST_CANCELLED,
        };
        quic.set_drop_codes(DropCodes {
            reset_stream: Some(code(Code::H3_REQUEST_CANCELLED.value())),
            stop_sending: code(stop_sending.value()),
            connection_close: code(Code::H3_NO_ERROR.value()),
        });
        Self(quic)
    }
}

pub(crate) fn code(value: u64) -> VarInt {
    VarInt::saturating(value)
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        self.0.poll_accept_uni(cx).map_ok(RecvStream::new).map_err(error::connection)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        self.0.poll_accept_bi(cx).map_ok(BidiStream::new).map_err(error::connection)
    }

    fn opener(&self) -> OpenStreams {
        OpenStreams(self.0.clone())
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        open_bidi(&mut self.0, cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        open_send(&mut self.0, cx)
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.0.close(code(error.value()), reason);
    }
}

impl<B: Buf> quic::OpenStreams<B> for OpenStreams {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        open_bidi(&mut self.0, cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        open_send(&mut self.0, cx)
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.0.close(code(error.value()), reason);
    }
}

fn open_bidi<B: Buf>(
    quic: &mut fulmar::Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
    quic.poll_open_bi(cx).map_ok(BidiStream::new).map_err(error::lost)
}

fn open_send<B: Buf>(
    quic: &mut fulmar::Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
    quic.poll_open_uni(cx).map_ok(SendStream::new).map_err(error::lost)
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Connection").field(&self.0.stable_id()).finish()
    }
}

impl std::fmt::Debug for OpenStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OpenStreams").field(&self.0.stable_id()).finish()
    }
}
