//! Which build of the program this is.

use std::fs::File;
use std::io::{self, Read};

use ring::digest::{Context, SHA256};

use crate::failure::Failure;

/// So much of the file is read at once.
const PIECE_BYTES: usize = 1 << 16;

/// The SHA-256 of the file of the running program.
pub(super) fn sha256() -> Result<String, Failure> {
    let file = std::env::current_exe().and_then(File::open);
    let hash = file.and_then(hash_of);
    hash.map_err(Failure::io("cannot read the program itself, to tell this build from others"))
}

fn hash_of(mut file: impl Read) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            length => context.update(&piece[..length]),
        }
    }
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}
