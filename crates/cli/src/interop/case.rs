//! The test cases of the runner and what each asks of the two sides.

use crate::args::Cipher;
use crate::failure::Failure;
use crate::hq;

/// How a client divides the requests among connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// All over one.
    Together,
    /// Each over a connection of its own, one after the other.
    OneByOne,
    /// The first over one, all others over a second that resumes its session.
    Resumed,
    /// As before, and the requests of the second are early data.
    Early,
}

impl Course {
    /// Whether a second connection needs the session of the first.
    pub(super) fn resumes(self) -> bool {
        matches!(self, Self::Resumed | Self::Early)
    }
}

/// What a test case asks of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) course: Course,
    /// The only cipher suite that a client offers.
    pub(super) cipher: Option<Cipher>,
    /// Whether a server validates every address with a Retry.
    pub(super) retry: bool,
    /// Whether a client changes the keys on its way.
    pub(super) key_update: bool,
    /// Whether a client would like version 2, though it begins with version 1.
    pub(super) version_2: bool,
    /// Whether a server asks its clients to move to another address.
    pub(super) migration: bool,
    /// Whether files are moved over HTTP/3.
    pub(super) http3: bool,
}

impl Case {
    /// The case of a name. The runner asks for one that does not exist first, to see whether an endpoint knows its limits.
    pub(super) fn named(name: &str) -> Result<Self, Failure> {
        let plain = Self {
            course: Course::Together,
            cipher: None,
            retry: false,
            key_update: false,
            version_2: false,
            migration: false,
            http3: false,
        };
        Ok(match name {
            // What these are about happens in the network, or without being asked for.
            "ecn"
            | "handshake"
            | "transfer"
            | "longrtt"
            | "multiplexing"
            | "ipv6"
            | "blackhole"
            | "amplificationlimit"
            | "handshakecorruption"
            | "transfercorruption"
            | "transferloss"
            | "goodput"
            | "crosstraffic" => plain,
            "handshakeloss" | "multiconnect" => Self { course: Course::OneByOne, ..plain },
            "resumption" => Self { course: Course::Resumed, ..plain },
            "zerortt" => Self { course: Course::Early, ..plain },
            "keyupdate" => Self { key_update: true, ..plain },
            "connectionmigration" => Self { migration: true, ..plain },
            "v2" => Self { version_2: true, ..plain },
            "http3" => Self { http3: true, ..plain },
            "retry" => Self { retry: true, ..plain },
            "chacha20" => Self { cipher: Some(Cipher::Chacha20), ..plain },
            _ => return Err(Failure::UnsupportedCase(name.to_owned())),
        })
    }

    /// What a client speaks (ALPN).
    pub(super) fn protocol(self) -> &'static str {
        if self.http3 { "h3" } else { hq::PROTOCOL }
    }
}

#[cfg(test)]
mod tests;
