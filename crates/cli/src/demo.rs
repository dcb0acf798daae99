//! `fulmar demo`: a server and a client in one process, and every byte between them verified.
//!
//! Each side has a thread and a socket of its own, so that the figures of one are not mixed with the other's. The
//! main thread only watches.

mod side;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fulmar::Connection;
use indicatif::ProgressBar;
use tokio::sync::oneshot;

use crate::args::{DemoArgs, TransportArgs};
use crate::duration::Span;
use crate::failure::Failure;
use crate::net::{Bind, Figures, PathFigures, Transport};
use crate::progress::Bars;
use crate::report::{self, Output, Transfer, Verified};
use crate::size::{Rate, Size};
use crate::tls::Identity;

use self::side::{Client, Received, Sent, Server};

/// Where the paths of the client begin, with `--multipath`.
const PATHS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))];

/// How often the bar is brought up to date.
const TICK: Duration = Duration::from_millis(100);

/// What both sides and the watcher share.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes that the client has received.
    received: AtomicU64,
    /// The server's end of the connection, which knows about congestion and losses.
    connection: OnceLock<Connection>,
}

/// Moves the bytes and tells how it went. Fails unless all of them arrived as they were sent. An interrupt ends the transfer, and
/// what it came to until then is printed.
pub(crate) fn run(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    let progress = Arc::new(Progress::default());
    let transport =
        Transport::from_args(&args.transport)?.with_multipath(args.multipath, args.scheduler, None);
    let identity = Identity::self_signed()?;
    let fingerprint = identity.fingerprint();
    let (stop, stopped) = oneshot::channel();
    let (address, server) = start_server(identity, transport.clone(), progress.clone(), stopped)?;
    let client = start_client(Client {
        address,
        pin: fingerprint,
        size: args.size,
        transport: transport.clone(),
        binds: if args.multipath { PATHS.map(Bind::Ip).to_vec() } else { Vec::new() },
        progress: progress.clone(),
        output,
    })?;

    watch(&client, args.size, &progress, &Bars::new(output.wants_bars()));
    let received = join("client", client);
    // However the client ended, the server has nothing left to do.
    drop(stop);
    let sent = join("server", server);
    let (received, sent) = match (received, sent) {
        (Ok(received), Ok(sent)) => (received, sent),
        (Err(failure), _) | (_, Err(failure)) => return Err(failure),
    };
    conclude(args, &sent, &received, output)
}

/// Starts the server and waits until it listens.
fn start_server(
    identity: Identity,
    transport: Transport,
    progress: Arc<Progress>,
    stopped: oneshot::Receiver<()>,
) -> Result<(SocketAddr, JoinHandle<Result<Sent, Failure>>), Failure> {
    let (listening, at) = mpsc::channel();
    let server = Server { identity, transport, progress, listening, stopped };
    let thread = spawn("server", move || server.run())?;
    match at.recv() {
        Ok(address) => Ok((address, thread)),
        // It ended without listening; its result tells why.
        Err(_) => Err(join("server", thread).err().unwrap_or(Failure::Thread("server"))),
    }
}

fn start_client(client: Client) -> Result<JoinHandle<Result<Received, Failure>>, Failure> {
    spawn("client", move || client.run())
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map_err(Failure::io("cannot start a thread"))
}

fn join<T>(name: &'static str, thread: JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    thread.join().unwrap_or(Err(Failure::Thread(name)))
}

/// Shows the progress until the client is done.
fn watch<T>(client: &JoinHandle<T>, size: u64, progress: &Progress, bars: &Bars) {
    let bar = bars.with_size(size);
    let mut paths = PathBars { bars, size, shown: Vec::new() };
    let mut shown = 0;
    while !client.is_finished() {
        thread::sleep(TICK);
        shown = show(&bar, progress, shown);
        if let Some(connection) = progress.connection.get().filter(|connection| connection.is_multipath()) {
            paths.show(connection);
        }
    }
    bar.finish_and_clear();
    paths.shown.iter().for_each(|(_, bar)| bar.finish_and_clear());
}

/// A bar for each path of the sender: its share of what is to be moved.
struct PathBars<'a> {
    bars: &'a Bars,
    size: u64,
    shown: Vec<(u32, ProgressBar)>,
}

