//! What is on its way from one end to the other.

use bytes::BytesMut;

/// Datagrams that left together and arrive together; it gives them one by one. All but the last have the size of a segment.
pub(crate) struct Train {
    bytes: BytesMut,
    segment: usize,
}

impl Train {
    /// A copy of `bytes`, as a socket makes one.
    pub(crate) fn new(bytes: &[u8], segment: Option<usize>) -> Self {
        Self { bytes: BytesMut::from(bytes), segment: segment.unwrap_or(bytes.len()) }
    }
}

impl Iterator for Train {
    type Item = BytesMut;

    fn next(&mut self) -> Option<BytesMut> {
        let len = self.segment.min(self.bytes.len());
        (len > 0).then(|| self.bytes.split_to(len))
    }
}
