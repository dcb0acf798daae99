//! qlog files (draft-ietf-quic-qlog-main-schema-14, draft-ietf-quic-qlog-quic-events-13, draft-ietf-quic-qlog-h3-events-13).
//!
//! Owns the way from the entries of a connection's log to a qlog file and to CSV, and the way from a qlog file of any
//! stack to a course in time that `fulmar-plot` draws. It must not know where entries are kept and when they are
//! written: `fulmar` moves them out of the hot path.
//!
//! | module | owns |
//! |---|---|
//! | `writer` | JSON text sequences, event by event |
//! | `calendar` | what a calendar and a clock show |
//! | `csv` | the log as a table |
//! | `reader` | JSON and JSON text sequences, of qlog 0.3 and of the drafts after it |
#![forbid(unsafe_code)]

mod calendar;
mod csv;
mod reader;
mod writer;

pub use calendar::rfc3339;
pub use csv::{csv, csv_http3};
pub use reader::{QlogError, Trace, page, read};
pub use writer::{Flavor, Header, Writer};
