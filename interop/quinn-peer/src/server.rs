//! The HTTP/0.9 server.

use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use quinn::{Connection, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream};
use quinn::{TokioRuntime, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use tokio::signal::unix::{SignalKind, signal};

use crate::report::Report;
use crate::{parse_duration, tls};

/// HTTP/0.9 over QUIC, as the interop runner speaks it.
pub(crate) const ALPN: &[u8] = b"hq-interop";
/// The longest request line.
const REQUEST_MAX: usize = 8 << 10;
/// Resets the stream of a request that cannot be answered; HTTP/0.9 has no status codes.
const ERROR_NOT_FOUND: VarInt = VarInt::from_u32(0x404);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Address and port to listen on.
    #[arg(long, default_value = "127.0.0.1:4433")]
    listen: SocketAddr,
    /// Directory to serve.
    #[arg(long, default_value = ".")]
    www: PathBuf,
    /// Certificate chain, PEM.
    #[arg(long)]
    cert: PathBuf,
    /// Private key, PEM.
    #[arg(long)]
    key: PathBuf,
    /// Validate every client's address with a Retry packet.
    #[arg(long)]
    retry: bool,
    /// Idle timeout.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    idle: Duration,
    /// Key of the stateless reset tokens, 64 hexadecimal digits.
    #[arg(long)]
    reset_key: Option<String>,
}

pub(crate) async fn run(options: Options, report: Report) -> anyhow::Result<()> {
    let config =
        tls::server_config(&options.cert, &options.key, ALPN, tls::transport(options.idle)?, report.clone())?;
    let endpoint_config = endpoint_config(options.reset_key.as_deref())?;
    let socket = std::net::UdpSocket::bind(options.listen).context("no socket")?;
    let endpoint = Endpoint::new(endpoint_config, Some(config), socket, Arc::new(TokioRuntime))?;
    println!("listening on {}", endpoint.local_addr()?);

    let root = Arc::new(options.www.canonicalize().context("no directory to serve")?);
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let incoming = incoming.context("the endpoint is closed")?;
                if options.retry && !incoming.remote_address_validated() {
                    incoming.retry().map_err(|error| anyhow!(error))?;
                    continue;
                }
                tokio::spawn(serve_connection(incoming, root.clone(), report.clone()));
            }
            _ = terminate.recv() => return Ok(()),
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
    }
}

/// With a key, a restarted server recognises the connection IDs that it gave out before and resets them.
fn endpoint_config(reset_key: Option<&str>) -> anyhow::Result<EndpointConfig> {
    let Some(digits) = reset_key else { return Ok(EndpointConfig::default()) };
    let key = parse_hex(digits)?;
    let (seed, _) = key.split_first_chunk::<8>().context("the reset key is too short")?;
    let seed = u64::from_be_bytes(*seed);
    let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &key)));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(seed)));
    Ok(config)
}

fn parse_hex(digits: &str) -> anyhow::Result<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        bail!("the reset key is not hexadecimal");
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).context("the reset key is not hexadecimal"))
        .collect()
}

async fn serve_connection(incoming: Incoming, root: Arc<PathBuf>, report: Report) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        Err(error) => {
            eprintln!("handshake failed: {error}");
            return;
        }
    };
    report.handshake_done();
    let end = serve_streams(&connection, root, &report).await;
    println!("connection ended: {}", report.ended(&end));
}

async fn serve_streams(
    connection: &Connection,
    root: Arc<PathBuf>,
    report: &Report,
) -> quinn::ConnectionError {
    loop {
        let (mut send, recv) = match connection.accept_bi().await {
            Ok(stream) => stream,
            Err(error) => return error,
        };
        let (root, report) = (root.clone(), report.clone());
        tokio::spawn(async move {
            if let Err(error) = answer(&mut send, recv, &root, &report).await {
                eprintln!("request failed: {error:#}");
                // The stream may be gone with its connection; then there is nothing to reset.
                let _ = send.reset(ERROR_NOT_FOUND);
            }
        });
    }
}

/// Reads one request and sends the file that it names.
async fn answer(
    send: &mut SendStream,
    mut recv: RecvStream,
    root: &Path,
    report: &Report,
) -> anyhow::Result<()> {
    let request = recv.read_to_end(REQUEST_MAX).await?;
    let mut file = tokio::fs::File::open(requested_file(&request, root)?).await?;
    let bytes = tokio::io::copy(&mut file, send).await?;
    report.transferred(bytes);
    send.finish()?;
    Ok(())
}

/// The file that a request names, never outside of `root`.
fn requested_file(request: &[u8], root: &Path) -> anyhow::Result<PathBuf> {
    let request = std::str::from_utf8(request)?.trim_end_matches([' ', '\r', '\n']);
    let path = Path::new(request.strip_prefix("GET /").context("not an HTTP/0.9 request")?);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        bail!("{} leaves the served directory", path.display());
    }
    Ok(root.join(path))
}
