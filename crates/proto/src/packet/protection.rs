//! What forward erasure correction does for data, and what may share a packet because of it.

/// How forward erasure correction protects the data of a stream, or an unreliable datagram.
///
/// A packet has data of one kind of protection only. Repair symbols are over all that was protected lately, whichever way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Not at all: a lost packet is sent again, or not, as ever.
    None,
    /// By repair symbols when nothing else is to be sent, as with [`FecMode::Tail`](crate::FecMode::Tail).
    Tail,
    /// By repair symbols after every block of packets, as with [`FecMode::Constant`](crate::FecMode::Constant): with its numbers if
    /// that is the mode of the connection, and else with one for every ten packets.
    Constant,
    /// By as many repair symbols as let it arrive in time, as with [`FecMode::Deadline`](crate::FecMode::Deadline): in its time if that
    /// is the mode of the connection, and else in 150 ms.
    Deadline,
}

/// The kinds of protection that a connection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protections {
    /// That of data of which nothing else was said.
    pub(crate) default: Protection,
    /// The only one besides none, if there is no choice.
    pub(crate) only: Option<Protection>,
}

impl Protections {
    /// The protection of data for which this was chosen.
    pub(crate) fn of(self, chosen: Option<Protection>) -> Protection {
        match chosen.unwrap_or(self.default) {
            Protection::None => Protection::None,
            other => self.only.unwrap_or(other),
        }
    }
}
