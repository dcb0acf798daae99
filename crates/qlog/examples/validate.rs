//! Checks qlog files of Fulmar against the drafts themselves:
//!
//! ```sh
//! git clone https://github.com/quicwg/qlog
//! cargo run -p fulmar-qlog --example validate -- qlog/draft-ietf-quic-qlog-main-schema.md \
//!     qlog/draft-ietf-quic-qlog-quic-events.md qlog/draft-ietf-quic-qlog-h3-events.md crates/qlog/tests/schema/fulmar.cddl logs/*.sqlog
//! ```
//!
//! What ends in `.md` or `.cddl` is schema, everything else a file that `--qlog-names draft` has written.

#[path = "../tests/schema/validator.rs"]
mod validator;

use std::process::ExitCode;
use std::{env, fs};

use validator::Schema;

fn main() -> ExitCode {
    let (schemas, files): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|name| name.ends_with(".md") || name.ends_with(".cddl"));
    let read = |name: &String| fs::read(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let texts: Vec<String> =
        schemas.iter().map(|name| String::from_utf8_lossy(&read(name)).into_owned()).collect();
    let mut schema = Schema::new(texts.iter().map(String::as_str));
    let mut bad = 0;
    for name in &files {
        match schema.check_file(&read(name)) {
            Ok(seen) => {
                println!("{name}: {} records, {} kinds of events", seen.values().sum::<u64>(), seen.len())
            }
            Err(error) => {
                bad += 1;
                println!("{name}: {error}");
            }
        }
    }
    if bad == 0 && !files.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
