//! HTTP/3 for tokio: a server for `tower` services, such as an axum router, and a client.
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use axum::{Router, routing::get};
//! use fulmar::{Endpoint, tls};
//! use fulmar_h3::{ALPN, Client, Server};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A server needs a certificate. This one is made up on the spot, and the client trusts exactly it.
//! let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
//! let cert = made.cert.der().clone();
//! let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
//! let mut roots = rustls::RootCertStore::empty();
//! roots.add(cert.clone())?;
//!
//! let tls = tls::server_config(vec![cert], key.into(), &[ALPN])?;
//! let endpoint = Endpoint::server(tls, (Ipv4Addr::LOCALHOST, 0).into())?;
//! let port = endpoint.local_addr()?.port();
//! let app = Router::new().route("/", get(|| async { "hello by HTTP/3" }));
//! tokio::spawn(async move { Server::new(endpoint).serve(app).await });
//!
//! let client = Client::with_roots(roots)?;
//! let response = client.get(format!("https://127.0.0.1:{port}/")).await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(response.into_body().bytes(1024).await?, "hello by HTTP/3");
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Back-pressure
//!
//! Bodies are read and written as fast as their readers are, in both directions: a body that nobody reads stays in the windows of the
//! transport, and then with its sender. A body that is dropped tells the peer to stop; a request that the client gives up ends the
//! service that works on it.
//!
//! # What is not here yet
//!
//! Sessions (WebTransport, CONNECT-UDP) are not served.
//!
//! | module | what it owns |
//! |---|---|
//! | `shared` | the state of HTTP/3 of a connection, under its lock; who waits for it |
//! | `driver` | the task of a connection: its streams that carry no request |
//! | `incoming`, `outgoing` | the two sides of the stream of a request |
//! | `body` | the body of a message, as the application reads it |
//! | `date` | the date of responses |
//! | `server`, `client` | what applications use |
#![forbid(unsafe_code)]

mod body;
mod client;
mod date;
mod driver;
mod error;
mod incoming;
mod outgoing;
mod server;
mod shared;

pub use body::Body;
pub use client::{
    ALT_SVC_BYTES_MAX, ALTERNATIVES_MAX, AltSvc, Alternative, Client, ClientBuilder, ClientConnection,
    ConnectionInfo, SERVERS_MAX, TcpLocal,
};
pub use error::Error;
pub use server::{
    About, BoxError, HttpService, ReceivedAt, RemoteAddress, Server, serve_connection, serve_connection_until,
};
pub use shared::{ALPN, HttpEvent};

pub use fulmar_h3_proto::{Config, ErrorCode, Priority, Protocol, log};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/http3-client.md")]
struct ClientDocument;
