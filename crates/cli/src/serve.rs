//! `fulmar serve`: the files of a directory over HTTP/3, HTTP/2, HTTP/1.1 and HTTP/0.9.
//!
//! | file | owns |
//! |---|---|
//! | `serve` | what listens, who is served, how it ends |
//! | `directory`, `files`, `buffers` | the directory and nothing outside of it; files that are read in blocks |
//! | `stamp`, `samples` | whether a file is still the one that it was |
//! | `web` | requests of HTTP and their responses |
//! | `tcp` | connections of HTTP/1.1 and HTTP/2 |
//! | `http09` | requests of HTTP/0.9 |
//! | `told`, `access_log`, `figures`, `transfers` | what is told of requests, and how many are under way |
//! | `phase` | how far a server has come that is told to stop |
//! | `validation` | how clients prove their addresses |

mod access_log;
mod buffers;
mod directory;
mod figures;
mod files;
mod http09;
mod phase;
mod samples;
mod small_files;
mod stamp;
mod tcp;
mod told;
mod transfers;
mod validation;
mod web;

use std::sync::Arc;
use std::time::Duration;

use fulmar::{Endpoint, Incoming};
use http::header::{HeaderName, HeaderValue};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::args::ServeArgs;
use crate::authority::ListenAddr;
use crate::duration::Span;
use crate::failure::Failure;
use crate::hq;
use crate::metrics;
use crate::net::{self, CLOSE_DONE, Listen, Transport, Workers};
use crate::notify;
use crate::qlog;
use crate::report::{Listening, Output, counted};
use crate::signal::{ServerSignals, Signals};
use crate::tls::Identity;

use self::access_log::AccessLog;
pub(crate) use self::directory::Directory;
use self::figures::Figures;
use self::http09::Plain;
use self::phase::{Phase, reached};
use self::tcp::{Patience, Tcp};
use self::told::Tale;
use self::transfers::Transfers;
use self::validation::Validation;
use self::web::{Budget, Content, Web, WebOverHttp3};

/// What is spoken over QUIC, the preferred one first.
pub(crate) const PROTOCOLS: [&str; 2] = ["h3", hq::PROTOCOL];
/// How often a port is tried that the system picks, until it is free over TCP, too.
const TRIES_MAX: u32 = 16;
/// The port where none is given.
const DEFAULT_PORT: u16 = 4433;
/// How many connections are served at once; further ones are refused.
const CONNECTIONS_MAX: usize = 4096;
/// How often it is looked whether the keys of tokens have changed.
const KEYS_INTERVAL: Duration = Duration::from_secs(5);
/// How long the end may be put off by transfers that are cut short, until each has a line in the log.
const CUT_MAX: Duration = Duration::from_millis(100);

/// What all connections share.
#[derive(Debug)]
struct Site {
    web: Web,
    config: Arc<fulmar_h3::Config>,
    plain: Arc<Plain>,
    /// Requests under way.
    transfers: Transfers,
    /// Connections of HTTP that are open.
    open: Transfers,
    phase: watch::Sender<Phase>,
}

/// Serves until the user ends it.
pub(crate) fn run(args: &ServeArgs, output: Output) -> Result<(), Failure> {
    let root = Directory::open(&args.dir, args.hidden)?;
    let logs = args.qlog.start()?;
    let transport = Transport::from_args(&args.transport)?.with_logs(logs.clone()).with_multipath(
        true,
        args.scheduler,
        args.coupling,
    );
    let identity = Identity::from_args(&args.identity, output)?;
    let workers = Workers::start(args.workers)?;
    let runtimes = workers.handles();
    let result = workers.block_on(async {
        let mut validation = Validation::from_args(args)?;
        let mut listen = Listen {
            addr: args.listen.unwrap_or(ListenAddr::All(DEFAULT_PORT)),
            identity: &identity,
            protocols: &PROTOCOLS,
            transport: &transport,
            reset_key: args.reset_key,
            validation: validation.config(),
            sealed_tickets: validation.keys().filter(|_| args.sealed_tickets),
            early_data: true,
            workers: runtimes,
        };
        let figures = Arc::<Figures>::default();
        let (endpoint, listening, listener) = bind(&listen, !args.no_tcp)?;
        if let Some(addr) = args.metrics {
            let figures = figures.clone();
            let addr = metrics::start(addr, endpoint.clone(), Arc::new(move || figures.text())).await?;
            info!("figures are told at http://{addr}/metrics");
        }
        let signals = ServerSignals::listen()?;
        output.print(&listening, || listening.text());
        notify::tell("READY=1");
        let tcp = match listener {
            Some(listener) => Some((listener, listen.tcp_config()?, listen.workers.clone())),
            None => None,
        };
        let serving = Serving {
            root,
            grace: args.grace,
            access_log: Some(Arc::new(AccessLog::start(output)?)),
            has_listings: args.list,
            is_single_page: args.spa,
            fields: args.headers.clone(),
            figures,
            tcp,
        };
        serve_until_interrupted(&endpoint, serving, signals, output, || {
            if validation.has_changed() {
                listen.validation = validation.config();
                listen.sealed_tickets = validation.keys().filter(|_| args.sealed_tickets);
                endpoint.set_server_config(Some(listen.config()?));
            }
            Ok(())
        })
        .await
    });
    qlog::finish(logs, output);
    result
}

