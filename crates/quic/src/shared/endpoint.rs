//! The shared part of an endpoint: its workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fulmar_proto::ClientConfig;
use fulmar_udp::UdpSocket;
use tokio::runtime::Handle;

use super::worker::Place;
use super::{Common, ReadyQueue, Steering, WorkerShared};

/// What the handles of an endpoint hold.
pub(crate) struct Shared {
    pub(crate) common: Arc<Common>,
    /// Never empty. Each has a socket, and connections of its own that stay with it.
    workers: Box<[Arc<WorkerShared>]>,
    pub(crate) client_config: Mutex<Option<ClientConfig>>,
    /// How many connections were dialled: the workers take turns.
    dialled: AtomicUsize,
}

impl Shared {
    /// An endpoint with a worker for each socket and core. Connection IDs of `cid_len` bytes name the worker if there are several.
    pub(crate) fn new(
        workers: Vec<(UdpSocket, fulmar_proto::Endpoint, Handle)>,
        cid_len: usize,
        client_config: Option<ClientConfig>,
        common: Common,
    ) -> Self {
        let common = Arc::new(common);
        let queues: Vec<_> = workers.iter().map(|_| Arc::new(ReadyQueue::new())).collect();
        let steering = (queues.len() > 1)
            .then(|| Arc::new(Steering::new(u8::try_from(cid_len).unwrap_or(u8::MAX), &queues)));
        let workers =
            queues.into_iter().zip(workers).enumerate().map(|(index, (ready, (socket, core, runtime)))| {
                let place = steering.clone().map(|steering| Place { steering, index });
                Arc::new(WorkerShared::new(common.clone(), runtime, socket, core, ready, place))
            });
        let workers = workers.collect();
        Self { common, workers, client_config: Mutex::new(client_config), dialled: AtomicUsize::new(0) }
    }

    pub(crate) fn workers(&self) -> &[Arc<WorkerShared>] {
        &self.workers
    }

    /// How datagrams find their worker, if there are several.
    pub(crate) fn steering(&self) -> Option<&Steering> {
        self.workers[0].place.as_ref().map(|place| &*place.steering)
    }

    /// The worker that the next connection is dialled by.
    pub(crate) fn dialling_worker(&self) -> &Arc<WorkerShared> {
        &self.workers[self.dialled.fetch_add(1, Ordering::Relaxed) % self.workers.len()]
    }

    /// A socket of the endpoint: all are bound to one address.
    pub(crate) fn socket(&self) -> Arc<UdpSocket> {
        self.workers[0].socket()
    }

    /// Counts a new handle of the endpoint.
    pub(crate) fn add_handle(&self) {
        self.common.add_handle();
    }

    /// Counts a handle less. Without handles nobody can accept, and a worker without connections ends.
    pub(crate) fn remove_handle(&self) {
        if self.common.remove_handle() {
            for worker in &self.workers {
                worker.stop_accepting();
                worker.ready.wake();
            }
        }
    }
}
