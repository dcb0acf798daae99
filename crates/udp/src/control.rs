//! Control messages of the kernel (cmsg(3)), as bytes.

/// Lengths of control messages, and where the next one begins, are multiples of this.
const ALIGNMENT: usize = size_of::<usize>();

/// The header of a control message: its length, its level and its type (`struct cmsghdr`).
const HEADER_LEN: usize = ALIGNMENT + 2 * size_of::<libc::c_int>();

/// The bytes that a control message with so many bytes of data takes.
pub(crate) const fn space(data: usize) -> usize {
    (HEADER_LEN + data).next_multiple_of(ALIGNMENT)
}

/// Control messages that are being written. There is room for `LEN` bytes.
pub(crate) struct Control<const LEN: usize> {
    bytes: [u8; LEN],
    len: usize,
}

impl<const LEN: usize> Control<LEN> {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; LEN], len: 0 }
    }

    /// Adds a message, for which there must be room.
    pub(crate) fn put(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        let len = HEADER_LEN + data.len();
        for part in [&len.to_ne_bytes()[..], &level.to_ne_bytes(), &kind.to_ne_bytes(), data] {
            self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
        self.len = self.len.next_multiple_of(ALIGNMENT);
    }

    /// All of them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A control message of the kernel.
pub(crate) struct Message<'a> {
    pub(crate) level: libc::c_int,
    pub(crate) kind: libc::c_int,
    pub(crate) data: &'a [u8],
}

/// The control messages in `bytes`, up to one that is cut.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let (len, rest) = bytes.split_first_chunk()?;
        let (level, rest) = rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let len = usize::from_ne_bytes(*len);
        let data = rest.get(..len.checked_sub(HEADER_LEN)?)?;
        bytes = bytes.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(Message {
            level: libc::c_int::from_ne_bytes(*level),
            kind: libc::c_int::from_ne_bytes(*kind),
            data,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_up_to_what_is_cut() {
        let mut control = Control::<{ space(3) + space(8) + space(0) }>::new();
        control.put(1, 2, &[7; 3]);
        control.put(3, 4, &[8; 8]);
        control.put(5, 6, &[]);
        let read = |len: usize| -> Vec<_> {
            messages(&control.bytes()[..len]).map(|it| (it.level, it.kind, it.data.to_vec())).collect()
        };
        let all = [(1, 2, vec![7; 3]), (3, 4, vec![8; 8]), (5, 6, vec![])];
        assert_eq!(read(control.bytes().len()), all);
        for (len, whole) in [(0, 0), (space(3) - 6, 0), (space(3), 1), (space(3) + space(8) - 1, 1)] {
            assert_eq!(read(len), all[..whole], "{len}");
        }
    }

    #[test]
    fn a_length_that_cannot_be_ends_it() {
        for len in [0, HEADER_LEN - 1, usize::MAX] {
            let mut bytes = [0; 64];
            bytes[..ALIGNMENT].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(messages(&bytes).count(), 0, "{len}");
        }
    }
}
