//! A file server over HTTP/3 by the crates `h3` and `quinn`: the same files with the same fields as `fulmar serve`, and nothing else.

mod file;

use std::error::Error;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use h3::server::RequestResolver;
use http::{Method, Response, StatusCode};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use self::file::{Directory, Found};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Flow control windows and the send buffer, in bytes, as for the other stacks of the benchmarks.
const WINDOW: u32 = 16 << 20;
/// Streams that a peer may have open, as for the other stacks of the benchmarks.
const STREAMS: u32 = 8_192;
/// The UDP payload of packets over loopback, as for the other stacks of the benchmarks.
const PAYLOAD: u16 = 1_452;

#[derive(Parser)]
#[command(about = "Serves the files of a directory over HTTP/3 by h3 and quinn, until it is ended")]
struct Options {
    #[arg(long)]
    dir: PathBuf,
    /// Certificate chain, PEM.
    #[arg(long)]
    cert: PathBuf,
    /// Private key, PEM.
    #[arg(long)]
    key: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(configure(&options)?), socket, runtime)?;
    println!("listening on {}", endpoint.local_addr()?);
    let directory = Arc::new(Directory::new(options.dir));
    while let Some(incoming) = endpoint.accept().await {
        let directory = directory.clone();
        // Clients leave when their time is over, whatever is under way.
        tokio::spawn(async move { serve(incoming, directory).await.ok() });
    }
    Ok(())
}

fn configure(options: &Options) -> Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(&options.cert)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW))
        .initial_mtu(PAYLOAD);
    config.transport_config(Arc::new(transport));
    Ok(config)
}

async fn serve(incoming: Incoming, directory: Arc<Directory>) -> Result<()> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    let mut connection: h3::server::Connection<_, Bytes> = h3::server::builder().build(connection).await?;
    while let Some(resolver) = connection.accept().await? {
        let directory = directory.clone();
        tokio::spawn(async move { answer(resolver, &directory).await.ok() });
    }
    Ok(())
}

async fn answer(resolver: RequestResolver<h3_quinn::Connection, Bytes>, directory: &Directory) -> Result<()> {
    let (request, mut stream) = resolver.resolve_request().await?;
    let found = if request.method() == Method::GET { directory.find(request.uri().path()) } else { None };
    let Some(mut found) = found else {
        let response = Response::builder().status(StatusCode::NOT_FOUND).body(())?;
        stream.send_response(response).await?;
        return Ok(stream.finish().await?);
    };
    stream.send_response(head(&found)?).await?;
    while let Some(block) = found.next_block()? {
        stream.send_data(block).await?;
    }
    Ok(stream.finish().await?)
}

/// The fields that a file server sends.
fn head(found: &Found) -> Result<Response<()>> {
    Ok(Response::builder()
        .status(StatusCode::OK)
        .header("content-type", "application/octet-stream")
        .header("content-length", found.size())
        .header("accept-ranges", "bytes")
        .header("etag", found.tag())
        .header("last-modified", httpdate::fmt_http_date(found.changed()))
        .header("date", httpdate::fmt_http_date(std::time::SystemTime::now()))
        .body(())?)
}
