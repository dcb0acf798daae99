//! The files that are served, and whether they arrive as they are.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use fulmar_base::Rng;
use ring::digest::{Context, Digest, SHA256};

use super::cases::file_name;
use crate::Result;

/// How much is made or read at once, in bytes.
const PIECE: usize = 1 << 16;

/// Makes the file of a body below `dir`, unless it is there. Its bytes are as if by chance, and the same each time.
pub(super) fn make(dir: &Path, body_bytes: u64) -> Result<PathBuf> {
    let path = dir.join(file_name(body_bytes));
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() == body_bytes) {
        return Ok(path);
    }
    let mut file = BufWriter::new(File::create(&path)?);
    let mut rng = Rng::from_u64(body_bytes);
    let mut left = body_bytes;
    let mut piece = [0; PIECE];
    while left > 0 {
        rng.fill(&mut piece);
        let len = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        file.write_all(&piece[..len])?;
        left -= len as u64;
    }
    file.flush()?;
    Ok(path)
}

/// Whether two files have the same length and the same checksum (SHA-256).
pub(super) fn are_equal(one: &Path, other: &Path) -> Result<bool> {
    let (one, other) = (checksum(one)?, checksum(other)?);
    Ok(one.0 == other.0 && one.1.as_ref() == other.1.as_ref())
}

fn checksum(path: &Path) -> Result<(u64, Digest)> {
    let mut file = BufReader::new(File::open(path)?);
    let mut context = Context::new(&SHA256);
    let mut piece = [0; PIECE];
    let mut len = 0;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((len, context.finish()));
        }
        context.update(&piece[..read]);
        len += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_as_long_as_asked_and_the_same_each_time() {
        let dir = std::env::temp_dir().join(format!("fulmar-xtask-bodies-{}", std::process::id()));
        let other = dir.join("other");
        fs::create_dir_all(&other).expect("a directory");
        for len in [13, 1_024, 200_000] {
            let one = make(&dir, len).expect("a file");
            let two = make(&other, len).expect("a file");
            assert_eq!(fs::metadata(&one).expect("a file").len(), len);
            assert!(are_equal(&one, &two).expect("files"));
            let mut bytes = fs::read(&two).expect("a file");
            bytes[12] ^= 1;
            fs::write(&two, &bytes).expect("a file");
            assert!(!are_equal(&one, &two).expect("files"));
            fs::write(&two, &bytes[..12]).expect("a file");
            assert!(!are_equal(&one, &two).expect("files"));
        }
        fs::remove_dir_all(&dir).expect("a directory");
    }
}
