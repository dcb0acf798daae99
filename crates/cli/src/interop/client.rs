//! The client of a test case.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fulmar::{ClientConfig, Connection, EndpointBuilder, RecvStream, SessionStore, Version};
use fulmar_h3::ClientConnection;
use http::{Request, StatusCode};
use http_body_util::Empty;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::info;

use super::args::InteropClientArgs;
use super::case::{Case, Course};
use crate::args::TrustArgs;
use crate::authority::Authority;
use crate::failure::Failure;
use crate::get::{Url, local_names};
use crate::hq;
use crate::net::{self, CLOSE_DONE, Inbox, Transport};
use crate::qlog;
use crate::report::Output;

/// How many requests are under way at once; each may have a file open.
const REQUESTS_MAX: usize = 256;
/// How many packets a client that changes keys protects with the first ones.
const KEY_UPDATE_PACKETS: u64 = 100;
/// How long a client waits for a session that it can resume, and how often it looks.
const SESSION_PATIENCE: Duration = Duration::from_secs(2);
const SESSION_POLL: Duration = Duration::from_millis(10);

pub(super) fn run(args: InteropClientArgs, output: Output) -> Result<(), Failure> {
    let case = Case::named(&args.testcase)?;
    let items = items(&args.requests).map_err(Failure::Usage)?;
    let runtime = net::runtime()?;
    let logs = qlog::from_environment()?;
    let transport = match case.key_update {
        true => Transport::with_key_update_after(KEY_UPDATE_PACKETS),
        false => Transport::default(),
    };
    let transport = transport.with_logs(logs.clone());
    let sessions = SessionStore::new(1);
    let config = config(case, &sessions, &transport)?;
    let client = Arc::new(Client { case, args, sessions, transport, config });
    let result = runtime.block_on(client.fetch_all(&items));
    runtime.shutdown_background();
    qlog::finish(logs, output);
    result
}

fn config(case: Case, sessions: &Arc<SessionStore>, transport: &Transport) -> Result<ClientConfig, Failure> {
    let trust = TrustArgs { insecure: true, ca: None, pin: None };
    let (config, _) = net::client_config(&trust, case.cipher, case.protocol(), transport.clone())?;
    Ok(match case.course {
        Course::Resumed => config.with_sessions(sessions.clone()),
        Course::Early => config.with_sessions(sessions.clone()).with_early_data(true),
        Course::Together | Course::OneByOne => config,
    })
}

/// A file to fetch.
#[derive(Debug, Clone)]
struct Item {
    url: Url,
    /// Its name in the directory of downloads.
    name: String,
}

fn items(requests: &str) -> Result<Vec<Item>, String> {
    let urls = requests.split_whitespace().map(Url::parse).collect::<Result<Vec<_>, _>>()?;
    let names = local_names(&urls)?;
    Ok(urls.into_iter().zip(names).map(|(url, name)| Item { url, name }).collect())
}

struct Client {
    case: Case,
    args: InteropClientArgs,
    transport: Transport,
    sessions: Arc<SessionStore>,
    /// One for all connections: TLS resumes sessions of its own configuration only.
    config: ClientConfig,
}

impl Client {
    async fn fetch_all(self: &Arc<Self>, items: &[Item]) -> Result<(), Failure> {
        match self.case.course {
            Course::Together => self.fetch_over_one(items).await,
            Course::OneByOne => {
                for item in items {
                    self.fetch_over_one(std::slice::from_ref(item)).await?;
                }
                Ok(())
            }
            Course::Resumed | Course::Early => {
                let (first, rest) = items.split_at(items.len().min(1));
                self.fetch_over_one(first).await?;
                self.fetch_over_one(rest).await
            }
        }
    }

    /// Fetches files over one new connection and closes it.
    async fn fetch_over_one(self: &Arc<Self>, items: &[Item]) -> Result<(), Failure> {
        let Some(first) = items.first() else { return Ok(()) };
        let server = &first.url.authority;
        let peer = server.to_string();
        let address = first_address(server).await?;
        let bind = |any: IpAddr| self.endpoint().bind(SocketAddr::new(any, 0));
        // The server may ask to go on over the other family. Without IPv6 on the machine, IPv4 has to do.
        let endpoint = bind(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| bind(Ipv4Addr::UNSPECIFIED.into()));
        let endpoint = endpoint.map_err(Failure::NoSocket)?;
        let connecting = endpoint
            .connect_with(self.config.clone(), address, server.name())
            .map_err(|error| Failure::Connect { peer: peer.clone(), error })?;
        let early = if self.case.course == Course::Early { connecting.into_0rtt() } else { Err(connecting) };
        let connection = match early {
            Ok(connection) => connection,
            Err(connecting) => connecting.await.map_err(Failure::connection(&peer))?,
        };
        info!(%address, early_data = ?connection.early_data(), "connected");
        let result = self.fetch_files(&connection, items).await;
        info!(early_data = ?connection.early_data(), "done");
        if self.case.course.resumes() {
            self.wait_for_session(server).await;
        }
        connection.close(CLOSE_DONE, b"");
        net::farewell(&endpoint).await;
        result
    }

