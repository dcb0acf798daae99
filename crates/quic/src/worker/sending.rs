//! Datagrams out: from the connections to the sockets.

use std::sync::Arc;

use fulmar_proto::Transmit;
use fulmar_udp::{SendOutcome, UdpSocket};

use super::{Worker, socket_of};
use crate::clock;
use crate::shared::Inner;
use crate::sync::lock;

/// Batches that one connection sends before it is the turn of the next.
const BATCHES_PER_CONNECTION: usize = 8;
/// Batches of all connections in one turn, so that acknowledgements are not left waiting in the socket.
const BATCHES_PER_TURN: usize = 32;

/// A batch that the socket had no room for.
pub(super) struct Pending {
    pub(super) transmit: Transmit,
    sent: usize,
}

impl Worker {
    /// Sends for the queued connections, each a bounded amount in turn, until nothing is left or the socket is full.
    pub(super) fn serve(&mut self) {
        let mut batches = 0;
        // A connection that has more to send goes to the end of the queue, for the next turn.
        for _ in 0..self.queue.len() {
            if self.pending.is_some() || batches >= BATCHES_PER_TURN {
                return;
            }
            let Some(connection) = self.queue.pop_front() else { return };
            batches += self.serve_one(connection);
        }
    }

    /// Sends for one connection. Returns the number of batches.
    fn serve_one(&mut self, connection: Arc<Inner>) -> usize {
        for batches in 0..BATCHES_PER_CONNECTION {
            let mut state = connection.lock();
            let now = state.advance(clock::now());
            state.manage_paths(now);
            let Some(transmit) = state.proto.poll_transmit(now, &mut self.batch) else {
                state.queued = false;
                self.settle(&connection, state);
                return batches;
            };
            state.on_traffic();
            drop(state);
            let size = transmit.segment_size.unwrap_or(transmit.len).max(1);
            let datagrams = transmit.len.div_ceil(size);
            match self.send(transmit) {
                SendOutcome::Done => {}
                SendOutcome::TooLarge => connection.lock().proto.on_too_large(now, datagrams, size),
                SendOutcome::Refused(reason) => connection.lock().proto.on_unsent(now, datagrams, reason),
                SendOutcome::Blocked { .. } => {
                    // What waits for the socket may tell the peer of a new connection ID: the endpoint must know it before the peer
                    // can use it.
                    self.settle(&connection, connection.lock());
                    self.queue.push_back(connection);
                    return batches + 1;
                }
            }
        }
        self.settle(&connection, connection.lock());
        self.queue.push_back(connection);
        BATCHES_PER_CONNECTION
    }

    /// Sends the batch. If the socket is full it waits.
    fn send(&mut self, transmit: Transmit) -> SendOutcome {
        self.conversation.on_sent(transmit.segment_size.is_none());
        self.busy_poll.on_sent(transmit.len);
        self.pending = Some(Pending { transmit, sent: 0 });
        self.flush()
    }

    /// Sends what waits, as far as the socket takes it.
    pub(super) fn flush(&mut self) -> SendOutcome {
        let Some(pending) = &mut self.pending else { return SendOutcome::Done };
        let id = pending.transmit.addrs.socket;
        let Some(socket) = socket_of(&self.socket, &self.more_sockets, id) else {
            // It was removed: what leaves there is lost, as on a link that is gone.
            self.pending = None;
            return SendOutcome::Done;
        };
        let outcome =
            send(socket, &pending.transmit, &self.batch.bytes()[pending.sent..pending.transmit.len]);
        match outcome {
            SendOutcome::Blocked { sent } => pending.sent += sent,
            SendOutcome::Done | SendOutcome::Refused(_) | SendOutcome::TooLarge => self.pending = None,
        }
        outcome
    }

    /// Sends the answers that handles have given to attempts. If the socket is full they are lost: the peers will ask again.
    pub(super) fn send_replies(&mut self) {
        let replies = lock(&self.shared.replies).take();
        if replies.is_empty() {
            return;
        }
        for reply in replies {
            self.send_reply(&reply.transmit, &reply.contents);
        }
        lock(&self.shared.replies).on_sent();
        self.shared.notify_if_idle(&lock(&self.shared.core));
    }

    pub(super) fn send_reply(&self, transmit: &Transmit, contents: &[u8]) {
        if let Some(socket) = socket_of(&self.socket, &self.more_sockets, transmit.addrs.socket) {
            let _ = send(socket, transmit, contents);
        }
    }
}

/// Sends `contents`, a batch or the rest of one, as `transmit` says.
fn send(socket: &UdpSocket, transmit: &Transmit, contents: &[u8]) -> SendOutcome {
    socket.try_send(&fulmar_udp::Transmit {
        destination: transmit.addrs.remote,
        source: transmit.addrs.local_ip,
        ecn: transmit.ecn.bits(),
        contents,
        segment_size: transmit.segment_size,
    })
}
