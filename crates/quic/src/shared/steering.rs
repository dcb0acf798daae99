//! Which worker a datagram belongs to, and what of it came to the wrong one.
//!
//! The workers of an endpoint have sockets on one port. Connection IDs name the worker ([`WorkerCids`]), and the kernel is given a
//! program that reads it. Where it takes none, and for datagrams that it has joined to those of another connection, the worker
//! that receives one hands it on.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use fulmar_proto::{Datagram, WorkerCids};
use fulmar_udp::Instruction;

use super::{Inner, ReadyQueue};
use crate::sync::lock;

/// Datagrams that wait for a worker, at most, and their bytes. With more, new ones are dropped, as by a full socket.
const DATAGRAMS_MAX: usize = 4_096;
const BYTES_MAX: usize = 4 << 20;

/// The bit of the first byte that makes it a long header (RFC 8999 §5.1). There the length of the destination connection ID stands
/// at offset 5, and it begins at 6; in short headers it begins at 1 (§5.2).
const LONG_HEADER: u8 = 0x80;
const LONG_CID_LEN: u8 = 5;
const LONG_CID: u8 = 6;
const SHORT_CID: u8 = 1;

/// How datagrams find their worker.
pub(crate) struct Steering {
    /// The length of the connection IDs that the workers issue.
    cid_len: u8,
    inboxes: Box<[Inbox]>,
}

/// What others have received for a worker.
struct Inbox {
    ready: Arc<ReadyQueue<Arc<Inner>>>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    datagrams: VecDeque<Datagram>,
    bytes: usize,
    /// All that ever waited.
    total: u64,
}

impl Steering {
    /// Among workers that are woken through these queues.
    pub(super) fn new(cid_len: u8, workers: &[Arc<ReadyQueue<Arc<Inner>>>]) -> Self {
        let inbox = |ready: &Arc<_>| Inbox { ready: Arc::clone(ready), waiting: Mutex::default() };
        Self { cid_len, inboxes: workers.iter().map(inbox).collect() }
    }

    /// The worker that a datagram belongs to, if it names one. What a client has made up for its first packets does, too: the
    /// same one for all of them.
    pub(crate) fn worker_of(&self, datagram: &[u8]) -> Option<usize> {
        let cid = if datagram.first()? & LONG_HEADER == 0 {
            datagram.get(usize::from(SHORT_CID)..)?.get(..usize::from(self.cid_len))?
        } else {
            let len = usize::from(*datagram.get(usize::from(LONG_CID_LEN))?);
            datagram.get(usize::from(LONG_CID)..)?.get(..len)?
        };
        Some(usize::from(WorkerCids::worker_of(cid)?) % self.inboxes.len())
    }

    /// The program by which the kernel chooses as [`worker_of`](Self::worker_of) does.
    pub(crate) fn program(&self) -> Vec<Instruction> {
        let load = |offset: u8| Instruction::Load(offset.into());
        vec![
            load(0),
            Instruction::SkipIfSet { bits: LONG_HEADER.into(), count: 4 },
            // The last byte of the ID in a short header, and the second one.
            load(SHORT_CID + self.cid_len - 1),
            Instruction::SetIndex,
            load(SHORT_CID + 1),
            Instruction::Skip(5),
            // The same in a long header.
            load(LONG_CID_LEN),
            Instruction::SetIndex,
            Instruction::LoadIndexed(u32::from(LONG_CID) - 1),
            Instruction::SetIndex,
            load(LONG_CID + 1),
            Instruction::XorIndex,
            Instruction::And(WorkerCids::WORKER_MASK.into()),
            Instruction::Modulo(self.inboxes.len() as u32),
            Instruction::Choose,
        ]
    }

    /// Gives a datagram to the worker that it belongs to. Returns false if there was no room for it.
    pub(super) fn forward(&self, worker: usize, datagram: Datagram) -> bool {
        let inbox = &self.inboxes[worker];
        let mut waiting = lock(&inbox.waiting);
        let len = datagram.payload.len();
        if waiting.datagrams.len() == DATAGRAMS_MAX || waiting.bytes + len > BYTES_MAX {
            return false;
        }
        waiting.bytes += len;
        waiting.total += 1;
        // In memory of its own: it may be a slice of a receive buffer that this worker wants back.
        let payload = BytesMut::from(&datagram.payload[..]);
        waiting.datagrams.push_back(Datagram { payload, ..datagram });
        drop(waiting);
        inbox.ready.wake();
        true
    }

    /// Takes what others have received for this worker.
    pub(super) fn take(&self, worker: usize) -> VecDeque<Datagram> {
        let mut waiting = lock(&self.inboxes[worker].waiting);
        waiting.bytes = 0;
        mem::take(&mut waiting.datagrams)
    }

    /// How many datagrams others have received for this worker.
    pub(super) fn forwarded_to(&self, worker: usize) -> u64 {
        lock(&self.inboxes[worker].waiting).total
    }
}

#[cfg(test)]
mod tests;
