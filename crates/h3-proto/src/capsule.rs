//! The capsule protocol, which the data of a stream follows after some requests (RFC 9297 §3).

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::varint;

/// The type of a capsule with an HTTP datagram (RFC 9297 §3.5).
pub const CAPSULE_DATAGRAM: u64 = 0x00;

/// A capsule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capsule {
    /// What it means.
    pub ty: u64,
    /// What it says.
    pub value: Bytes,
}

impl Capsule {
    /// Its bytes.
    ///
    /// # Panics
    ///
    /// If the type has more than 62 bits.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(16 + self.value.len());
        varint::write(self.ty, &mut out);
        varint::write(self.value.len() as u64, &mut out);
        out.extend_from_slice(&self.value);
        out.into()
    }
}

/// A capsule has a value that is longer than this end takes. RFC 9297 §3.3 has the stream reset then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[error("a capsule of {len} bytes")]
pub struct CapsuleTooLong {
    /// How long it says it is, in bytes.
    pub len: u64,
}

/// Reads capsules from data that comes in pieces.
///
/// It keeps at most the value of one capsule, and nothing of those that are not wanted.
#[derive(Debug)]
pub struct CapsuleReader {
    value_max: usize,
    ty: Option<u64>,
    integer: varint::Reader,
    /// What is left of a value, and whether it is kept.
    value: Option<Value>,
}

#[derive(Debug)]
struct Value {
    left: u64,
    is_wanted: bool,
    bytes: BytesMut,
}

impl CapsuleReader {
    /// A reader that takes values of so many bytes.
    #[must_use]
    pub fn new(value_max: usize) -> Self {
        Self { value_max, ty: None, integer: varint::Reader::default(), value: None }
    }

    /// Takes the next capsule of a wanted type off the front of the data; the others are skipped, as RFC 9297 §3.2 wants of those
    /// that are unknown. If there is none, all of the data was taken.
    ///
    /// # Errors
    ///
    /// If a wanted one is too long. Nothing can be read after it.
    pub fn read(
        &mut self,
        data: &mut Bytes,
        wanted: impl Fn(u64) -> bool,
    ) -> Result<Option<Capsule>, CapsuleTooLong> {
        loop {
            let Some(ty) = self.ty.or_else(|| self.integer.read(data)) else { return Ok(None) };
            self.ty = Some(ty);
            if self.value.is_none() {
                let Some(left) = self.integer.read(data) else { return Ok(None) };
                let is_wanted = wanted(ty);
                if is_wanted && left > self.value_max as u64 {
                    return Err(CapsuleTooLong { len: left });
                }
                self.value = Some(Value { left, is_wanted, bytes: BytesMut::new() });
            }
            let Some(value) = self.take_value(data) else { return Ok(None) };
            self.ty = None;
            if let Some(value) = value {
                return Ok(Some(Capsule { ty, value }));
            }
        }
    }

    /// Whether the data may end here: not within a capsule.
    #[must_use]
    pub fn is_between_capsules(&self) -> bool {
        self.ty.is_none() && !self.integer.is_inside()
    }

    /// The value once it is whole, which is nothing where it is not wanted.
    fn take_value(&mut self, data: &mut Bytes) -> Option<Option<Bytes>> {
        let value = self.value.as_mut()?;
        let len = usize::try_from(value.left).unwrap_or(usize::MAX).min(data.len());
        let part = data.split_to(len);
        value.left -= len as u64;
        if value.left == 0 && value.bytes.is_empty() {
            return self.value.take().map(|value| value.is_wanted.then_some(part));
        }
        if value.is_wanted {
            value.bytes.extend_from_slice(&part);
        }
        if value.left > 0 {
            return None;
        }
        self.value.take().map(|value| value.is_wanted.then(|| value.bytes.freeze()))
    }
}
