//! A UDP relay in user space that stands between a client and a server.
//!
//! It shapes each direction as a [`Link`] says, without privileges, and keeps count of what passes in
//! [`Traffic`]. One relay serves one client; a thread per direction does the work.

mod link;
mod traffic;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use self::link::Queue;
pub(crate) use self::link::{Link, Loss, Rate};
#[cfg(test)]
pub(super) use self::traffic::Amplification;
pub(super) use self::traffic::Traffic;

/// The longest a thread sleeps before it looks whether it is to end.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// What a socket holds while its thread waits for a processor: the longest queue of a link, as far as the system allows.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
/// The largest UDP datagram.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// What happens to datagrams on their way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    pub(crate) to_server: Link,
    pub(crate) to_client: Link,
}

impl Conditions {
    /// The same link in both directions.
    pub(crate) fn symmetric(link: Link) -> Self {
        Self { to_server: link.clone(), to_client: link }
    }
}

/// A running relay; it ends when dropped.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the two threads and the owner of the relay share.
struct Shared {
    /// Faces the client.
    front: UdpSocket,
    /// Faces the server, connected to it.
    back: UdpSocket,
    traffic: Mutex<Traffic>,
    stop: AtomicBool,
}

impl Relay {
    /// Starts a relay to `server`, with an address of the same host.
    pub(crate) fn start(server: SocketAddr, conditions: Conditions) -> io::Result<Self> {
        let host: IpAddr = server.ip();
        let shared = Arc::new(Shared {
            front: UdpSocket::bind((host, 0))?,
            back: UdpSocket::bind((host, 0))?,
            traffic: Mutex::new(Traffic::default()),
            stop: AtomicBool::new(false),
        });
        shared.back.connect(server)?;
        for socket in [&shared.front, &shared.back] {
            set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_BYTES)?;
            // Nothing waits for that long, as a socket is only read when it has something.
            socket.set_read_timeout(Some(SLEEP_MAX))?;
        }
        let threads =
            [(Direction::ToServer, conditions.to_server), (Direction::ToClient, conditions.to_client)]
                .map(|(direction, link)| {
                    let shared = shared.clone();
                    std::thread::spawn(move || shared.carry(direction, link))
                })
                .into();
        Ok(Self { shared, threads })
    }

    /// Where the client has to send.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.shared.front.local_addr()
    }

    /// What has passed so far.
    pub(super) fn traffic(&self) -> Traffic {
        self.shared.traffic().clone()
    }

    /// Datagrams that found the relay's sockets full, which no link was told to lose; `None` where the system does not tell.
    pub(crate) fn overflows(&self) -> Option<u64> {
        let table = std::fs::read_to_string("/proc/net/udp").ok()?;
        let sockets = [&self.shared.front, &self.shared.back];
        let ports =
            sockets.map(|socket| socket.local_addr().map(|address| address.port()).unwrap_or_default());
        Some(drops_at(&table, &ports))
    }

    /// Sends the largest protected datagram of the client once more.
    ///
    /// A server that has lost its state answers with a stateless reset, and one that has not drops a duplicate.
    pub(super) fn repeat_from_client(&self) {
        let datagram = self.shared.traffic().largest_protected.clone();
        // The server may be down at this moment, which the system reports as an error here.
        let _ = self.shared.back.send(&datagram);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

/// The sum of the last column of the lines whose socket is bound to one of these ports.
fn drops_at(table: &str, ports: &[u16]) -> u64 {
    let drops = |line: &str| {
        let port = line.split_whitespace().nth(1)?.split_once(':')?.1;
        let port = u16::from_str_radix(port, 16).ok().filter(|port| ports.contains(port));
        port.and(line.split_whitespace().next_back()?.parse::<u64>().ok())
    };
    table.lines().filter_map(drops).sum()
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    ToServer,
    ToClient,
}

impl Shared {
    /// The loop of one thread: takes datagrams in on one socket and lets them out on the other when they are due.
    fn carry(&self, direction: Direction, link: Link) {
        let mut queue = Queue::new(link);
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        while !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            while let Some(datagram) = queue.pop_due(now) {
                self.send(direction, &datagram);
            }
            let wait =
                queue.next_due().map_or(SLEEP_MAX, |due| due.saturating_duration_since(now).min(SLEEP_MAX));
            match self.receive(direction, &mut buffer, wait) {
                Ok(Some(len)) => {
                    if matches!(direction, Direction::ToClient) {
                        self.traffic().on_from_server(&buffer[..len]);
                    }
                    queue.push(Instant::now(), &buffer[..len]);
                }
                Ok(None) => {}
                Err(error) => {
                    eprintln!("the relay cannot receive: {error}");
                    return;
                }
            }
        }
    }

    /// Waits for a datagram; `None` when there was none in time.
    fn receive(&self, direction: Direction, buffer: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
        let socket = match direction {
            Direction::ToServer => &self.front,
            Direction::ToClient => &self.back,
        };
        // The timeout of a socket is rounded up to the ticks of the system, which are several datagrams long.
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match socket.recv_from(buffer) {
            Ok((len, from)) => {
                if matches!(direction, Direction::ToServer) {
                    self.traffic().client = Some(from);
                }
                Ok(Some(len))
            }
            // A refusal tells that the other end is gone, which some cases want.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock
                        | ErrorKind::TimedOut
                        | ErrorKind::ConnectionRefused
                        | ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn send(&self, direction: Direction, datagram: &[u8]) {
        // Whatever the system refuses to send is lost, as on any other network.
        let _ = match direction {
            Direction::ToServer => {
                // Counted before it is sent, so that the credit is never behind what the server knows.
                self.traffic().on_to_server(datagram);
                self.back.send(datagram)
            }
            Direction::ToClient => match self.traffic().client {
                Some(client) => self.front.send_to(datagram, client),
                None => Ok(0),
            },
        };
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests;
