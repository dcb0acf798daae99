//! Datagrams that are made up, from many addresses.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fulmar_base::Rng;
use fulmar_proto::TransportErrorCode;
use fulmar_wire::{ProtectedKind, Version, read_packet};

use super::Attacker;
use super::client::{Client, Profile, any_socket, receive_from, send_to};
use super::packets::{Answer, Hello, INITIAL_BYTES, crypto};
use crate::Result;

/// Sockets at a time: each is used in turn.
const SOCKETS: usize = 64;
/// How many bytes a server may send to an address that has proven nothing, for each byte from there (RFC 9000 §8.1).
const AMPLIFICATION_MAX: u64 = 3;
/// `EndpointConfig::max_stateless_resets` of the server.
const RESETS_PER_SECOND: f64 = 200.0;
/// A version that nobody speaks.
const NO_VERSION: u32 = 0x0a1a_2a3a;
/// More than any server keeps of a handshake that has a gap.
const FAR_OFFSET: u64 = 1 << 20;
/// Pieces of a handshake with a gap before each: more than a server keeps, in two datagrams.
const PIECES: u64 = 200;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Initials,
    Garbage,
    Versions,
    Strays,
    Empty,
    Spoiled,
    Crypto,
}

/// A flood of datagrams of one kind.
pub(super) struct Flood {
    kind: Kind,
    server: SocketAddr,
    rng: Rng,
    sockets: Vec<Source>,
    /// The socket whose turn it is.
    turn: usize,
    hello: Hello,
    begin: Option<Instant>,
    tally: Tally,
}

struct Source {
    socket: UdpSocket,
    /// Where its last datagram went to.
    dst: [u8; 8],
}

/// What was sent and what came back.
#[derive(Debug, Default)]
struct Tally {
    /// Datagrams that were made up; those that are thrown back do not count.
    sent: u64,
    sent_bytes: u64,
    received_bytes: u64,
    answers: u64,
    retries: u64,
    /// Handshakes that the server went on with although nothing was proven.
    handshakes: u64,
    closed_well: u64,
    closed_otherwise: Vec<TransportErrorCode>,
    /// The largest answer to a packet of an unknown connection.
    reset_bytes_max: usize,
}

impl Flood {
    pub(super) fn new(kind: Kind, profile: &Profile, server: SocketAddr, mut rng: Rng) -> Result<Self> {
        let sockets = (0..SOCKETS).map(|_| Source::new(&mut rng)).collect::<Result<_>>()?;
        let flight = Client::new(profile, server, &mut rng)?.take_flight();
        let hello = Hello::of(&flight).ok_or("the first flight of a client cannot be read")?;
        let tally = Tally::default();
        Ok(Self { kind, server, rng, sockets, turn: 0, hello, begin: None, tally })
    }

    /// The datagrams of one blow.
    fn datagrams(&mut self, dst: [u8; 8]) -> Vec<Vec<u8>> {
        vec![match self.kind {
            Kind::Initials => self.hello.datagram(&dst, &[]),
            Kind::Garbage => self.long_header(Version::V1.0, dst, INITIAL_BYTES),
            Kind::Versions => self.long_header(NO_VERSION, dst, INITIAL_BYTES),
            Kind::Strays => {
                let mut bytes = self.noise(100);
                bytes[0] = 0x40 | bytes[0] & 0x3f;
                bytes
            }
            Kind::Empty => Vec::new(),
            Kind::Spoiled => self.spoiled(dst),
            Kind::Crypto => return self.gaps(dst),
        }]
    }

    /// An authentic Initial packet, followed by others that are none, for the same connection and for others.
    fn spoiled(&mut self, dst: [u8; 8]) -> Vec<u8> {
        let mut bytes = self.hello.initial(&dst, &[], 0, &crypto(0, &self.hello.message), 0);
        let other = self.rng.bytes();
        let handshake = |mut packet: Vec<u8>| {
            packet[0] = 0xe0 | packet[0] & 0x0f;
            packet
        };
        while bytes.len() + 80 < INITIAL_BYTES {
            let trailer = match self.rng.below(5) {
                0 => self.long_header(Version::V1.0, dst, 80),
                1 => self.long_header(Version::V1.0, other, 80),
                2 => handshake(self.long_header(Version::V1.0, dst, 80)),
                3 => handshake(self.long_header(Version::V1.0, other, 80)),
                _ => self.long_header(Version::V2.0, dst, 80),
            };
            bytes.extend(trailer);
        }
        let rest = INITIAL_BYTES.saturating_sub(bytes.len());
        bytes.extend(self.noise(rest));
        bytes
    }

    /// Handshake data with gaps: far beyond what is kept, or in more pieces than are kept.
    fn gaps(&mut self, dst: [u8; 8]) -> Vec<Vec<u8>> {
        if self.rng.chance(0.5) {
            let frames = crypto(FAR_OFFSET, b"x");
            return vec![self.hello.initial(&dst, &[], 0, &frames, INITIAL_BYTES)];
        }
        let pieces = |numbers: std::ops::Range<u64>| -> Vec<u8> {
            numbers.flat_map(|n| crypto(1 + 2 * n, b"x")).collect()
        };
        let [first, second] = [pieces(0..PIECES), pieces(PIECES..2 * PIECES)];
        vec![
            self.hello.initial(&dst, &[], 0, &first, INITIAL_BYTES),
            self.hello.initial(&dst, &[], 1, &second, INITIAL_BYTES),
        ]
    }

