//! All paths of a connection, in the order of their IDs.

mod frames;

use std::mem;
use std::net::SocketAddr;
use std::time::Duration;

use fulmar_wire::{ConnectionId, Dialect, PacketKind, PathId};
use smallvec::SmallVec;

use super::{LocalCids, Multipath, PackedPath, Path, Pending, RemoteCids};
use crate::space::NumberSpace;

/// The bit of the first byte that only long headers have (RFC 8999 §5.1).
const LONG_FORM: u8 = 0x80;

/// Repair symbols take a path whose round-trip time is longer than that of what they repair by at most this factor: what is sent again
/// arrives after one and a half.
const REPAIR_RTTS: u32 = 2;

/// The paths of a connection. There is always one: without multipath, path 0 and no other.
///
/// Limit: the path IDs that both ends allow; without multipath, one.
#[derive(Debug)]
pub(crate) struct Paths {
    /// Never empty, in the order of their IDs.
    list: Vec<Path>,
    /// The extension, where both ends have it.
    pub(crate) multipath: Option<Box<Multipath>>,
}

impl Paths {
    /// Begins with the path of the handshake.
    pub(crate) fn new(first: Path) -> Self {
        Self { list: vec![first], multipath: None }
    }

    /// The handshake is complete: frames of 1-RTT packets name their path from now on, if both ends have the extension
    /// (RFC 10069 §2).
    pub(crate) fn on_complete(&mut self) {
        if let Some(multipath) = &mut self.multipath {
            multipath.dialect = Dialect::Multipath;
        }
    }

    /// Whether something is to be said of paths, their IDs or their connection IDs. Not before the handshake is complete
    /// (RFC 10069 §2).
    pub(crate) fn wants_to_manage(&self) -> bool {
        let speaking = self.multipath.as_ref().filter(|multipath| multipath.dialect == Dialect::Multipath);
        speaking.is_some_and(|multipath| multipath.wants_to_send())
    }

    /// What says it.
    pub(crate) fn managed(&mut self) -> Option<&mut Multipath> {
        self.multipath.as_deref_mut().filter(|multipath| multipath.dialect == Dialect::Multipath)
    }

    /// Gives back the memory that nothing needs while nothing is sent or received. Returns the paths in a few bytes, if nothing is under
    /// way on any of them: none are left here then.
    pub(crate) fn pack(&mut self) -> Option<Box<[PackedPath]>> {
        self.list.iter_mut().for_each(Path::rest);
        let packs = self.list.iter().all(Path::is_at_rest);
        packs.then(|| mem::take(&mut self.list).into_iter().map(PackedPath::of).collect())
    }

    /// Takes the paths back that were packed.
    pub(crate) fn unpack(&mut self, packed: Box<[PackedPath]>) {
        self.list = packed.into_iter().map(PackedPath::unpack).collect();
    }

