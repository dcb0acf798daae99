//! What is remembered of the bytes of a file that were sent, to tell whether it still begins with them.
//!
//! A file that has become longer may have been appended to, as logs are, or be another one that was written over it (`cp` does that):
//! nothing that a file system keeps tells the one from the other. To compare all that was sent would take as long as to send it, so pieces
//! are compared that lie evenly in the file. One of [`WHOLE_BYTES`] or less is compared as a whole.

use std::io;

use crc32fast::Hasher;

/// How long a piece is, in bytes: what the kernel reads at least.
const PIECE_BYTES: u64 = 4 << 10;
/// How many pieces of a file are compared at most, so that on a disk that has to seek it takes no longer than a second.
const PIECES_MAX: u64 = 64;
/// Up to which length all of a file is compared, in bytes.
#[cfg(test)]
pub(super) const WHOLE_BYTES: u64 = PIECES_MAX * PIECE_BYTES;

/// A checksum of pieces of what was read of a file in a row.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    /// From the beginning of a piece to that of the next.
    spacing: u64,
    /// What was read: from where, and up to where.
    start: u64,
    end: u64,
    sum: Hasher,
}

impl Samples {
    /// For a file of this length.
    pub(super) fn new(len: u64) -> Self {
        Self { spacing: len.div_ceil(PIECES_MAX).max(PIECE_BYTES), start: 0, end: 0, sum: Hasher::new() }
    }

    /// Remembers what was read at `offset`. What does not go on where it was read before begins anew; what was read twice counts once.
    pub(super) fn add(&mut self, offset: u64, bytes: &[u8]) {
        if !(self.start..=self.end).contains(&offset) {
            (self.start, self.end, self.sum) = (offset, offset, Hasher::new());
        }
        let (known, end) = (self.end, offset + bytes.len() as u64);
        for (from, to) in pieces(self.spacing, known, end) {
            self.sum.update(&bytes[(from - offset) as usize..(to - offset) as usize]);
        }
        self.end = known.max(end);
    }

    /// Whether the same bytes are there now; `read` reads so many bytes at an offset, or what there is of them.
    pub(super) fn are_in(&self, mut read: impl FnMut(u64, u64) -> io::Result<Vec<u8>>) -> io::Result<bool> {
        let mut sum = Hasher::new();
        for (from, to) in pieces(self.spacing, self.start, self.end) {
            sum.update(&read(from, to - from)?);
        }
        Ok(sum.finalize() == self.sum.clone().finalize())
    }
}

/// The pieces, or parts of them, from `start` to before `end`.
fn pieces(spacing: u64, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = start - start % spacing;
    let beginnings = std::iter::successors(Some(first), move |at| at.checked_add(spacing));
    let within = move |at: u64| (at.max(start), at.saturating_add(PIECE_BYTES).min(end));
    beginnings.take_while(move |at| *at < end).map(within).filter(|(from, to)| from < to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index * 31 % 251) as u8).collect()
    }

    fn are_in(samples: &Samples, file: &[u8]) -> bool {
        let read = |offset, len| Ok(file[offset as usize..(offset + len) as usize].to_vec());
        samples.are_in(read).expect("memory")
    }

    #[test]
    fn a_file_of_little_is_compared_as_a_whole() {
        let file = content(WHOLE_BYTES as usize);
        let mut samples = Samples::new(WHOLE_BYTES);
        for (index, block) in file.chunks(10_000).enumerate() {
            samples.add(index as u64 * 10_000, block);
        }
        assert!(are_in(&samples, &file));
        for changed in [0, 9_999, 10_000, 100_000, file.len() - 1] {
            let mut other = file.clone();
            other[changed] ^= 1;
            assert!(!are_in(&samples, &other), "{changed}");
        }
    }

    #[test]
    fn pieces_of_a_large_file_are_the_same_in_whatever_blocks_it_is_read() {
        let file = content(3_000_000);
        for block in [1, 3_999, 4_096, 131_072, 3_000_000] {
            let mut samples = Samples::new(3_000_000);
            for (index, bytes) in file[..1_000_000].chunks(block).enumerate() {
                samples.add((index * block) as u64, bytes);
            }
            assert!(are_in(&samples, &file), "{block}");
            assert!(!are_in(&samples, &content(3_000_001)[1..]), "{block}");
        }
        let read = pieces(3_000_000u64.div_ceil(PIECES_MAX), 0, 3_000_000).map(|(from, to)| to - from);
        assert_eq!(read.sum::<u64>(), WHOLE_BYTES);
    }

    #[test]
    fn what_is_read_twice_or_elsewhere_is_no_difference() {
        let file = content(500_000);
        let mut samples = Samples::new(500_000);
        for (from, to) in [(200_000, 300_000), (250_000, 320_000), (200_000, 210_000), (320_000, 400_000)] {
            samples.add(from as u64, &file[from..to]);
            assert!(are_in(&samples, &file), "{from}");
        }
        samples.add(10, &file[10..100_000]);
        assert!(are_in(&samples, &file));
    }
}
