//! Encodes a file of the QPACK corpus (github.com/qpackers/qifs) as the corpus does:
//! `qif FILE.qif CAPACITY BLOCKED ACKNOWLEDGED > FILE.out`, the last with 1 if each section is acknowledged before the next.

#[path = "../tests/qif/mod.rs"]
#[expect(dead_code, reason = "the tests of the corpus read encoded files, too")]
mod qif;

use std::io::Write;

use fulmar_qpack::EncoderConfig;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, capacity, blocked, acknowledged] = arguments.as_slice() else {
        return Err("usage: qif FILE.qif CAPACITY BLOCKED ACKNOWLEDGED".into());
    };
    let mode = qif::Mode {
        capacity: capacity.parse()?,
        blocked: blocked.parse()?,
        acknowledged: acknowledged == "1",
    };
    let lists = qif::lists(&std::fs::read(file)?);
    std::io::stdout().write_all(&qif::encode(&lists, mode, EncoderConfig::default()))?;
    Ok(())
}
