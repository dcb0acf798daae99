//! Differentiated services code points (RFC 2474).

use std::fmt;

/// A differentiated services code point: the upper six bits of the IPv4 TOS field or the IPv6 traffic class, which tell
/// routers how to treat a packet. 0, the default, is the usual treatment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// Expedited forwarding, for what must not wait (RFC 3246).
    pub const EF: Self = Self(46);
    /// Lower effort, for what may wait for all others (RFC 8622).
    pub const LE: Self = Self(1);

    /// A code point; `None` if it is above 63.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The number, at most 63.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The whole byte of the IP header, with these ECN bits.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "code points are for Linux"))]
    pub(crate) const fn with_ecn(self, ecn: u8) -> u8 {
        self.0 << 2 | ecn & 0b11
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