    /// Version 2 is asked for in transport parameters, while the first packets are of version 1 (RFC 9368).
    fn endpoint(&self) -> EndpointBuilder {
        let endpoint = self.transport.endpoint();
        match self.case.version_2 {
            true => endpoint.versions(vec![Version::V2, Version::V1]).initial_version(Version::V1),
            false => endpoint,
        }
    }

    /// The server gives the session away behind the handshake, which may be later than the file.
    async fn wait_for_session(&self, server: &Authority) {
        let deadline = Instant::now() + SESSION_PATIENCE;
        while !self.sessions.has_session(server.name(), server.port) && Instant::now() < deadline {
            sleep(SESSION_POLL).await;
        }
    }

    /// Fetches files at the same time, as far as the server allows.
    async fn fetch_files(self: &Arc<Self>, connection: &Connection, items: &[Item]) -> Result<(), Failure> {
        let permits = Arc::new(Semaphore::new(REQUESTS_MAX));
        let http3 = self.case.http3.then(|| ClientConnection::new(connection.clone(), Arc::default()));
        let mut requests = JoinSet::new();
        for item in items {
            let (client, connection, permits) = (self.clone(), connection.clone(), permits.clone());
            let (item, http3) = (item.clone(), http3.clone());
            requests.spawn(async move {
                // The semaphore is never closed, so there is always a permit in the end.
                let _permit = permits.acquire().await.ok();
                match http3 {
                    Some(http3) => client.fetch_over_http3(&http3, &item).await,
                    None => client.fetch_file(&connection, &item).await,
                }
            });
        }
        while let Some(result) = requests.join_next().await {
            result.unwrap_or(Err(Failure::Thread("request")))?;
        }
        Ok(())
    }

    async fn fetch_file(&self, connection: &Connection, Item { url, name }: &Item) -> Result<(), Failure> {
        let peer = url.authority.to_string();
        let failed = |why: String| Failure::Request { what: url.to_string(), why };
        let (mut send, mut recv) = connection.open_bi().await.map_err(Failure::connection(&peer))?;
        let asked = send.write_all(hq::request(&url.target).as_bytes()).await;
        asked.map_err(|error| failed(error.to_string()))?;
        // A server that has heard enough may have stopped the stream, and answers nevertheless.
        let _ = send.finish();
        let path = self.args.downloads.join(name);
        let bytes = receive(&mut recv, &path).await.map_err(failed)?;
        info!(bytes, path = %path.display(), "file received");
        Ok(())
    }
}

impl Client {
    async fn fetch_over_http3(
        &self,
        connection: &ClientConnection,
        Item { url, name }: &Item,
    ) -> Result<(), Failure> {
        let failed = |why: String| Failure::Request { what: url.to_string(), why };
        let request = Request::get(url.to_string()).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let response = connection.request(request).await.map_err(|error| failed(error.to_string()))?;
        if response.status() != StatusCode::OK {
            return Err(failed(format!("the server answers with status {}", response.status())));
        }
        let path = self.args.downloads.join(name);
        let bytes = receive_body(response.into_body(), &path).await.map_err(failed)?;
        info!(bytes, path = %path.display(), "file received over HTTP/3");
        Ok(())
    }
}

/// Writes the body of a response to a file as it comes.
async fn receive_body(mut body: fulmar_h3::Body, path: &Path) -> Result<u64, String> {
    let in_words = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let mut file = BufWriter::new(File::create(path).map_err(in_words)?);
    let mut bytes = 0;
    while let Some(data) = body.data().await.map_err(|error| error.to_string())? {
        bytes += data.len() as u64;
        file.write_all(&data).map_err(in_words)?;
    }
    file.flush().map_err(in_words)?;
    Ok(bytes)
}

/// Writes a response to a file as it comes. The files of the test cases are small, so the short waits for the disk are left on
/// the runtime's thread.
async fn receive(recv: &mut RecvStream, path: &Path) -> Result<u64, String> {
    let in_words = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let mut file = BufWriter::new(File::create(path).map_err(in_words)?);
    let mut inbox = Inbox::new();
    let (mut bytes, mut written) = (0, Ok(()));
    loop {
        let more = inbox.take(recv, |chunk| {
            bytes += chunk.len() as u64;
            if written.is_ok() {
                written = file.write_all(&chunk);
            }
        });
        let more = more.await.map_err(|error| error.to_string())?;
        std::mem::replace(&mut written, Ok(())).map_err(in_words)?;
        if !more {
            file.flush().map_err(in_words)?;
            return Ok(bytes);
        }
    }
}

/// The address to connect to, IPv4 if there is one: a second attempt over another address would be a handshake too many.
async fn first_address(server: &Authority) -> Result<SocketAddr, Failure> {
    let addresses = net::resolve(server).await?;
    let ipv4 = addresses.iter().find(|address| address.is_ipv4());
    Ok(*ipv4.unwrap_or(&addresses[0]))
}
