//! The rows of the battery: against which server, how often, and by whom.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use fulmar_base::Rng;

use super::Attacker;
use super::client::Profile;
use super::crowd::{Crowd, Handshakes, Manner, Resets};
use super::flood::{Flood, Kind};
use super::frames::{Chatter, Violations};
use super::honest::ANSWER_BYTES;
use super::proofs::{Replays, Tickets, TokenKind, Tokens};
use crate::Result;

/// Clients that hold on at the same time.
const STALLED_MAX: usize = 200;
const SLOW_READERS_MAX: usize = 200;
const LORIS_MAX: usize = 500;
/// Each begins a handshake, and where no Retry is asked for that is work.
const TICKETS_PER_SECOND: u32 = 5_000;
const SEED: u64 = 4711;
/// The names of the files that `fulmar serve` has.
pub(super) const SMALL_FILE: &str = "small";
pub(super) const LARGE_FILE: &str = "large";

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Row {
    /// Authentic beginnings of handshakes that never go on, each from another address: a Retry must be seen
    Initials,
    /// Initial packets that fail authentication
    Garbage,
    /// Versions that nobody speaks; the server's answers are thrown back at it
    Versions,
    /// Packets of unknown connections; the stateless resets are thrown back, and are few
    Strays,
    /// Datagrams without a byte
    Empty,
    /// Authentic Initial packets with bad packets behind them: a million datagrams
    Spoiled,
    /// Handshake data with gaps and far ahead: CRYPTO_BUFFER_EXCEEDED
    Crypto,
    /// Illegal frames under the right keys: each ends its connection with the right error
    Violations,
    /// Legal frames without end under the right keys: challenges, limits, complaints, pings
    Frames,
    /// Streams that are opened and reset at once
    Resets,
    /// Clients that ask for a great deal and then acknowledge nothing, more and more of them
    Stalled,
    /// Clients that ask for a great deal and read a byte now and then
    SlowReaders,
    /// Clients whose requests never end
    Loris,
    /// Complete handshakes, 100,000 of them
    Handshakes,
    /// Tokens of a Retry: damaged, cut, from another address, for another connection
    RetryTokens,
    /// Tokens of earlier connections: damaged, cut, from another host, used twice
    EarlierTokens,
    /// Sealed session tickets with each bit turned
    Tickets,
    /// First flights with early data that are replayed
    EarlyData,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// The server of a row, and what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// `fulmar perf server`.
    Perf,
    /// `fulmar serve` with these options.
    Files(&'static [&'static str]),
}

impl Service {
    pub(super) fn protocol(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::Files(_) => "hq-interop",
        }
    }

    /// What is answered by [`ANSWER_BYTES`].
    pub(super) fn small_request(self) -> Vec<u8> {
        match self {
            Self::Perf => ANSWER_BYTES.to_be_bytes().to_vec(),
            Self::Files(_) => format!("GET /{SMALL_FILE}\r\n").into_bytes(),
        }
    }

    fn large_request(self) -> Vec<u8> {
        match self {
            Self::Perf => (1_u64 << 40).to_be_bytes().to_vec(),
            Self::Files(_) => format!("GET /{LARGE_FILE}\r\n").into_bytes(),
        }
    }
}

/// What an attacker needs to know.
pub(super) struct Target<'a> {
    pub(super) address: SocketAddr,
    pub(super) profile: &'a Profile,
    /// The server's line for each request.
    pub(super) log: &'a Path,
}

impl Row {
    pub(super) fn service(self) -> Service {
        match self {
            // What is written for these clients has to be real memory of the server.
            Self::Stalled | Self::SlowReaders => Service::Files(&[]),
            Self::RetryTokens | Self::EarlierTokens => Service::Files(&["--retry", "always"]),
            // Thousands of handshakes that never end must not bring a Retry.
            Self::Tickets => {
                Service::Files(&["--retry", "never", "--sealed-tickets", "--token-keys", "keys"])
            }
            Self::EarlyData => Service::Files(&["--retry", "never"]),
            _ => Service::Perf,
        }
    }

    /// Blows per second while latencies are measured; `None` for as many as one core can send.
    pub(super) fn rate(self) -> Option<u32> {
        (self == Self::Tickets).then_some(TICKETS_PER_SECOND)
    }

    /// Blows in all; what the measurement leaves is done as fast as can be.
    pub(super) fn total(self, is_quick: bool) -> u64 {
        match (self, is_quick) {
            (Self::Spoiled, false) => 1_000_000,
            (Self::Handshakes, false) => 100_000,
            // Ten streams each.
            (Self::Handshakes | Self::Spoiled, true) | (Self::Resets, false) => 10_000,
            (Self::Violations, _) => 50,
            // Every bit and every byte of a token at least once.
            (Self::RetryTokens | Self::EarlierTokens, _) => 1_500,
            (Self::EarlyData, _) => 80,
            _ => 0,
        }
    }

    /// What a blow is.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Resets => "blows",
            Self::Stalled | Self::SlowReaders | Self::Loris => "clients",
            Self::Violations => "connections",
            Self::Handshakes => "handshakes",
            Self::RetryTokens | Self::EarlierTokens => "tokens",
            Self::Tickets => "tickets",
            Self::EarlyData => "flights",
            _ => "datagrams",
        }
    }

    pub(super) fn attacker(self, target: &Target<'_>) -> Result<Box<dyn Attacker>> {
        let Target { address: server, profile, log } = *target;
        let rng = Rng::from_u64(SEED);
        let flood = |kind| Flood::new(kind, profile, server, Rng::from_u64(SEED));
        let crowd = |manner, max| {
            let request = self.service().large_request();
            Crowd::new(manner, profile, server, &request, max, Rng::from_u64(SEED))
        };
        Ok(match self {
            Self::Initials => Box::new(flood(Kind::Initials)?),
            Self::Garbage => Box::new(flood(Kind::Garbage)?),
            Self::Versions => Box::new(flood(Kind::Versions)?),
            Self::Strays => Box::new(flood(Kind::Strays)?),
            Self::Empty => Box::new(flood(Kind::Empty)?),
            Self::Spoiled => Box::new(flood(Kind::Spoiled)?),
            Self::Crypto => Box::new(flood(Kind::Crypto)?),
            Self::Violations => Box::new(Violations::new(profile, server, rng)),
            Self::Frames => Box::new(Chatter::new(profile, server, rng)?),
            Self::Resets => Box::new(Resets::new(profile, server, &self.service().small_request(), rng)?),
            Self::Stalled => Box::new(crowd(Manner::Stalled, STALLED_MAX)),
            Self::SlowReaders => Box::new(crowd(Manner::SlowReaders, SLOW_READERS_MAX)),
            Self::Loris => Box::new(crowd(Manner::Loris, LORIS_MAX)),
            Self::Handshakes => Box::new(Handshakes::new(profile, server, rng)),
            Self::RetryTokens => Box::new(Tokens::new(TokenKind::Retry, profile, server, rng)?),
            Self::EarlierTokens => Box::new(Tokens::new(TokenKind::Earlier, profile, server, rng)?),
            Self::Tickets => Box::new(Tickets::new(profile, server, rng)),
            Self::EarlyData => Box::new(Replays::new(profile, server, PathBuf::from(log), rng)),
        })
    }
}
