//! Content that comes compressed (`--compressed`).

use std::io::Write;

use flate2::write::MultiGzDecoder;
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};

use super::exit;
use crate::failure::Failure;
use crate::get::Url;

/// What can be unpacked, for Accept-Encoding.
pub(super) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip");

/// How much is unpacked at a time, in bytes: deflate makes at most 1,032 bytes of one, so this bounds what is in memory to 4 MiB.
const PIECE_BYTES: usize = 4 << 10;

/// Unpacks a body.
#[derive(Debug)]
pub(super) struct Unpacker {
    /// Of what, for messages.
    what: String,
    gzip: MultiGzDecoder<Vec<u8>>,
    has_begun: bool,
}

impl Unpacker {
    /// What a body needs; nothing, if it is not compressed.
    ///
    /// # Errors
    /// It is compressed in a way that was not asked for.
    pub(super) fn of(url: &Url, headers: &HeaderMap) -> Result<Option<Self>, Failure> {
        let codings = headers.get_all(CONTENT_ENCODING).iter();
        let codings: Vec<String> =
            codings.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()).collect();
        // RFC 9110 §8.4.1.3: `x-gzip` is the same.
        match codings.join(",").trim() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => {
                let gzip = MultiGzDecoder::new(Vec::new());
                Ok(Some(Self { what: url.to_string(), gzip, has_begun: false }))
            }
            other => {
                let why =
                    format!("the server has encoded it as {other:?}, and gzip is all that can be unpacked");
                Err(Failure::Http { what: url.to_string(), why, exit: exit::ENCODING })
            }
        }
    }

    /// Hands over what comes of some bytes, piece by piece.
    pub(super) fn unpack(
        &mut self,
        bytes: &[u8],
        mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for piece in bytes.chunks(PIECE_BYTES) {
            self.has_begun = true;
            let result = self.gzip.write_all(piece);
            write(self.gzip.get_ref())?;
            self.gzip.get_mut().clear();
            result.map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    /// The same of what is left at the end.
    pub(super) fn finish(
        &mut self,
        mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Of a response without a body nothing is to be unpacked.
        let result = if self.has_begun { self.gzip.try_finish() } else { Ok(()) };
        write(self.gzip.get_ref())?;
        self.gzip.get_mut().clear();
        result.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        let why = format!("what came cannot be unpacked (gzip): {error}");
        Failure::Http { what: self.what.clone(), why, exit: exit::ENCODING }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn unpacker(coding: &'static str) -> Result<Option<Unpacker>, Failure> {
        let url = Url::parse("https://example.org/").expect("a URL");
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))]);
        Unpacker::of(&url, &headers)
    }

    #[test]
    fn codings_are_known_by_their_names() {
        for coding in ["gzip", "GZIP", "x-gzip"] {
            assert!(unpacker(coding).is_ok_and(|found| found.is_some()), "{coding}");
        }
        assert!(unpacker("identity").is_ok_and(|found| found.is_none()));
        for coding in ["br", "zstd", "deflate", "gzip, gzip"] {
            assert!(unpacker(coding).is_err(), "{coding}");
        }
    }

    #[test]
    fn what_becomes_very_large_is_handed_over_in_pieces() {
        const LEN: usize = 32 << 20;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![0; LEN]).expect("compressed");
        let bytes = encoder.finish().expect("compressed");
        let mut unpacker = unpacker("gzip").ok().flatten().expect("an unpacker");
        let (mut total, mut largest) = (0, 0);
        let mut take = |bytes: &[u8]| {
            (total, largest) = (total + bytes.len(), largest.max(bytes.len()));
            Ok(())
        };
        unpacker.unpack(&bytes, &mut take).and_then(|()| unpacker.finish(&mut take)).expect("unpacked");
        assert_eq!(total, LEN);
        assert!(largest <= 5 << 20, "{largest}");
    }
}
