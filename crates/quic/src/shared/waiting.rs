//! Who waits for which stream of a connection.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use fulmar_proto::{StreamId, VarInt};
use tokio::sync::Notify;

/// The tasks that wait for streams, at most one reader and one writer for each.
///
/// Limit: there are entries only for streams whose handle, or whose future that awaits its fate, is alive.
#[derive(Default)]
pub(crate) struct StreamWaiters {
    readers: BTreeMap<StreamId, Waker>,
    writers: BTreeMap<StreamId, Waker>,
    fates: BTreeMap<StreamId, Arc<Fate>>,
}

/// What became of a stream that this end sent.
#[derive(Default)]
pub(crate) struct Fate {
    /// `None`: the peer has received everything. `Some`: the peer asked to stop with this code.
    pub(crate) outcome: OnceLock<Option<VarInt>>,
    /// The outcome, or the end of the connection, is known.
    pub(crate) changed: Notify,
}

impl StreamWaiters {
    /// The task of `cx` waits for bytes of the stream.
    pub(crate) fn wait_to_read(&mut self, id: StreamId, cx: &Context<'_>) {
        note(&mut self.readers, id, cx);
    }

    /// The task of `cx` waits for room in the stream.
    pub(crate) fn wait_to_write(&mut self, id: StreamId, cx: &Context<'_>) {
        note(&mut self.writers, id, cx);
    }

    pub(crate) fn take_reader(&mut self, id: StreamId) -> Option<Waker> {
        self.readers.remove(&id)
    }

    pub(crate) fn take_writer(&mut self, id: StreamId) -> Option<Waker> {
        self.writers.remove(&id)
    }

    /// Begins to follow the fate of a stream that is being sent.
    pub(crate) fn follow(&mut self, id: StreamId) -> Arc<Fate> {
        self.fates.entry(id).or_default().clone()
    }

    /// The stream's fate is known.
    pub(crate) fn on_fate(&mut self, id: StreamId, outcome: Option<VarInt>, wakers: &mut Vec<Waker>) {
        wakers.extend(self.take_writer(id));
        if let Some(fate) = self.fates.remove(&id) {
            // A stream that was stopped may be reported as finished later; what came first counts.
            let _ = fate.outcome.set(outcome);
            fate.changed.notify_waiters();
        }
    }

    /// The handle that sends the stream is being dropped. `fate` is its share of the fate.
    pub(crate) fn forget_sender(&mut self, id: StreamId, fate: &Arc<Fate>) {
        self.writers.remove(&id);
        // Two shares are this table's and the handle's; another is a future that still waits.
        if Arc::strong_count(fate) <= 2 {
            self.fates.remove(&id);
        }
    }

    /// The handle that receives the stream is being dropped.
    pub(crate) fn forget_reader(&mut self, id: StreamId) {
        self.readers.remove(&id);
    }

    /// Wakes everybody: the connection is over.
    pub(crate) fn wake_all(&mut self, wakers: &mut Vec<Waker>) {
        wakers.extend(std::mem::take(&mut self.readers).into_values());
        wakers.extend(std::mem::take(&mut self.writers).into_values());
        for fate in std::mem::take(&mut self.fates).into_values() {
            fate.changed.notify_waiters();
        }
    }
}

fn note(wakers: &mut BTreeMap<StreamId, Waker>, id: StreamId, cx: &Context<'_>) {
    wakers.entry(id).and_modify(|waker| waker.clone_from(cx.waker())).or_insert_with(|| cx.waker().clone());
}
