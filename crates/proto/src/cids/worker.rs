//! Connection IDs that name the worker of a server that has several.

use std::ops::RangeInclusive;
use std::sync::Arc;

use fulmar_base::Rng;
use fulmar_wire::ConnectionId;

use super::CidGenerator;

/// The bits of the byte that name the worker; the two above it are the generation.
const WORKER_BITS: u32 = 6;

/// Connection IDs of another generator with one more byte, from which the sockets of one server that share a port
/// learn which of them a packet belongs to, whatever address it comes from.
///
/// The byte is the worker's number, exclusive-or the ID's second byte: two instructions for a filter in the
/// kernel (`SO_ATTACH_REUSEPORT_CBPF`), and no constant that would make all IDs of a worker look alike. It stands
/// behind what load balancers read, as draft-ietf-quic-load-balancers permits (server use of further bytes).
/// Two bits of it are a generation, 0 as yet, by which a process that takes the address over can tell its own connections
/// from those of the one before it.
#[derive(Debug, Clone)]
pub struct WorkerCids {
    inner: Arc<dyn CidGenerator>,
    worker: u8,
}

impl WorkerCids {
    /// The most workers that there can be.
    pub const WORKERS_MAX: usize = 1 << WORKER_BITS;

    /// The bits of the byte that name the worker, once it is exclusive-or'ed with the second one.
    pub const WORKER_MASK: u8 = (1 << WORKER_BITS) - 1;

    /// The lengths that IDs of the other generator may have, in bytes.
    pub const INNER_LEN: RangeInclusive<usize> = 4..=19;

    /// The IDs of `inner` for the worker with this number, in generation 0.
    ///
    /// # Panics
    /// Panics if the length of the IDs of `inner` is not in [`INNER_LEN`](Self::INNER_LEN), or the number not below
    /// [`WORKERS_MAX`](Self::WORKERS_MAX).
    pub fn new(inner: Arc<dyn CidGenerator>, worker: u8) -> Self {
        assert!(Self::INNER_LEN.contains(&inner.cid_len()), "there is room for one more byte");
        assert!(worker <= Self::WORKER_MASK, "there are at most 64 workers");
        Self { inner, worker }
    }

    /// The worker that a connection ID of such a generator belongs to; `None` if it is too short to be one. An ID
    /// that a client has made up names any worker.
    pub fn worker_of(cid: &[u8]) -> Option<u8> {
        let (last, rest) = cid.split_last()?;
        Some((last ^ rest.get(1)?) & Self::WORKER_MASK)
    }
}

impl CidGenerator for WorkerCids {
    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        let inner = self.inner.generate(rng);
        let mut bytes = [0; 20];
        let len = inner.len();
        bytes[..len].copy_from_slice(inner.as_bytes());
        bytes[len] = self.worker ^ bytes[1];
        ConnectionId::new(&bytes[..len + 1]).unwrap_or(inner)
    }

    fn cid_len(&self) -> usize {
        self.inner.cid_len() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RandomCids;

    #[test]
    fn every_id_names_its_worker_and_none_is_like_another() {
        let mut rng = Rng::from_u64(1);
        let mut last_bytes = [0; 256];
        for worker in [0, 1, 7, 63] {
            let cids = WorkerCids::new(Arc::new(RandomCids::new(8)), worker);
            for _ in 0..1_000 {
                let cid = cids.generate(&mut rng);
                assert_eq!((cid.len(), cids.cid_len()), (9, 9));
                assert_eq!(WorkerCids::worker_of(cid.as_bytes()), Some(worker));
                last_bytes[usize::from(cid.as_bytes()[8])] += 1;
            }
        }
        assert!(last_bytes.iter().all(|count| *count < 60), "the byte is spread evenly");
        assert_eq!(WorkerCids::worker_of(&[1]), None);
    }
}
