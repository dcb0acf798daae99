//! What the attackers send, and from where: each datagram has another address of the loopback network.

use std::fmt;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use fulmar_base::Rng;

use crate::Result;
use crate::interop::readdress_initial;
use crate::process::Process;

/// Sockets at a time; each datagram goes out of the next one, which is then replaced by one with another address.
const SOCKETS: usize = 64;
/// The least that a client's first datagram has (RFC 9000 §14.1).
const INITIAL_BYTES: usize = 1200;
/// How long a client may take to send its first datagram.
const PATIENCE: Duration = Duration::from_secs(5);
const SEED: u64 = 4711;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Attack {
    /// The beginnings of handshakes, authentic and each of a connection of its own, that never go on.
    Initials,
    /// Initial packets that fail authentication.
    Garbage,
    /// Packets of versions that nobody speaks, each of which may be answered by a version negotiation.
    Versions,
    /// Packets of connections that nobody knows, each of which may be answered by a stateless reset.
    Strays,
    /// Datagrams without a byte.
    Empty,
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// An attacker that is ready.
pub(super) struct Flood {
    attack: Attack,
    server: SocketAddr,
    rng: Rng,
    sockets: Vec<UdpSocket>,
    /// The first datagram of a real client.
    hello: Vec<u8>,
}

impl Flood {
    pub(super) fn prepare(attack: Attack, server: SocketAddr, fulmar: &Path, dir: &Path) -> Result<Self> {
        let mut rng = Rng::from_u64(SEED);
        let sockets = (0..SOCKETS).map(|_| socket(&mut rng)).collect::<Result<_>>()?;
        let hello = if attack == Attack::Initials { record_hello(fulmar, dir)? } else { Vec::new() };
        Ok(Self { attack, server, rng, sockets, hello })
    }

    /// Sends until it is stopped; gives how many datagrams went out.
    pub(super) fn run(&mut self, rate: u32, stop: &AtomicBool) -> Result<u64> {
        let start = Instant::now();
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * f64::from(rate)) as u64;
            while sent < due {
                self.send(sent as usize % SOCKETS)?;
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(sent)
    }

    fn send(&mut self, place: usize) -> Result<()> {
        let datagram = self.datagram()?;
        match self.sockets[place].send_to(&datagram, self.server) {
            Ok(_) => {}
            // What the system does not take is lost, as on any other way.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
            Err(error) => return Err(error.into()),
        }
        self.sockets[place] = socket(&mut self.rng)?;
        Ok(())
    }

    fn datagram(&mut self) -> Result<Vec<u8>> {
        let mut cid = [0; 8];
        self.rng.fill(&mut cid);
        Ok(match self.attack {
            Attack::Initials => {
                readdress_initial(&self.hello, cid).ok_or("the first packet of a client cannot be read")?
            }
            Attack::Garbage => self.long_header(1, cid),
            Attack::Versions => self.long_header(0x0a1a_2a3a, cid),
            Attack::Strays => {
                let mut bytes = self.noise(100);
                bytes[0] = 0x40 | bytes[0] & 0x3f;
                bytes
            }
            Attack::Empty => Vec::new(),
        })
    }

    /// An Initial packet of a version, with noise for its inside.
    fn long_header(&mut self, version: u32, cid: [u8; 8]) -> Vec<u8> {
        let mut bytes = vec![0xc3];
        bytes.extend(version.to_be_bytes());
        bytes.push(8);
        bytes.extend(cid);
        // No source, no token, then the length of what follows.
        bytes.extend([0, 0]);
        let rest = INITIAL_BYTES - bytes.len() - 2;
        bytes.extend((0x4000 | rest as u16).to_be_bytes());
        bytes.extend(self.noise(rest));
        bytes
    }

    fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill(&mut bytes);
        bytes
    }
}

/// A socket with an address that is likely to be new.
fn socket(rng: &mut Rng) -> Result<UdpSocket> {
    let mut bytes = [0; 2];
    rng.fill(&mut bytes);
    let address = Ipv4Addr::new(127, 1, bytes[0], bytes[1].clamp(1, 254));
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Lets a client dial a socket that never answers.
fn record_hello(fulmar: &Path, dir: &Path) -> Result<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let address = socket.local_addr()?.to_string();
    let mut command = Command::new(fulmar);
    command.args(["perf", "client", &address, "--insecure", "--download", "1"]);
    let _client = Process::start(command, dir, "hello")?;
    let mut buffer = vec![0; 2 * INITIAL_BYTES];
    let len = socket.recv(&mut buffer)?;
    buffer.truncate(len);
    Ok(buffer)
}
