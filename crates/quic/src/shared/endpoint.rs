//! The shared part of an endpoint: its workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fulmar_proto::ClientConfig;
use fulmar_udp::UdpSocket;

use super::{Common, WorkerShared};
use crate::log::Logging;

/// What the handles of an endpoint hold.
pub(crate) struct Shared {
    pub(crate) common: Arc<Common>,
    /// Never empty; today it is one. Each has a socket, and connections of its own that stay with it.
    workers: Box<[Arc<WorkerShared>]>,
    pub(crate) client_config: Mutex<Option<ClientConfig>>,
    /// How many connections were dialled: the workers take turns.
    dialled: AtomicUsize,
}

impl Shared {
    /// An endpoint with a worker for each socket and core.
    pub(crate) fn new(
        workers: impl IntoIterator<Item = (UdpSocket, fulmar_proto::Endpoint)>,
        client_config: Option<ClientConfig>,
        logging: Option<Logging>,
        known_paths_max: usize,
    ) -> Self {
        let common = Arc::new(Common::new(logging, known_paths_max));
        let worker = |(socket, core)| Arc::new(WorkerShared::new(common.clone(), socket, core));
        let workers = workers.into_iter().map(worker).collect();
        Self { common, workers, client_config: Mutex::new(client_config), dialled: AtomicUsize::new(0) }
    }

    pub(crate) fn workers(&self) -> &[Arc<WorkerShared>] {
        &self.workers
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
