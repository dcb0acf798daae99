//! The HTTP/0.9 client.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use quinn::{ClientConfig, Connecting, Connection, ConnectionError, Endpoint, VarInt};
use rustls::CipherSuite;
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::parse_duration;
use crate::report::Report;
use crate::server::ALPN;
use crate::tls::{self, Trust};

/// How long the endpoint may take to send the last packets.
const CLOSE_PATIENCE: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Accept any certificate.
    #[arg(long, required_unless_present = "ca")]
    insecure: bool,
    /// Certificates to trust, PEM.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// Offer TLS_CHACHA20_POLY1305_SHA256 only.
    #[arg(long)]
    chacha20: bool,
    /// Directory for the files; without it they are read and dropped.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Requests under way at once.
    #[arg(long, default_value_t = 100)]
    parallel: usize,
    /// Idle timeout.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    idle: Duration,
    /// Keep the connection open this long after the last file.
    #[arg(long, default_value = "0s", value_parser = parse_duration)]
    hold: Duration,
    /// What to do besides fetching: a test case of the interop runner. `multiconnect`, `resumption` and `zerortt` divide the
    /// URLs among connections, `keyupdate` changes the keys after the handshake.
    #[arg(long, default_value = "transfer")]
    testcase: String,
    /// `https://HOST:PORT/path`, all of one server.
    #[arg(required = true)]
    urls: Vec<String>,
}

pub(crate) async fn run(options: Options, report: Report) -> anyhow::Result<()> {
    let (host, paths) = parse_urls(&options.urls)?;
    let trust = match &options.ca {
        Some(file) if !options.insecure => Trust::Authority(file),
        _ => Trust::Anything,
    };
    let mut transport = tls::transport(options.idle)?;
    if options.testcase == "zerortt" {
        // The runner counts the bytes behind the handshake, and quinn's probes for the datagram size alone are more than it
        // allows.
        transport.mtu_discovery_config(None);
    }
    let config = tls::client_config(trust, options.chacha20, ALPN, transport)?;
    if options.chacha20 {
        report.offered(&[CipherSuite::TLS13_CHACHA20_POLY1305_SHA256]);
    }
    for (number, paths) in divide(paths, &options.testcase).into_iter().enumerate() {
        let early = options.testcase == "zerortt" && number > 0;
        let (endpoint, connection) = match early {
            true => connect_early(&host, config.clone()).await?,
            false => connect(&host, config.clone()).await?,
        };
        report.handshake_done();
        if options.testcase == "keyupdate" {
            connection.force_key_update();
        }
        get_all(&connection, paths, &options, &report).await?;
        hold(&connection, options.hold, &report).await?;
        close(&endpoint, &connection).await;
    }
    Ok(())
}

/// Which files go over which connection.
fn divide(mut paths: Vec<String>, testcase: &str) -> Vec<Vec<String>> {
    match testcase {
        "multiconnect" => paths.into_iter().map(|path| vec![path]).collect(),
        "resumption" | "zerortt" => {
            let rest = paths.split_off(1);
            vec![paths, rest]
        }
        _ => vec![paths],
    }
}

/// Connects to `HOST:PORT` from a socket of the same address family.
pub(crate) async fn connect(host: &str, config: ClientConfig) -> anyhow::Result<(Endpoint, Connection)> {
    let (endpoint, connecting) = start(host, config)?;
    let connection = connecting.await.context("no connection")?;
    Ok((endpoint, connection))
}

/// As [`connect`], but the connection can be used at once, with the secrets of an earlier one.
async fn connect_early(host: &str, config: ClientConfig) -> anyhow::Result<(Endpoint, Connection)> {
    let (endpoint, connecting) = start(host, config)?;
    match connecting.into_0rtt() {
        Ok((connection, _accepted)) => Ok((endpoint, connection)),
        Err(_) => bail!("there is no session for 0-RTT"),
    }
}

fn start(host: &str, config: ClientConfig) -> anyhow::Result<(Endpoint, Connecting)> {
    let addresses: Vec<SocketAddr> = host.to_socket_addrs()?.collect();
    // The servers of the interop cases listen on one address, and a name may have one of each family.
    let ipv4 = addresses.iter().find(|address| address.is_ipv4());
    let address = *ipv4.or(addresses.first()).with_context(|| format!("{host} has no address"))?;
    let local = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let (name, _port) = host.rsplit_once(':').context("the port is missing")?;
    let endpoint = Endpoint::client(local)?;
    let connecting = endpoint.connect_with(config, address, name.trim_matches(['[', ']']))?;
    Ok((endpoint, connecting))
}

/// Closes and gives the endpoint a moment to tell the server, but not the whole draining period.
pub(crate) async fn close(endpoint: &Endpoint, connection: &Connection) {
    connection.close(VarInt::from_u32(0), b"");
    // Over time or not, there is nothing left to do.
    let _ = tokio::time::timeout(CLOSE_PATIENCE, endpoint.wait_idle()).await;
}

/// The one `HOST:PORT` that all URLs name, and their paths.
fn parse_urls(urls: &[String]) -> anyhow::Result<(String, Vec<String>)> {
    let mut host = None;
    let mut paths = Vec::with_capacity(urls.len());
    for url in urls {
        let rest = url.strip_prefix("https://").with_context(|| format!("{url} is no https URL"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if *host.get_or_insert(authority) != authority {
            bail!("all URLs must name the same server");
        }
        paths.push(format!("/{path}"));
    }
    Ok((host.context("no URL given")?.to_owned(), paths))
}

async fn get_all(
    connection: &Connection,
    paths: Vec<String>,
    options: &Options,
    report: &Report,
) -> anyhow::Result<()> {
    let permits = Arc::new(Semaphore::new(options.parallel.max(1)));
    let mut requests = JoinSet::new();
    for path in paths {
        let permit = permits.clone().acquire_owned().await?;
        let (connection, out, report) = (connection.clone(), options.out.clone(), report.clone());
        requests.spawn(async move {
            let bytes = get(&connection, &path, out.as_deref()).await.with_context(|| path)?;
            report.transferred(bytes);
            drop(permit);
            Ok::<(), anyhow::Error>(())
        });
        while let Some(done) = requests.try_join_next() {
            done??;
        }
    }
    while let Some(done) = requests.join_next().await {
        done??;
    }
    Ok(())
}

async fn get(connection: &Connection, path: &str, out: Option<&Path>) -> anyhow::Result<u64> {
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
    send.finish()?;
    let Some(dir) = out else {
        return Ok(tokio::io::copy(&mut recv, &mut tokio::io::sink()).await?);
    };
    let name = Path::new(path).file_name().context("the URL names no file")?;
    let mut file = tokio::fs::File::create(dir.join(name)).await?;
    let bytes = tokio::io::copy(&mut recv, &mut file).await?;
    file.flush().await?;
    Ok(bytes)
}

/// Keeps the connection without traffic until `time` is over or it ends; an idle timeout is a good end.
async fn hold(connection: &Connection, time: Duration, report: &Report) -> anyhow::Result<()> {
    let Ok(end) = tokio::time::timeout(time, connection.closed()).await else { return Ok(()) };
    let reason = report.ended(&end);
    match end {
        ConnectionError::TimedOut => Ok(()),
        _ => bail!("the connection ended: {reason}"),
    }
}
