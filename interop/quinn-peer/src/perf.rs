//! The download of draft-banks-quic-performance: the first 8 bytes of a bidirectional stream ask for that many.
//!
//! The transport is quinn's default but for two things that loopback needs: windows of [`WINDOW_BYTES`] instead of
//! some 1.25 MB, and socket buffers as large as the system allows up to [`SOCKET_BUFFER_BYTES`], as in quinn's own
//! benchmark program.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use quinn::{
    Connection, Endpoint, EndpointConfig, RecvStream, SendStream, TokioRuntime, TransportConfig, VarInt,
};
use serde_json::json;
use socket2::SockRef;

use crate::client;
use crate::report::Report;
use crate::tls::{self, Trust};

const ALPN: &[u8] = b"perf";
/// Flow control window of a stream, and half of the send buffer.
const WINDOW_BYTES: u32 = 16 << 20;
const SOCKET_BUFFER_BYTES: usize = 2 << 20;
/// What the server hands to quinn at once.
const CHUNK_BYTES: usize = 1 << 20;
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Answer every stream with the bytes that it asks for.
    Server {
        /// Address and port to listen on.
        #[arg(long, default_value = "127.0.0.1:4434")]
        listen: SocketAddr,
        /// Certificate chain, PEM.
        #[arg(long)]
        cert: PathBuf,
        /// Private key, PEM.
        #[arg(long)]
        key: PathBuf,
    },
    /// Download over one stream and print the rate.
    Client {
        /// `HOST:PORT` of the server.
        server: String,
        /// Accept any certificate.
        #[arg(long, required_unless_present = "ca")]
        insecure: bool,
        /// Certificates to trust, PEM.
        #[arg(long)]
        ca: Option<PathBuf>,
        /// How much to ask for: bytes, or a number with kB, MB or GB.
        #[arg(long, default_value = "1GB", value_parser = parse_size)]
        download: u64,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Server { listen, cert, key } => {
            let config = tls::server_config(&cert, &key, ALPN, transport()?, Report::new("perf"))?;
            serve(endpoint(listen, Some(config))?).await
        }
        Command::Client { server, insecure, ca, download, json } => {
            let trust = match &ca {
                Some(file) if !insecure => Trust::Authority(file),
                _ => Trust::Anything,
            };
            let config = tls::client_config(trust, false, ALPN, transport()?)?;
            measure(&server, config, download, json).await
        }
    }
}

fn transport() -> anyhow::Result<TransportConfig> {
    let mut transport = tls::transport(IDLE_TIMEOUT)?;
    transport.stream_receive_window(VarInt::from_u32(WINDOW_BYTES)).send_window(2 * u64::from(WINDOW_BYTES));
    Ok(transport)
}

fn endpoint(listen: SocketAddr, config: Option<quinn::ServerConfig>) -> anyhow::Result<Endpoint> {
    let socket = UdpSocket::bind(listen).context("no socket")?;
    // The system caps the sizes without an error.
    SockRef::from(&socket).set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    SockRef::from(&socket).set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    Ok(Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime))?)
}

async fn serve(endpoint: Endpoint) -> anyhow::Result<()> {
    println!("listening on {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            match incoming.await {
                Ok(connection) => serve_connection(connection).await,
                Err(error) => eprintln!("handshake failed: {error}"),
            }
        });
    }
    Ok(())
}

async fn serve_connection(connection: Connection) {
    let zeros = Bytes::from(vec![0; CHUNK_BYTES]);
    // An error of accept_bi is the end of the connection.
    while let Ok((send, recv)) = connection.accept_bi().await {
        let zeros = zeros.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(send, recv, zeros).await {
                eprintln!("request failed: {error:#}");
            }
        });
    }
}

async fn answer(mut send: SendStream, mut recv: RecvStream, zeros: Bytes) -> anyhow::Result<()> {
    let mut wanted = [0; 8];
    recv.read_exact(&mut wanted).await?;
    // What follows the request is an upload, which only has to be taken in.
    while recv.read_chunk(usize::MAX, false).await?.is_some() {}
    let mut left = u64::from_be_bytes(wanted);
    while left > 0 {
        let chunk = zeros.slice(..left.min(CHUNK_BYTES as u64) as usize);
        left -= chunk.len() as u64;
        send.write_chunk(chunk).await?;
    }
    send.finish()?;
    Ok(())
}

async fn measure(server: &str, config: quinn::ClientConfig, bytes: u64, json: bool) -> anyhow::Result<()> {
    let address: SocketAddr = server.parse().context("the server must be IP:PORT")?;
    let local = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let endpoint = endpoint(local.parse()?, None)?;
    let connection = endpoint.connect_with(config, address, "localhost")?.await.context("no connection")?;

    let started = Instant::now();
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(&bytes.to_be_bytes()).await?;
    send.finish()?;
    let mut received = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
        received += chunk.bytes.len() as u64;
    }
    let seconds = started.elapsed().as_secs_f64();
    client::close(&endpoint, &connection).await;
    if received != bytes {
        bail!("asked for {bytes} bytes and received {received}");
    }
    let gbit_per_s = bytes as f64 * 8.0 / 1e9 / seconds;
    if json {
        println!("{}", json!({ "gbit_per_s": gbit_per_s, "bytes": bytes, "duration_s": seconds }));
    } else {
        println!("{bytes} bytes in {seconds:.3} s: {gbit_per_s:.3} Gbit/s");
    }
    Ok(())
}

/// Reads a size such as `1GB`, `250MB` or `4096`; the units are decimal.
fn parse_size(text: &str) -> anyhow::Result<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let unit: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => bail!("unknown unit {unit}"),
    };
    number.parse::<u64>()?.checked_mul(unit).context("the size is too large")
}
