//! Spare payload buffers, so that a long simulation does not allocate for each packet.

/// The most buffers kept; more are freed.
const SPARE_MAX: usize = 4_096;

/// Payload buffers of packets that are gone, kept for new ones.
#[derive(Debug, Default)]
pub struct BufferPool {
    spare: Vec<Vec<u8>>,
}

impl BufferPool {
    /// An empty buffer, with the capacity of an earlier packet if there is one to spare.
    pub fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back a buffer that nobody needs.
    pub fn put(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// A buffer with a copy of `bytes`.
    pub fn copy_of(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.extend_from_slice(bytes);
        buffer
    }
}
