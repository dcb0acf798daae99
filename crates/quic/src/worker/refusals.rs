//! Reports of the network that nobody listens at an address: what the attempts to connect there are told.

use std::future::Future;
use std::io;
use std::iter;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fulmar_proto::SocketId;
use fulmar_udp::UdpSocket;

use super::Worker;
use crate::clock;
use crate::shared::Sockets;
use crate::sync::lock;

/// Reports that one turn looks at, of each socket: anyone who knows the ports can forge them.
const REPORTS_PER_TURN: usize = 16;

/// Waits for a report.
type Ready = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// Waits for reports. At most one wait for each socket.
#[derive(Default)]
pub(super) struct Refusals {
    waits: Vec<(SocketId, Ready)>,
}

impl Refusals {
    /// Whether there may be one.
    pub(super) fn is_ready(&mut self, first: &Arc<UdpSocket>, more: &Sockets, cx: &mut Context<'_>) -> bool {
        // Each is asked, so that each wakes this task.
        let more = more.iter().map(|(id, socket)| (*id, socket));
        let all = iter::once((SocketId::default(), first)).chain(more);
        all.filter(|(_, socket)| socket.reports_refusals())
            .fold(false, |ready, (id, socket)| ready | self.has_report(id, socket, cx))
    }

    fn has_report(&mut self, id: SocketId, socket: &Arc<UdpSocket>, cx: &mut Context<'_>) -> bool {
        let index = self.waits.iter().position(|(waited, _)| *waited == id).unwrap_or_else(|| {
            let socket = socket.clone();
            self.waits.push((id, Box::pin(async move { socket.refusal_ready().await })));
            self.waits.len() - 1
        });
        let is_ready = matches!(self.waits[index].1.as_mut().poll(cx), Poll::Ready(_));
        if is_ready {
            drop(self.waits.swap_remove(index));
        }
        is_ready
    }

    /// There are other sockets.
    pub(super) fn reset(&mut self) {
        self.waits.clear();
    }
}

impl Worker {
    /// Tells the attempts to connect what the network has reported.
    pub(super) fn take_refusals(&mut self) {
        self.take_refusals_of(&self.socket);
        self.more_sockets.iter().for_each(|(_, socket)| self.take_refusals_of(socket));
    }

    fn take_refusals_of(&self, socket: &UdpSocket) {
        if !socket.reports_refusals() {
            return;
        }
        for _ in 0..REPORTS_PER_TURN {
            let Some(remote) = socket.next_refusal() else { return };
            self.on_refusal(remote);
        }
    }

    /// Tells the attempts to connect there, of other workers, too. Each looks after its own.
    fn on_refusal(&self, remote: SocketAddr) {
        let attempts = lock(&self.shared.common.attempts).to(remote);
        for connection in attempts {
            let mut state = connection.lock();
            let now = state.advance(clock::now());
            state.proto.on_refused(now, remote);
            connection.release(state);
        }
    }
}
