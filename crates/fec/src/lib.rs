//! Forward erasure correction: repair symbols replace packets that were lost.
//!
//! This crate knows no QUIC and does no I/O. The sender puts what it sends into a [`SourceWindow`], one symbol for each
//! packet, and asks it for repair symbols, at any time and over any window of the last 256 symbols. The receiver gives
//! what arrives to a [`Decoder`], in any order, which gives back what was lost as soon as it can be known.
//!
//! ```
//! use fulmar_fec::{Cauchy, Decoder, Limits, Outcome, SourceWindow};
//!
//! let packets = [&b"three"[..], b"packets of different", b"lengths"];
//! let mut sender = SourceWindow::new(64);
//! let ids: Vec<u64> = packets.iter().map(|packet| sender.push(packet).unwrap()).collect();
//!
//! // Two repair symbols over all that is in the window, told apart by their keys.
//! let mut repairs = Vec::new();
//! for key in 0..2 {
//!     let id = sender.repair_from(0, key).unwrap();
//!     let mut repair = Vec::new();
//!     sender.repair(&Cauchy, &id, &mut repair).unwrap();
//!     repairs.push((id, repair));
//! }
//!
//! // The first packet arrives, the others are lost, and so the two repair symbols give them back.
//! let mut receiver = Decoder::new(Limits::default());
//! receiver.on_source(ids[0], packets[0]).unwrap();
//! let outcomes: Vec<Outcome> =
//!     repairs.iter().map(|(id, repair)| receiver.on_repair(&Cauchy, id, repair).unwrap()).collect();
//! assert_eq!(outcomes, [Outcome::Kept, Outcome::Recovered(2)]);
//! assert_eq!(receiver.next_recovered(), Some((ids[1], packets[1])));
//! assert_eq!(receiver.next_recovered(), Some((ids[2], packets[2])));
//! ```
//!
//! # Codes
//!
//! | code | repair symbols | which losses |
//! |---|---|---|
//! | [`Xor`] | one for each window | any one symbol of the window |
//! | [`Cauchy`] | K + R up to 255 | any R of the K symbols of the window |
//! | [`Vandermonde`] | K + R up to 255 | the same, for peers whose library has this matrix |
//! | [`Rlc`] | 65,536 for each window | any R symbols, with a probability of about 255/256; RFC 8681 |
//!
//! All are rules for coefficients in GF(256) ([`gf256`]) behind one trait, [`Code`], so that encoder and decoder are the same.
//! [`Blocks`] divides the symbols into blocks of a fixed size, for codes that are spoken so.
//!
//! Repair symbols of windows that overlap have to be independent: [`CauchyKeys`] chooses keys so, and for [`Rlc`] each key that was
//! not used for the window yet will do.
//!
//! When to send how many of them is decided by a [`schedule::Scheduler`].
//!
//! # Patents
//!
//! Third parties claim patents on random linear codes. So [`Rlc`] is never chosen unless a user asks for it: the default is
//! Reed-Solomon ([`Cauchy`]) or [`Xor`] over a snapshot of the window. Whoever switches [`Rlc`] on should have looked into it.
//!
//! # Bounds
//!
//! A peer decides what a [`Decoder`] gets. Its memory and its work are limited by [`Limits`]; repair symbols that would take
//! more are ignored, which is always legal. Symbols that contradict one another switch it off.

#![deny(unsafe_op_in_unsafe_fn)]

mod code;
mod decoder;
mod encoder;
pub mod gf256;
mod kernel;
pub mod schedule;
mod symbol;

pub use code::{
    Blocks, Cauchy, CauchyKeys, Code, CodeError, ID_LIMIT, RepairId, Rlc, Vandermonde, WINDOW_MAX, Xor,
};
pub use decoder::{DecodeError, Decoder, DecoderStats, Limits, Outcome};
pub use encoder::{EncodeError, SourceWindow};
pub use kernel::Kernel;
pub use symbol::{LENGTH_BYTES, SYMBOL_MAX, length_to_end, length_to_front};
