//! All paths of a connection, in the order of their IDs.

use fulmar_wire::{ConnectionId, Dialect, PacketKind, PathId};

use super::{Path, Pending};
use crate::ids::SpaceId;

/// The paths of a connection. There is always one: without multipath, path 0 and no other.
///
/// Limit: the path IDs that both ends allow; without multipath, one.
#[derive(Debug)]
pub(crate) struct Paths {
    /// Never empty, in the order of their IDs.
    list: Vec<Path>,
    /// How frames of 1-RTT packets name the path. Frames of all other packets are on path 0, and never name it.
    dialect: Dialect,
}

impl Paths {
    /// Begins with the path of the handshake.
    pub(crate) fn new(first: Path) -> Self {
        Self { list: vec![first], dialect: Dialect::SinglePath }
    }

    /// The path that the connection as a whole speaks of: the one with the lowest ID. The handshake takes place on it.
    #[inline]
    pub(crate) fn primary(&self) -> &Path {
        &self.list[0]
    }

    #[inline]
    pub(crate) fn primary_mut(&mut self) -> &mut Path {
        &mut self.list[0]
    }

    /// The path with this ID, if there is one.
    #[inline]
    pub(crate) fn get(&self, id: PathId) -> Option<&Path> {
        match &*self.list {
            [only] => (only.id == id).then_some(only),
            paths => paths.iter().find(|path| path.id == id),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        match &mut *self.list {
            [only] => (only.id == id).then_some(only),
            paths => paths.iter_mut().find(|path| path.id == id),
        }
    }

    /// The path that packets of a space take: Initial and Handshake packets take the first.
    #[inline]
    pub(crate) fn of(&self, space: SpaceId) -> &Path {
        match space {
            SpaceId::Data(id) => self.get(id).unwrap_or(self.primary()),
            SpaceId::Initial | SpaceId::Handshake => self.primary(),
        }
    }

    /// The path to which the packets to one of its connection IDs belong. Without connection IDs there is one path.
    #[inline]
    pub(crate) fn of_cid(&self, dst: &ConnectionId) -> PathId {
        match &*self.list {
            [only] => only.id,
            paths => paths.iter().find(|path| path.local_cids.is_issued(dst)).unwrap_or(&paths[0]).id,
        }
    }

    /// Where the path with this ID is, for [`Paths::at`], as long as no path comes or goes.
    #[inline]
    pub(crate) fn index_of(&self, id: PathId) -> Option<usize> {
        self.list.iter().position(|path| path.id == id)
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> &Path {
        &self.list[index]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: usize) -> &mut Path {
        &mut self.list[index]
    }

    #[inline]
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Path> {
        self.list.iter()
    }

    #[inline]
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Path> {
        self.list.iter_mut()
    }

    /// How the frames of a kind of packet are written.
    #[inline]
    pub(crate) fn dialect_of(&self, kind: PacketKind) -> Dialect {
        if kind == PacketKind::OneRtt { self.dialect } else { Dialect::SinglePath }
    }

    /// Something that may be sent on any path may have got something to say.
    #[inline]
    pub(crate) fn raise(&mut self, bits: Pending) {
        for path in &mut self.list {
            path.pending.raise(bits);
        }
    }

    /// The ID of the first path behind `last`; of all if that is `None`. So that one can go over the paths without
    /// borrowing them.
    pub(crate) fn next_id(&self, last: Option<PathId>) -> Option<PathId> {
        self.list.iter().map(|path| path.id).find(|id| last.is_none_or(|last| *id > last))
    }
}
