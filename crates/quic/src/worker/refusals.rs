//! Reports of the network that nobody listens at an address: what the attempts to connect there are told.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fulmar_udp::UdpSocket;

use super::Worker;
use crate::clock;
use crate::sync::lock;

/// Reports that one turn looks at: anyone who knows the ports can forge them.
const REPORTS_PER_TURN: usize = 16;

/// Waits for reports.
#[derive(Default)]
pub(super) struct Refusals {
    ready: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
}

impl Refusals {
    /// Whether there may be one.
    pub(super) fn is_ready(&mut self, socket: &Arc<UdpSocket>, cx: &mut Context<'_>) -> bool {
        if !socket.reports_refusals() {
            return false;
        }
        let ready = self.ready.get_or_insert_with(|| {
            let socket = socket.clone();
            Box::pin(async move { socket.refusal_ready().await })
        });
        let is_ready = matches!(ready.as_mut().poll(cx), Poll::Ready(_));
        if is_ready {
            self.ready = None;
        }
        is_ready
    }

    /// There is another socket.
    pub(super) fn reset(&mut self) {
        self.ready = None;
    }
}

impl Worker {
    /// Tells the attempts to connect what the network has reported.
    pub(super) fn take_refusals(&mut self) {
        if !self.socket.reports_refusals() {
            return;
        }
        for _ in 0..REPORTS_PER_TURN {
            let Some(remote) = self.socket.next_refusal() else { return };
            let attempts = lock(&self.shared.attempts).current();
            for connection in attempts {
                let mut state = connection.lock();
                let now = state.advance(clock::now());
                state.proto.on_refused(now, remote);
                self.after_change(&connection, state);
            }
        }
    }
}
