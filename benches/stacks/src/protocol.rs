//! What is said on a stream: a question, then bytes, then their digest.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::digest::Digest;
use crate::failure::{Failure, Result};
use crate::stack::{Receiver, Sender};

const QUESTION_LEN: usize = 17;
pub(crate) const DIGEST_LEN: usize = 8;
/// Bytes that are written at a time. No multiple of it fits into a packet, and no two places of it are alike.
const CHUNK: usize = 64 * 1024;

/// What a client wants of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// So many bytes, and their digest.
    Download(u64),
    /// The digest of the so many bytes that follow.
    Upload(u64),
    /// So many frames of so many bytes each, one every [`FRAME_INTERVAL`](crate::server::FRAME_INTERVAL); then their digest.
    Frames { count: u64, size: u64 },
    /// Datagrams for so many milliseconds, each with its digest; then, here, how many they were.
    Datagrams { milliseconds: u64, size: u64 },
}

impl Question {
    pub(crate) fn encode(self) -> Bytes {
        let (kind, first, second) = match self {
            Self::Download(size) => (1, size, 0),
            Self::Upload(size) => (2, size, 0),
            Self::Frames { count, size } => (3, count, size),
            Self::Datagrams { milliseconds, size } => (4, milliseconds, size),
        };
        let mut bytes = BytesMut::with_capacity(QUESTION_LEN);
        bytes.put_u8(kind);
        bytes.put_u64(first);
        bytes.put_u64(second);
        bytes.freeze()
    }

    fn decode(mut bytes: &[u8]) -> Result<Self> {
        let (kind, first, second) = (bytes.get_u8(), bytes.get_u64(), bytes.get_u64());
        match kind {
            1 => Ok(Self::Download(first)),
            2 => Ok(Self::Upload(first)),
            3 => Ok(Self::Frames { count: first, size: second }),
            4 => Ok(Self::Datagrams { milliseconds: first, size: second }),
            _ => Err(Failure::Damaged("a question")),
        }
    }
}

/// Reads a stream in pieces of known length.
pub(crate) struct Reader<R> {
    stream: R,
    rest: Bytes,
}

impl<R: Receiver> Reader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, rest: Bytes::new() }
    }

    /// The next question; `None` at the end of the stream.
    pub(crate) async fn question(&mut self) -> Result<Option<Question>> {
        if self.rest.is_empty() {
            match self.stream.read().await? {
                Some(bytes) => self.rest = bytes,
                None => return Ok(None),
            }
        }
        let mut bytes = [0; QUESTION_LEN];
        self.exact(&mut bytes).await?;
        Question::decode(&bytes).map(Some)
    }

    pub(crate) async fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.exact(&mut bytes).await?;
        Ok(u64::from_be_bytes(bytes))
    }

    /// Reads so many bytes as they come and adds them to the digest.
    pub(crate) async fn digested(&mut self, size: u64, digest: &mut Digest) -> Result<()> {
        let mut left = size;
        while left > 0 {
            if self.rest.is_empty() {
                self.rest = self.stream.read().await?.ok_or(Failure::Truncated)?;
            }
            let len = (self.rest.len() as u64).min(left);
            let piece = self.rest.split_to(len as usize);
            digest.update(&piece);
            left -= len;
        }
        Ok(())
    }

    pub(crate) async fn exact(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.rest.is_empty() {
                self.rest = self.stream.read().await?.ok_or(Failure::Truncated)?;
            }
            let len = self.rest.len().min(buffer.len() - filled);
            self.rest.copy_to_slice(&mut buffer[filled..filled + len]);
            filled += len;
        }
        Ok(())
    }
}

/// The bytes that benchmarks send.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    chunk: Bytes,
}

impl Default for Content {
    fn default() -> Self {
        // A generator of Weyl's kind: cheap, and without a short period.
        let words =
            (0..CHUNK as u64 / 8).map(|n| (n + 1).wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(17));
        Self { chunk: words.flat_map(u64::to_le_bytes).collect() }
    }
}

impl Content {
    /// The first `len` bytes.
    pub(crate) fn prefix(&self, len: u64) -> Bytes {
        self.chunk.slice(..self.chunk.len().min(len as usize))
    }

    /// Writes `size` bytes and adds them to the digest.
    pub(crate) async fn write(&self, stream: &mut impl Sender, size: u64, digest: &mut Digest) -> Result<()> {
        let mut left = size;
        while left > 0 {
            let piece = self.prefix(left);
            left -= piece.len() as u64;
            digest.update(&piece);
            stream.write(piece).await?;
        }
        Ok(())
    }

    /// Writes `size` bytes and their digest, small answers as one piece.
    pub(crate) async fn write_with_digest(&self, stream: &mut impl Sender, size: u64) -> Result<()> {
        let mut digest = Digest::default();
        if size > CHUNK as u64 / 2 {
            self.write(stream, size, &mut digest).await?;
            return stream.write(number(digest.value())).await;
        }
        let piece = self.prefix(size);
        digest.update(&piece);
        let mut answer = BytesMut::with_capacity(piece.len() + DIGEST_LEN);
        answer.put(piece);
        answer.put_u64(digest.value());
        stream.write(answer.freeze()).await
    }
}

pub(crate) fn number(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}
