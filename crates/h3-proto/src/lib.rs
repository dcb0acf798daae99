//! HTTP/3 (RFC 9114), client and server, without I/O and without a transport.
//!
//! A [`Connection`] is one end. It is told what the transport has received, by the IDs of streams, and says what that means
//! ([`Event`]) and what is to be written. Messages are those of the `http` crate.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use fulmar_base::Instant;
//! use fulmar_h3_proto::{Config, Connection, Critical, Event, Received};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Connection::client(Arc::new(Config::default()), None);
//! let mut server = Connection::server(Arc::new(Config::default()));
//!
//! // Each end opens a control stream before anything else. This is the client's, which is stream 2.
//! server.accept(2, false, Instant::from_millis(0))?;
//! let mut control = client.take_output(Critical::Control);
//! assert!(matches!(server.receive(2, &mut control, false)?, Received::Event(Event::Settings(_))));
//!
//! // A request, on the first stream for one.
//! let (request, ()) = http::Request::get("https://example.org/").body(())?.into_parts();
//! let mut stream = client.send_request(0, &request)?;
//! client.finish(0)?;
//!
//! server.accept(0, false, Instant::from_millis(0))?;
//! let Received::Event(Event::Request(head)) = server.receive(0, &mut stream, true)? else { panic!() };
//! assert_eq!(head.parts.uri, "https://example.org/");
//! assert!(matches!(server.receive(0, &mut stream, true)?, Received::Event(Event::Finished)));
//!
//! // The response: a head, and a body that is written behind the headers of its DATA frames.
//! let (response, ()) = http::Response::new(()).into_parts();
//! let mut stream = server.send_response(0, &response, true)?.to_vec();
//! stream.extend_from_slice(server.send_data(0, 5)?.as_ref());
//! stream.extend_from_slice(b"hello");
//! server.finish(0)?;
//!
//! let mut stream = Bytes::from(stream);
//! assert!(matches!(client.receive(0, &mut stream, true)?, Received::Event(Event::Response(_))));
//! let Received::Event(Event::Data(body)) = client.receive(0, &mut stream, true)? else { panic!() };
//! assert_eq!(body, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! # What a peer can make this end do
//!
//! | what | limit | beyond it |
//! |---|---|---|
//! | size and fields of a section, cookies | [`DecoderConfig`] | the request is refused ([`Event::Refused`]), a response ends its stream |
//! | a HEADERS frame, encoded | [`Config::section_encoded_max`] | likewise |
//! | parts of HEADERS frames, on all streams | [`Config::sections_partial_max`] | likewise |
//! | a frame of the control stream | 16 KiB | H3_EXCESSIVE_LOAD |
//! | settings | [`SETTINGS_MAX`] | H3_EXCESSIVE_LOAD |
//! | frames and streams that bring nothing | [`Config::useless_max`] | H3_EXCESSIVE_LOAD |
//! | requests in a time | [`Config::requests`] | H3_REQUEST_REJECTED |
//! | requests that are given up at once, in a time | [`Config::resets`] | H3_EXCESSIVE_LOAD |
//! | priorities of requests that have not come | [`EARLY_PRIORITIES_MAX`] | forgotten |
//! | what waits for the control stream | [`CONTROL_WAITING_MAX`] | [`SendError::QueueFull`] |
//! | what waits for the encoder stream | [`ENCODER_WAITING_MAX`] | sections use the dynamic table less |
//! | events of the log that are not taken | [`log::LOG_WAITING_MAX`] | counted and forgotten |
//!
//! How many streams there are at a time is the transport's to limit. Bodies are never kept.
//!
//! # Sessions
//!
//! WebTransport and CONNECT-UDP are extended CONNECT requests ([`Protocol`]) that claim more than their stream. Nothing here knows
//! them; they need
//!
//! - settings of their own: [`Config::settings`], [`Settings::others`];
//! - the streams that name them: [`Config::session_streams`], [`Event::SessionStream`], [`Received::Claimed`],
//!   [`Connection::session_stream_prefix`];
//! - their datagrams: [`Connection::receive_datagram`], [`Connection::send_datagram`];
//! - their capsules, in the data of the request's stream: [`CapsuleReader`], [`Capsule`].
//!
//! | module | what it owns |
//! |---|---|
//! | `varint`, `frame`, `capsule`, `datagram`, `origin`, `priority`, `settings` | what stands on the wire |
//! | `message` | fields and the types of `http`; what is malformed |
//! | `limits` | what a peer may still do |
//! | `log` | what is noted for qlog |
//! | `connection` | streams, and what they have in common |
#![forbid(unsafe_code)]

mod capsule;
mod config;
mod connection;
mod datagram;
mod error;
mod event;
mod frame;
mod limits;
pub mod log;
mod message;
mod origin;
mod priority;
mod settings;
mod varint;

pub use capsule::{CAPSULE_DATAGRAM, Capsule, CapsuleReader, CapsuleTooLong};
pub use config::{Config, Rate, SessionStreams};
pub use connection::{
    CONTROL_WAITING_MAX, Connection, Critical, DataHeader, EARLY_PRIORITIES_MAX, ENCODER_WAITING_MAX, Role,
};
pub use datagram::Datagram;
pub use error::{Error, ErrorCode, Scope, SendError};
pub use event::{Event, Received, RequestHead};
pub use message::Protocol;
pub use priority::Priority;
pub use settings::{SETTINGS_MAX, Settings};

pub use fulmar_qpack::{DecoderConfig, EncoderConfig, Excess};
