//! A path ID that is not gone: what both ends say of it, and its connection IDs until it is open.

use fulmar_wire::{Frame, PathId, PathStatus, VarInt};

use super::ways::Ways;
use super::{LocalCids, RemoteCids};
use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Latest;
use crate::rtt::Rtt;

/// A path ID that is not gone.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: PathId,
    pub(super) is_open: bool,
    /// Until the path is open.
    pub(super) local: Option<LocalCids>,
    pub(super) remote: Option<RemoteCids>,
    /// What this end says of the path: the number of the statement, and whether it is available.
    pub(super) said: Latest<(u64, bool)>,
    /// What the peer says.
    pub(super) heard: Option<(u64, bool)>,
    /// What it costs to use the path.
    pub(super) cost: u32,
    /// How long its packets are on their way to the peer, once another path has brought an acknowledgement of them: its round
    /// trips are of several ways back since.
    pub(super) to_peer: Option<Rtt>,
    /// The ways that its acknowledgements come.
    pub(super) ways: Ways,
    /// The path that is to carry a copy of its last acknowledgement, as that one is quicker.
    pub(super) ack_copy: Option<PathId>,
}

impl Entry {
    pub(super) fn new(id: PathId) -> Self {
        Self {
            id,
            is_open: false,
            local: None,
            remote: None,
            said: Latest::new((0, true)),
            heard: None,
            cost: 1,
            to_peer: None,
            ways: Ways::default(),
            ack_copy: None,
        }
    }

    pub(super) fn wants_to_send(&self) -> bool {
        self.said.is_pending()
            || self.local.as_ref().is_some_and(LocalCids::wants_to_send)
            || self.remote.as_ref().is_some_and(RemoteCids::wants_to_send)
    }

    pub(super) fn write(&mut self, out: &mut FrameWriter<'_>) {
        if let Some((sequence, available)) = self.said.pending() {
            let sequence = VarInt::saturating(sequence);
            let frame = Frame::PathStatus(PathStatus { path: self.id, sequence, available });
            if out.write(&frame, SentFrame::PathStatus(self.id)) {
                self.said.on_written();
            }
        }
        if let Some(cids) = &mut self.local {
            cids.write(out);
        }
        if let Some(cids) = &mut self.remote {
            cids.write(out);
        }
    }
}
