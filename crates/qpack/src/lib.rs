//! QPACK (RFC 9204): how HTTP/3 compresses field sections. Without I/O, and without QUIC.
//!
//! An [`Encoder`] turns lists of fields into encoded field sections, and a [`Decoder`] turns them back. Both keep a table
//! of fields that were sent before, which streams of their own keep in step: the encoder stream and the decoder stream.
//! A connection has one encoder and one decoder, each of which talks to its counterpart of the peer.
//!
//! ```
//! use bytes::Bytes;
//! use fulmar_qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field, FieldRef, PeerSettings};
//!
//! # fn main() -> Result<(), fulmar_qpack::Error> {
//! // What the decoder allows is sent in SETTINGS, and then the encoder may use it.
//! let mut decoder = Decoder::new(DecoderConfig::default());
//! let mut encoder = Encoder::new(EncoderConfig::default());
//! encoder.on_settings(PeerSettings { max_table_capacity: 4096, blocked_streams: 100 })?;
//!
//! let fields = [Field::new(":method", "GET"), Field::new("user-agent", "a program")];
//! for stream_id in [0, 4] {
//!     let (mut section, mut encoder_stream) = (Vec::new(), Vec::new());
//!     encoder.encode(stream_id, fields.iter().map(FieldRef::from), &mut section, &mut encoder_stream);
//!
//!     // The section goes into a HEADERS frame of its stream. What it needs may come before or after it.
//!     let decoded = match decoder.decode(stream_id, Bytes::from(section))? {
//!         Decoded::Blocked => {
//!             decoder.on_encoder_stream(&encoder_stream)?;
//!             decoder.unblocked()?.expect("all has come").1
//!         }
//!         decoded => decoded,
//!     };
//!     assert_eq!(decoded, Decoded::Fields(fields.to_vec()));
//!
//!     // The encoder learns what has arrived: only what was acknowledged can be evicted.
//!     let mut decoder_stream = Vec::new();
//!     decoder.take_decoder_stream(&mut decoder_stream);
//!     encoder.on_decoder_stream(&decoder_stream)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a peer can make this end do
//!
//! | what | limit | beyond it |
//! |---|---|---|
//! | entries of the decoder's table | [`DecoderConfig::max_table_capacity`] | QPACK_ENCODER_STREAM_ERROR |
//! | an instruction that is not whole | two strings that the table could hold, in Huffman code | QPACK_ENCODER_STREAM_ERROR |
//! | streams that wait | [`DecoderConfig::blocked_streams`] | QPACK_DECOMPRESSION_FAILED |
//! | bytes that wait | [`DecoderConfig::blocked_bytes_max`] | the section is refused |
//! | size, fields and cookies of a section | [`DecoderConfig`] | the section is refused |
//! | what waits for the decoder stream | [`DECODER_STREAM_WAITING_MAX`] | H3_EXCESSIVE_LOAD |
//! | sections that the peer does not acknowledge | 1024 | no references to the table |
//!
//! A section that refers to a large entry a thousand times costs a thousand small values that share its bytes, and ends at
//! the limit of its size.
//!
//! | module | what it owns |
//! |---|---|
//! | `integer`, `huffman`, `string` | the building blocks of the encoding (RFC 9204 §4.1, RFC 7541) |
//! | `static_table`, `table` | the two tables (§3) |
//! | `instruction`, `prefix`, `representation` | what stands on the streams and in sections (§4.3 to §4.5) |
//! | `encoder` | what is inserted and referred to, what is held by sections on their way |
//! | `decoder` | sections that wait, limits, acknowledgments |
#![forbid(unsafe_code)]

mod decoder;
mod encoder;
mod error;
mod field;
mod hash;
mod huffman;
mod instruction;
mod integer;
mod prefix;
mod representation;
mod static_table;
mod string;
mod table;

pub use decoder::{DECODER_STREAM_WAITING_MAX, Decoded, Decoder, DecoderConfig, Excess};
pub use encoder::{Encoder, EncoderConfig, PeerSettings};
pub use error::{Error, ErrorCode};
pub use field::{FIELD_OVERHEAD, Field, FieldRef};