    /// Whether there is one path.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        self.list.len() == 1
    }

    /// Adds a path that was opened.
    pub(crate) fn add(&mut self, path: Path) {
        let at = self.list.partition_point(|other| other.id < path.id);
        self.list.insert(at, path);
    }

    /// Takes out a path, unless it is the only one.
    pub(crate) fn remove(&mut self, id: PathId) -> Option<Path> {
        let index = self.index_of(id).filter(|_| !self.is_single())?;
        Some(self.list.remove(index))
    }

    /// The connection IDs of this end for a path, whether it is open or not.
    pub(crate) fn local_cids_mut(&mut self, id: PathId) -> Option<&mut LocalCids> {
        match self.list.iter_mut().find(|path| path.id == id) {
            Some(path) => Some(&mut path.local_cids),
            None => self.multipath.as_mut()?.local_cids(id),
        }
    }

    /// The connection IDs of the peer for a path, whether it is open or not.
    pub(crate) fn remote_cids_mut(&mut self, id: PathId) -> Option<&mut RemoteCids> {
        match self.list.iter_mut().find(|path| path.id == id) {
            Some(path) => Some(&mut path.remote_cids),
            None => self.multipath.as_mut()?.remote_cids(id),
        }
    }

    /// The path to whose connection ID a datagram was sent, open or not yet; `None` if it is gone.
    #[inline]
    pub(crate) fn of_datagram(&self, datagram: &[u8]) -> Option<PathId> {
        let Some(_) = &self.multipath else { return Some(self.list[0].id) };
        if is_long(datagram) {
            return Some(self.list[0].id);
        }
        self.of_cid(&self.short_dst(datagram)?)
    }

    /// The connection ID that a datagram with a short header was sent to.
    fn short_dst(&self, datagram: &[u8]) -> Option<ConnectionId> {
        let len = self.list[0].local_cids.cid_len();
        datagram.get(1..=len).filter(|_| !is_long(datagram)).and_then(ConnectionId::new)
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

    /// The longest smoothed round-trip time of the paths that have proven themselves. So long what arrives on another path may have
    /// to wait for what was sent before it.
    #[inline]
    pub(crate) fn rtt_max(&self) -> Duration {
        match &*self.list {
            [only] => only.tuple.rtt.smoothed(),
            [first, others @ ..] => {
                let proven = others.iter().filter(|path| path.tuple.validated);
                proven.map(|path| path.tuple.rtt.smoothed()).fold(first.tuple.rtt.smoothed(), Duration::max)
            }
            [] => Duration::ZERO,
        }
    }

    /// Bytes that may be in flight until what was sent now is acknowledged on any path. Over several paths of different delays that
    /// is more than their windows: until the slowest has answered, the others have sent theirs several times.
    #[inline]
    pub(crate) fn flight(&self) -> u64 {
        match &*self.list {
            [only] => only.tuple.congestion.window_ahead(),
            paths => flight_of(paths, self.rtt_max()),
        }
    }

    /// As [`Paths::flight`], but the most that it may have become by then: whatever there is to send while a path searches for what
    /// it holds. A packet train that shows it lets the window leap there at once.
    pub(crate) fn flight_to_come(&self) -> u64 {
        let is_searching = self.list.iter().any(|path| path.tuple.congestion.is_searching());
        if is_searching { u64::MAX } else { self.flight() }
    }

    /// The payload of the largest 1-RTT packet that all paths carry which have proven themselves: any of them may be given it.
    pub(crate) fn datagram_room(&self) -> usize {
        match &*self.list {
            [only] => only.datagram_room(),
            paths => {
                let proven = paths.iter().filter(|path| path.tuple.validated);
                proven.map(Path::datagram_room).min().unwrap_or_else(|| self.list[0].datagram_room())
            }
        }
    }

    /// The address of the peer in the handshake.
    pub(crate) fn handshake_remote(&self) -> SocketAddr {
        self.multipath.as_ref().map_or(self.list[0].first_remote, |multipath| multipath.handshake_remote)
    }

    /// The path for what is said once: one that works, or at least one that has proven itself, if there is any.
    pub(crate) fn most_reliable(&self) -> &Path {
        let rank = |path: &&Path| (!path.tuple.validated, path.pto.backoff.count() > 0, path.id);
        self.list.iter().min_by_key(rank).unwrap_or(&self.list[0])
    }

    /// The path that is gone and to one of whose connection IDs a packet was sent that may have left before.
    pub(crate) fn draining_of(&self, dst: &ConnectionId) -> Option<PathId> {
        self.multipath.as_ref()?.abandoned.of_cid(dst)
    }

    /// Whether a datagram is for a path that is gone, as in [`draining_of`](Self::draining_of).
    pub(crate) fn is_late(&self, datagram: &[u8]) -> bool {
        self.multipath.is_some()
            && self.short_dst(datagram).is_some_and(|dst| self.draining_of(&dst).is_some())
    }

    /// The packet numbers of a path that is open, or is gone and may still have packets under way.
    pub(crate) fn numbers_of(&self, id: PathId) -> Option<&NumberSpace> {
        match self.get(id) {
            Some(path) => Some(&path.space),
            None => self.multipath.as_ref()?.abandoned.numbers_of(id),
        }
    }

    /// The path to which the packets to one of its connection IDs belong, open or not yet; `None` if it is gone. Without
    /// connection IDs there is one path.
    #[inline]
    pub(crate) fn of_cid(&self, dst: &ConnectionId) -> Option<PathId> {
        let Some(multipath) = &self.multipath else { return Some(self.list[0].id) };
        let open = self.list.iter().find(|path| path.local_cids.is_issued(dst));
        open.map(|path| path.id).or_else(|| multipath.unused_of(dst))
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

    /// The paths, and the extension beside them.
    pub(crate) fn with_multipath(&mut self) -> (&mut [Path], Option<&Multipath>) {
        (&mut self.list, self.multipath.as_deref())
    }

    /// How the frames of a kind of packet are written.
    #[inline]
    pub(crate) fn dialect_of(&self, kind: PacketKind) -> Dialect {
        match &self.multipath {
            Some(multipath) if kind == PacketKind::OneRtt => multipath.dialect,
            _ => Dialect::SinglePath,
        }
    }

    /// The paths beside this one on which unreliable datagrams leave, too, because the scheduler wants that.
    pub(crate) fn that_repeat_datagrams(&self, id: PathId) -> SmallVec<[PathId; 8]> {
        let repeats = self.multipath.as_ref().is_some_and(|multipath| multipath.repeats_datagrams());
        let others = self.list.iter().filter(|path| repeats && path.id != id);
        others.filter(|path| path.allowed.has(Pending::DATAGRAMS)).map(|path| path.id).collect()
    }

    /// Whether copies of datagrams wait for a path.
    pub(crate) fn copies_datagrams_to(&self, id: PathId) -> bool {
        self.multipath.as_ref().is_some_and(|multipath| multipath.copies.are_for(id))
    }

    /// Which path repair symbols, whose frames have `len` bytes at most, take for what the one at `index` carries: another one that
    /// works, has room for them, and brings them before what is lost could be sent again, if there is one. What is lost on a path
    /// does not take with it what repairs it then.
    pub(crate) fn for_repairs(&self, index: usize, len: usize) -> PathId {
        let this = &self.list[index];
        let rtt_max = this.tuple.rtt.smoothed() * REPAIR_RTTS;
        let suits = |path: &&Path| {
            let tuple = &path.tuple;
            path.id != this.id
                && tuple.validated
                && path.pto.backoff.count() == 0
                && tuple.rtt.has_sample()
                && tuple.rtt.smoothed() <= rtt_max
                && path.datagram_room() >= len
                && tuple.congestion.window_left() >= u64::from(tuple.mtu())
        };
        let others = self.list.iter().filter(suits);
        others.min_by_key(|path| path.tuple.rtt.smoothed()).unwrap_or(this).id
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

fn is_long(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & LONG_FORM != 0)
}

/// See [`Paths::flight`].
fn flight_of(paths: &[Path], longest: Duration) -> u64 {
    let windows = paths.iter().map(|path| {
        let rtt = path.tuple.rtt.smoothed().min(longest).as_micros().max(1);
        let window = u128::from(path.tuple.congestion.window_ahead());
        window.saturating_mul(longest.as_micros().max(rtt)) / rtt
    });
    windows.fold(0, |sum, window| sum.saturating_add(u64::try_from(window).unwrap_or(u64::MAX)))
}