    /// An Initial packet of a version, with noise for its inside.
    fn long_header(&mut self, version: u32, cid: [u8; 8], len: usize) -> Vec<u8> {
        let mut bytes = vec![0xc3];
        bytes.extend(version.to_be_bytes());
        bytes.push(8);
        bytes.extend(cid);
        // No source, no token, then the length of what follows.
        bytes.extend([0, 0]);
        let rest = len - bytes.len() - 2;
        bytes.extend((0x4000 | rest as u16).to_be_bytes());
        bytes.extend(self.noise(rest));
        bytes
    }

    fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill(&mut bytes);
        bytes
    }

    /// Takes what has come back to a socket.
    fn collect(&mut self, place: usize) -> Result<()> {
        let mut buffer = [0; 2048];
        while let Some((len, _)) = receive_from(&self.sockets[place].socket, &mut buffer)? {
            let answer = &buffer[..len];
            self.tally.answers += 1;
            self.tally.received_bytes += len as u64;
            self.tally.count(self.kind, answer, &self.sockets[place].dst);
            if self.is_thrown_back() {
                // Two that answer each other must fall silent.
                self.tally.sent_bytes += len as u64;
                send_to(&self.sockets[place].socket, answer, self.server)?;
            }
        }
        Ok(())
    }

    /// Whether the server gets its own answers.
    fn is_thrown_back(&self) -> bool {
        matches!(self.kind, Kind::Versions | Kind::Strays)
    }

    fn seconds(&self) -> f64 {
        self.begin.map_or(0.0, |begin| begin.elapsed().as_secs_f64())
    }
}

impl Tally {
    fn count(&mut self, kind: Kind, answer: &[u8], dst: &[u8]) {
        match kind {
            Kind::Crypto => match Answer::read(answer, dst) {
                Answer::Closed(TransportErrorCode::CRYPTO_BUFFER_EXCEEDED) => self.closed_well += 1,
                Answer::Closed(code) => self.closed_otherwise.push(code),
                Answer::Retry { .. } => self.retries += 1,
                Answer::GoesOn { .. } | Answer::Other => {}
            },
            Kind::Strays => self.reset_bytes_max = self.reset_bytes_max.max(answer.len()),
            _ => match read_packet(answer, 8).map(|packet| packet.kind) {
                Ok(ProtectedKind::Retry { .. }) => self.retries += 1,
                Ok(ProtectedKind::Initial { .. }) => self.handshakes += 1,
                _ => {}
            },
        }
    }
}

impl Attacker for Flood {
    fn strike(&mut self) -> Result<bool> {
        self.begin.get_or_insert_with(Instant::now);
        let place = self.turn;
        self.turn = (place + 1) % SOCKETS;
        self.collect(place)?;
        if !self.is_thrown_back() {
            self.sockets[place] = Source::new(&mut self.rng)?;
        }
        let dst = self.rng.bytes();
        self.sockets[place].dst = dst;
        for datagram in self.datagrams(dst) {
            self.tally.sent += 1;
            self.tally.sent_bytes += datagram.len() as u64;
            send_to(&self.sockets[place].socket, &datagram, self.server)?;
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        std::thread::sleep(Duration::from_millis(100));
        (0..SOCKETS).try_for_each(|place| self.collect(place))?;
        let tally = &self.tally;
        let mut findings = Vec::new();
        if tally.received_bytes > AMPLIFICATION_MAX * tally.sent_bytes {
            findings.push(format!("{} bytes were answered by {}", tally.sent_bytes, tally.received_bytes));
        }
        if matches!(self.kind, Kind::Initials | Kind::Spoiled) && tally.retries == 0 {
            findings.push("nobody was asked to prove its address".to_owned());
        }
        if self.kind == Kind::Crypto {
            if tally.closed_well == 0 {
                findings.push("nothing was closed with CRYPTO_BUFFER_EXCEEDED".to_owned());
            }
            findings.extend(tally.closed_otherwise.iter().take(3).map(|code| format!("closed with {code}")));
        }
        let resets_max = RESETS_PER_SECOND * (self.seconds() + 1.0);
        if self.kind == Kind::Strays && tally.answers as f64 > resets_max {
            findings.push(format!("{} stateless resets in {:.1} s", tally.answers, self.seconds()));
        }
        if self.is_thrown_back() && tally.answers > tally.sent {
            findings.push(format!("{} datagrams brought {} answers", tally.sent, tally.answers));
        }
        if matches!(self.kind, Kind::Garbage | Kind::Empty) && tally.answers > 0 {
            findings.push(format!("{} answers to what is no packet", tally.answers));
        }
        Ok(findings)
    }

    fn remark(&self) -> String {
        let tally = &self.tally;
        match self.kind {
            Kind::Initials | Kind::Spoiled => {
                format!("{} Retry packets, {} handshakes begun", tally.retries, tally.handshakes)
            }
            Kind::Crypto => {
                format!(
                    "{} closed with CRYPTO_BUFFER_EXCEEDED, {} Retry packets",
                    tally.closed_well, tally.retries
                )
            }
            Kind::Strays => format!(
                "{} stateless resets in {:.1} s, of at most {} bytes",
                tally.answers,
                self.seconds(),
                tally.reset_bytes_max
            ),
            Kind::Versions => format!("{} answers, thrown back", tally.answers),
            Kind::Garbage | Kind::Empty => format!("{} answers", tally.answers),
        }
    }
}

impl Source {
    fn new(rng: &mut Rng) -> Result<Self> {
        Ok(Self { socket: any_socket(rng)?, dst: [0; 8] })
    }
}