impl PathBars<'_> {
    fn show(&mut self, connection: &Connection) {
        for path in connection.paths() {
            let Some(figures) = path.stats().map(|stats| PathFigures::of(&stats)) else { continue };
            let bar = match self.shown.iter().find(|(id, _)| *id == figures.id) {
                Some((_, bar)) => bar.clone(),
                None => {
                    let bar = self.bars.with_size(self.size);
                    self.shown.push((figures.id, bar.clone()));
                    bar
                }
            };
            bar.set_position(figures.bytes_sent.min(self.size));
            bar.set_message(format!(
                "path {} to {}  rtt {:.1} ms  cwnd {}",
                figures.id,
                figures.remote.ip(),
                figures.rtt_ms,
                Size(figures.window_bytes)
            ));
        }
    }
}

/// Brings the bar up to date, given what it showed a tick ago.
fn show(bar: &ProgressBar, progress: &Progress, before: u64) -> u64 {
    let received = progress.received.load(Ordering::Relaxed);
    bar.set_position(received);
    if let Some(connection) = progress.connection.get() {
        let Figures { rtt, window_bytes, packets_lost, .. } = Figures::of(connection);
        bar.set_message(format!(
            "{}  rtt {}  cwnd {}  lost {packets_lost}",
            Rate { bytes: received - before, duration: TICK },
            Span(rtt),
            Size(window_bytes),
        ));
    }
    received
}

/// Compares what was sent with what arrived, and prints the summary.
fn conclude(args: &DemoArgs, sent: &Sent, received: &Received, output: Output) -> Result<(), Failure> {
    let is_same = received.bytes == args.size && sent.checksum == Some(received.checksum);
    let verified = is_same.then_some(Verified::Crc32);
    let moved = (received.bytes, received.duration);
    let transfer = Transfer {
        // Both ends are in this process, in a thread each.
        packets_sent: sent.figures.packets_sent,
        packets_lost: sent.figures.packets_lost,
        cpu_s_client: received.cpu.map(|cpu| cpu.as_secs_f64()),
        cpu_s_server: sent.cpu.map(|cpu| cpu.as_secs_f64()),
        fec: sent.figures.fec,
        paths: sent.paths.clone(),
        ..Transfer::of("demo", moved, received.handshake, &received.figures, verified)
    };
    output.print(&transfer, || summary(&args.transport, &transfer, sent, received));
    if is_same {
        return Ok(());
    }
    if received.interrupted {
        return Err(Failure::Interrupted);
    }
    let expected = sent.checksum.map_or("an unknown one".to_owned(), |checksum| format!("{checksum:08x}"));
    Err(Failure::NotVerified(format!(
        "the bytes that arrived are not those that were sent: {} of {}, checksum {:08x} instead of {expected}",
        received.bytes, args.size, received.checksum
    )))
}

fn summary(transport: &TransportArgs, transfer: &Transfer, sent: &Sent, received: &Received) -> String {
    let cpu = |cpu: Option<Duration>| match cpu {
        // Of less, the figure would be the handshake's.
        Some(cpu) if transfer.bytes < 1_000_000 => Span(cpu).to_string(),
        Some(cpu) => format!("{:.2} s per GB", report::cpu_s_per_gb(cpu, transfer.bytes)),
        None => "unknown".to_owned(),
    };
    let verdict = match transfer.verified {
        Some(_) => format!("verified (crc32 {:08x})", received.checksum),
        // Only the whole has a checksum to compare with.
        None if received.interrupted => "interrupted".to_owned(),
        None => format!("NOT VERIFIED (crc32 {:08x})", received.checksum),
    };
    let mut lines = vec![
        format!(
            "{} in {}: {}, {verdict}",
            Size(transfer.bytes),
            Span(received.duration),
            Rate { bytes: transfer.bytes, duration: received.duration },
        ),
        format!("  processor   server {}, client {}", cpu(sent.cpu), cpu(received.cpu)),
        format!("  handshake   {}", Span(received.handshake)),
        format!("  round trip  {} at least", Span(received.figures.rtt_min)),
        format!("  packets     {} sent, {} lost", transfer.packets_sent, transfer.packets_lost),
        format!("  congestion  {}", format!("{:?}", transport.cc).to_lowercase()),
    ];
    lines.extend(transfer.paths.iter().map(|path| {
        let (sent, rtt) = (Size(path.bytes_sent), path.rtt_ms);
        format!("  path {}      {sent} to {}, rtt {rtt:.1} ms", path.id, path.remote.ip())
    }));
    lines.join("\n")
}
