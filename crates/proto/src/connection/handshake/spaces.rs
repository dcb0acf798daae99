//! The packet number spaces of the handshake, which are discarded with their keys (RFC 9001 §4.9).

use crate::ids::SpaceId;
use crate::space::NumberSpace;

/// The spaces of the handshake, while they last. They send over the tuple of path 0.
#[derive(Debug)]
pub(in crate::connection) struct HandshakeSpaces {
    pub(in crate::connection) initial: Option<Box<NumberSpace>>,
    pub(in crate::connection) handshake: Option<Box<NumberSpace>>,
}

impl HandshakeSpaces {
    /// The space of Initial or Handshake packets, if it is not discarded.
    pub(in crate::connection) fn get(&self, space: SpaceId) -> Option<&NumberSpace> {
        match space {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Data(_) => None,
        }
    }

    pub(in crate::connection) fn get_mut(&mut self, space: SpaceId) -> Option<&mut NumberSpace> {
        match space {
            SpaceId::Initial => self.initial.as_deref_mut(),
            SpaceId::Handshake => self.handshake.as_deref_mut(),
            SpaceId::Data(_) => None,
        }
    }

    /// Whether the handshake is over: both were discarded.
    #[inline]
    pub(in crate::connection) fn are_discarded(&self) -> bool {
        self.initial.is_none() && self.handshake.is_none()
    }

    /// Those that there are.
    pub(in crate::connection) fn iter(&self) -> impl Iterator<Item = (SpaceId, &NumberSpace)> {
        let named = [(SpaceId::Initial, &self.initial), (SpaceId::Handshake, &self.handshake)];
        named.into_iter().filter_map(|(id, space)| Some((id, space.as_deref()?)))
    }

    pub(in crate::connection) fn discard(&mut self, space: SpaceId) {
        match space {
            SpaceId::Initial => self.initial = None,
            SpaceId::Handshake => self.handshake = None,
            SpaceId::Data(_) => {}
        }
    }
}