/// Binds the socket, and one of TCP with the same number. Where the system picks the number, it may be taken there: then again.
fn bind(
    listen: &Listen<'_>,
    has_tcp: bool,
) -> Result<(Endpoint, Listening, Option<std::net::TcpListener>), Failure> {
    let is_picked = listen.addr.port() == 0;
    let mut tries_left = if is_picked { TRIES_MAX } else { 1 };
    loop {
        let (endpoint, listening) = listen.bind()?;
        if !has_tcp {
            return Ok((endpoint, listening, None));
        }
        tries_left -= 1;
        match std::net::TcpListener::bind(listening.listening) {
            Ok(listener) => return Ok((endpoint, listening, Some(listener))),
            Err(_) if tries_left > 0 => {}
            Err(error) => {
                let action = format!(
                    "cannot listen on {} over TCP, too (--no-tcp serves HTTP/3 alone)",
                    listening.listening
                );
                return Err(Failure::Io { action, error });
            }
        }
    }
}

/// How to serve.
#[derive(Debug)]
pub(crate) struct Serving {
    /// The directory.
    pub(crate) root: Directory,
    /// How long transfers under way may take when the server is told to stop.
    pub(crate) grace: Duration,
    /// Where requests are told.
    pub(crate) access_log: Option<Arc<AccessLog>>,
    /// Where they are counted.
    pub(crate) figures: Arc<Figures>,
    /// Whether directories without an index are shown.
    pub(crate) has_listings: bool,
    /// Whether what is not there is answered by the index.
    pub(crate) is_single_page: bool,
    /// What all responses have beside what is theirs.
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    /// A socket for HTTP/1.1 and HTTP/2, the TLS for it and the runtimes that take turns.
    pub(crate) tcp: Option<(std::net::TcpListener, Arc<rustls::ServerConfig>, Vec<Handle>)>,
}

impl Serving {
    /// Files, and nothing that a person would miss.
    pub(crate) fn bare(root: Directory) -> Self {
        Self {
            root,
            grace: Duration::ZERO,
            access_log: None,
            figures: Arc::default(),
            has_listings: false,
            is_single_page: false,
            fields: Vec::new(),
            tcp: None,
        }
    }
}

impl Site {
    fn new(serving: &Serving) -> Self {
        let transfers = Transfers::default();
        let (log, figures) = (serving.access_log.clone(), serving.figures.clone());
        let tale = Tale { log, figures, transfers: transfers.clone() };
        let web = Web(Arc::new(Content {
            root: serving.root.clone(),
            has_listings: serving.has_listings,
            is_single_page: serving.is_single_page,
            budget: Budget::default(),
            tale: tale.clone(),
            recent: Default::default(),
            today: Default::default(),
            fields: serving.fields.clone(),
        }));
        Self {
            web,
            config: Arc::default(),
            plain: Arc::new(Plain::new(serving.root.clone(), tale)),
            transfers,
            open: Transfers::default(),
            phase: watch::Sender::new(Phase::Serving),
        }
    }
}

/// Serves files to whoever connects to `endpoint` until a signal comes, and calls `look_again` every [`KEYS_INTERVAL`].
pub(crate) async fn serve_until_interrupted(
    endpoint: &Endpoint,
    mut serving: Serving,
    mut signals: ServerSignals,
    output: Output,
    mut look_again: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let site = Arc::new(Site::new(&serving));
    if let Some(tcp) = serving.tcp.take() {
        serve_tcp(endpoint, tcp, &site)?;
    }
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut interval = tokio::time::interval(KEYS_INTERVAL);
    loop {
        tokio::select! {
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => admit(incoming, &site, &connections),
                None => break,
            },
            _ = interval.tick() => look_again()?,
            () = signals.look_again.next() => {
                let root = serving.root.clone();
                tokio::task::spawn_blocking(move || root.look_again());
            }
            () = signals.stop.next() => break,
        }
    }
    stop(endpoint, &site, serving.grace, &mut signals.stop, output).await;
    if let Some(log) = &serving.access_log {
        log.finish();
    }
    Ok(())
}

