//! Out-of-order data in blocks of fixed size, for peers that send it in tiny frames.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

/// Bytes of a block.
const BLOCK: usize = 4096;
const WORDS: usize = BLOCK / 64;

/// Data at arbitrary offsets. Its size depends on the range of offsets, not on the number of gaps.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Under the offset divided by [`BLOCK`].
    map: BTreeMap<u64, Box<Block>>,
    /// Bytes present.
    len: usize,
}

#[derive(Debug)]
struct Block {
    data: [u8; BLOCK],
    /// A bit for each byte that is present.
    present: [u64; WORDS],
}

impl Blocks {
    /// Whether no bytes are present.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of all blocks, however few of them are present.
    pub(super) fn held(&self) -> u64 {
        (self.map.len() * size_of::<Block>()) as u64
    }

    /// Copies `data` to its place.
    pub(super) fn insert(&mut self, mut offset: u64, mut data: &[u8]) {
        while !data.is_empty() {
            let (index, at) = split(offset);
            let len = data.len().min(BLOCK - at);
            let (now, rest) = data.split_at(len);
            let block = self.map.entry(index).or_insert_with(Block::new);
            self.len -= block.count();
            block.data[at..at + len].copy_from_slice(now);
            block.mark(at..at + len, true);
            self.len += block.count();
            offset += len as u64;
            data = rest;
        }
    }

    /// Forgets everything below `offset`.
    pub(super) fn discard_below(&mut self, offset: u64) {
        let (boundary, at) = split(offset);
        while let Some(mut entry) = self.map.first_entry() {
            if *entry.key() > boundary {
                return;
            }
            let block = entry.get_mut();
            self.len -= block.count();
            if *entry.key() == boundary {
                let block = entry.get_mut();
                block.mark(0..at, false);
                self.len += block.count();
                return;
            }
            entry.remove();
        }
    }

    /// Forgets everything from `offset` on.
    pub(super) fn truncate(&mut self, offset: u64) {
        let (boundary, at) = split(offset);
        while let Some(mut entry) = self.map.last_entry() {
            if *entry.key() < boundary {
                return;
            }
            let is_boundary = *entry.key() == boundary;
            let block = entry.get_mut();
            self.len -= block.count();
            if is_boundary {
                block.mark(at..BLOCK, false);
                let count = block.count();
                self.len += count;
                if count > 0 {
                    return;
                }
            }
            entry.remove();
        }
    }

    /// Takes at most `max_len` of the first bytes without a gap and within a block, and their offset. If `at`
    /// is given, only if they begin there.
    pub(super) fn take_first(&mut self, max_len: usize, at: Option<u64>) -> Option<(u64, Bytes)> {
        loop {
            let mut entry = self.map.first_entry()?;
            let base = *entry.key() * BLOCK as u64;
            let Some(mut run) = entry.get().first_run() else {
                // All of it was taken.
                entry.remove();
                continue;
            };
            let offset = base + run.start as u64;
            if at.is_some_and(|at| at != offset) {
                return None;
            }
            run.end = run.end.min(run.start.saturating_add(max_len));
            let bytes = Bytes::copy_from_slice(&entry.get().data[run.clone()]);
            entry.get_mut().mark(run, false);
            self.len -= bytes.len();
            return Some((offset, bytes));
        }
    }

    /// The blocks, by their first offset and where they lie in memory.
    #[cfg(test)]
    pub(super) fn places(&self) -> Vec<(u64, *const u8)> {
        self.map.iter().map(|(&index, block)| (index * BLOCK as u64, block.data.as_ptr())).collect()
    }

    /// The number of blocks.
    #[cfg(test)]
    pub(super) fn blocks(&self) -> usize {
        self.map.len()
    }
}

/// The block that holds `offset`, and where in it.
fn split(offset: u64) -> (u64, usize) {
    (offset / BLOCK as u64, (offset % BLOCK as u64) as usize)
}

impl Block {
    fn new() -> Box<Self> {
        Box::new(Self { data: [0; BLOCK], present: [0; WORDS] })
    }

    fn count(&self) -> usize {
        self.present.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn mark(&mut self, range: Range<usize>, present: bool) {
        let mut at = range.start;
        while at < range.end {
            let bit = at % 64;
            let bits = (64 - bit).min(range.end - at);
            let mask = (u64::MAX >> (64 - bits)) << bit;
            if present {
                self.present[at / 64] |= mask;
            } else {
                self.present[at / 64] &= !mask;
            }
            at += bits;
        }
    }

    /// The first bytes that are present without a gap.
    fn first_run(&self) -> Option<Range<usize>> {
        let word = self.present.iter().position(|&word| word != 0)?;
        let start = word * 64 + self.present[word].trailing_zeros() as usize;
        let mut end = start;
        while end < BLOCK {
            let ones = (self.present[end / 64] >> (end % 64)).trailing_ones() as usize;
            if ones == 0 {
                break;
            }
            end += ones;
        }
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_which_nothing_is_left_is_given_back() {
        let mut blocks = Blocks::default();
        for offset in [4_000, 4_096, 9_000] {
            blocks.insert(offset, &[7; 10]);
        }
        assert_eq!(blocks.blocks(), 3);
        blocks.truncate(4_096);
        assert_eq!((blocks.blocks(), blocks.len), (1, 10));
        blocks.truncate(4_005);
        assert_eq!((blocks.blocks(), blocks.len), (1, 5));
        blocks.truncate(4_000);
        assert_eq!((blocks.blocks(), blocks.len), (0, 0));
    }
}
