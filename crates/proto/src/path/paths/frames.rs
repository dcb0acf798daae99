//! Frames about the IDs of paths and the connection IDs of each (RFC 9000 §19.15, §19.16; RFC 10069 §4).

use std::collections::VecDeque;

use fulmar_wire::{
    ConnectionId, MaxPathId, NewConnectionId, PathCidsBlocked, PathId, PathsBlocked, RetireConnectionId,
    TransportParameters,
};

use super::Paths;
use crate::error::TransportError;
use crate::events::EndpointEventInner;

impl Paths {
    /// Whether a path ID that the peer names is not gone.
    ///
    /// # Errors
    /// It is above the limit.
    pub(crate) fn admits(&self, id: PathId) -> Result<bool, TransportError> {
        self.multipath.as_ref().map_or(Ok(true), |multipath| multipath.admits(id))
    }

    /// The peer acknowledges packets of a path that is not open.
    ///
    /// # Errors
    /// There never was one (RFC 9000 §13.1). What is said of one that is gone means nothing.
    pub(crate) fn check_never_sent(&self, id: PathId) -> Result<(), TransportError> {
        match self.admits(id)? {
            true => Err(TransportError::protocol_violation(
                "packets of a path were acknowledged that is not open",
            )),
            false => Ok(()),
        }
    }

    /// The peer issued a connection ID for a path, open or not.
    pub(crate) fn on_new_connection_id(
        &mut self,
        frame: &NewConnectionId,
        events: &mut VecDeque<EndpointEventInner>,
    ) -> Result<(), TransportError> {
        if !self.admits(frame.path)? {
            return Ok(());
        }
        if self.is_of_other_path(&frame.cid, frame.path) {
            return Err(TransportError::protocol_violation("a connection ID was issued for two paths"));
        }
        if let Some(path) = self.get_mut(frame.path) {
            path.remote_cids.on_new_connection_id(frame, events)?;
            path.on_cids_changed(events);
        } else if let Some(multipath) = &mut self.multipath {
            multipath.on_new_connection_id(frame, events)?;
        }
        Ok(())
    }

    /// Whether the peer has issued this connection ID for another path (RFC 10069 §3.2.1).
    fn is_of_other_path(&self, cid: &ConnectionId, id: PathId) -> bool {
        let open = self.list.iter().filter(|path| path.id != id);
        open.map(|path| &path.remote_cids).any(|cids| cids.holds(cid))
            || self.multipath.as_ref().is_some_and(|multipath| multipath.is_of_other_path(cid, id))
    }

    /// The peer retires one of the connection IDs of this end for a path. `used` is the one that the packet with the frame
    /// was sent to.
    pub(crate) fn on_retire_connection_id(
        &mut self,
        frame: &RetireConnectionId,
        used: &ConnectionId,
        events: &mut VecDeque<EndpointEventInner>,
    ) -> Result<(), TransportError> {
        let is_known = self.admits(frame.path)?;
        match self.local_cids_mut(frame.path) {
            Some(cids) => cids.on_retire(frame.sequence.get(), used, events),
            // The peer does not allow the path itself, so that it was given nothing to retire.
            None if is_known => {
                Err(TransportError::protocol_violation("a connection ID was retired of a path that has none"))
            }
            None => Ok(()),
        }
    }

    /// The peer allows larger path IDs.
    pub(crate) fn on_max_path_id(
        &mut self,
        frame: &MaxPathId,
        peer: Option<&TransportParameters>,
        events: &mut VecDeque<EndpointEventInner>,
    ) -> Result<(), TransportError> {
        let initial = peer.and_then(|peer| peer.initial_max_path_id).unwrap_or_default();
        self.multipath.as_mut().map_or(Ok(()), |multipath| multipath.on_max_path_id(frame, initial, events))
    }

    pub(crate) fn on_paths_blocked(&self, frame: &PathsBlocked) -> Result<(), TransportError> {
        self.admits(frame.max).map(|_| ())
    }

    pub(crate) fn on_cids_blocked(&mut self, frame: &PathCidsBlocked) -> Result<(), TransportError> {
        let next = self.local_cids_mut(frame.path).map(|cids| cids.next_sequence());
        self.multipath.as_ref().map_or(Ok(()), |multipath| multipath.on_cids_blocked(frame, next))
    }
}