/// Serves over TCP, in tasks of their own.
fn serve_tcp(
    endpoint: &Endpoint,
    (listener, tls, runtimes): (std::net::TcpListener, Arc<rustls::ServerConfig>, Vec<Handle>),
    site: &Site,
) -> Result<(), Failure> {
    let cannot = "cannot listen over TCP";
    let port = endpoint.local_addr().map_err(Failure::io(cannot))?.port();
    listener.set_nonblocking(true).map_err(Failure::io(cannot))?;
    let listener = TcpListener::from_std(listener).map_err(Failure::io(cannot))?;
    let tcp = Tcp {
        tls,
        web: site.web.clone(),
        alternative: tcp::alternative(port),
        runtimes,
        open: site.open.clone(),
        phase: site.phase.subscribe(),
        patience: Patience::default(),
    };
    tokio::spawn(tcp.serve(listener));
    Ok(())
}

/// Lets the transfers under way end, within limits, and then closes all connections.
async fn stop(endpoint: &Endpoint, site: &Site, grace: Duration, signals: &mut Signals, output: Output) {
    let transfers = &site.transfers;
    let count = |transfers: &Transfers| counted(transfers.count() as u64, "transfer");
    notify::tell("STOPPING=1");
    site.phase.send_replace(Phase::Stopping);
    if !grace.is_zero() {
        if transfers.count() > 0 {
            let left = count(transfers);
            output.note(&format!(
                "stopping after {left}, in {} at most; a second signal ends at once",
                Span(grace)
            ));
        }
        tokio::select! {
            () = async { tokio::join!(transfers.ended(), site.open.none()); } => {}
            () = sleep(grace) => {}
            () = signals.next() => {}
            () = refuse_all(endpoint) => {}
        }
    }
    if transfers.count() > 0 {
        output.note(&format!("{} cut short", count(transfers)));
    }
    endpoint.close(CLOSE_DONE, b"the server is stopping");
    site.phase.send_replace(Phase::Over);
    // Each tells of itself, which takes the threads of the others.
    let _ = timeout(CUT_MAX, transfers.none()).await;
    tokio::select! {
        () = net::farewell(endpoint) => {}
        () = signals.next() => {}
    }
}

/// Tells clients at once that they are not served, so that they try elsewhere.
async fn refuse_all(endpoint: &Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        incoming.refuse();
    }
}

/// Starts to serve a connection, if there is room for it.
fn admit(incoming: Incoming, site: &Arc<Site>, connections: &Arc<Semaphore>) {
    let Ok(permit) = connections.clone().try_acquire_owned() else {
        warn!(remote = %incoming.remote_address(), "connection refused: {CONNECTIONS_MAX} are open");
        incoming.refuse();
        return;
    };
    let site = site.clone();
    let runtime = incoming.runtime().clone();
    runtime.spawn(async move {
        if let Err(failure) = serve_connection(incoming, &site).await {
            info!("{failure}");
        }
        drop(permit);
    });
}

/// Serves a connection in the version of HTTP that was agreed upon, until it ends.
async fn serve_connection(incoming: Incoming, site: &Arc<Site>) -> Result<(), Failure> {
    // Files can be read as often as one likes.
    let connection = net::accept_early(incoming).await?;
    let remote = connection.remote_address();
    if connection.alpn().is_none() {
        // The first message of the handshake was not here as a whole.
        connection.connected().await.map_err(Failure::connection(&remote.to_string()))?;
    }
    if connection.alpn().as_deref() == Some(fulmar_h3::ALPN) {
        info!(%remote, "connection accepted for HTTP/3");
        let _open = site.open.begin();
        let mut phase = site.phase.subscribe();
        let stop = async move { reached(&mut phase, Phase::Stopping).await };
        let web = WebOverHttp3(site.web.clone());
        fulmar_h3::serve_connection_until(connection, web, site.config.clone(), stop).await;
        info!(%remote, "connection ended");
    } else {
        info!(%remote, "connection accepted for HTTP/0.9");
        http09::serve_connection(&connection, &site.plain).await;
    }
    Ok(())
}
