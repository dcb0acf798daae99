//! The traits of the crate [`h3`] (`h3::quic`) on Fulmar: what is built on them runs over its connections.
//!
//! Whoever begins anew takes `fulmar-h3`, the HTTP/3 of Fulmar itself: a server for `tower` services and a client, with QPACK's dynamic
//! table, priorities and limits that hostile peers are tried against. This crate is for programs that speak to `h3` already: in place of
//! `h3_quinn::Connection::new` they have [`Connection::new`].
//!
//! ```no_run
//! use std::future::poll_fn;
//!
//! # async fn example(endpoint: fulmar::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
//! // The TLS configuration of the endpoint names the protocol `h3`.
//! let quic = endpoint.connect("192.0.2.1:443".parse()?, "example.org")?.await?;
//! let (mut driver, mut requests) = h3::client::new(h3_fulmar::Connection::new(quic)).await?;
//! tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
//!
//! let request = http::Request::get("https://example.org/").body(())?;
//! let mut stream = requests.send_request(request).await?;
//! stream.finish().await?;
//! println!("{}", stream.recv_response().await?.status());
//! # Ok(())
//! # }
//! ```
//!
//! # Streams that are dropped
//!
//! A stream that is dropped before it was finished is reset (H3_REQUEST_CANCELLED), so that a peer never takes a part of a message for all
//! of it; `h3-quinn` ends such a stream as if it were complete. One that is dropped before its end was read is stopped, by a
//! server with H3_NO_ERROR, as RFC 9114 §4.1 wants it, by a client with H3_REQUEST_CANCELLED.
//!
//! # What is not here
//!
//! The traits of `h3-datagram`. Streams are read in the chunks in which they arrive, without a copy; what is written is copied once.
#![forbid(unsafe_code)]

mod connection;
mod error;
mod stream;

pub use connection::{Connection, OpenStreams};
pub use stream::{BidiStream, RecvStream, SendStream};
