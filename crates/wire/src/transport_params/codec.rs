//! The encodings of transport parameter values.

use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use super::{
    AVAILABLE_VERSIONS_MAX, AddressDiscovery, FecParameters, ParameterProblem, PreferredAddress, TimeStamps,
    VersionInformation,
};
use crate::{ConnectionId, PathId, Reader, ResetToken, VarInt, Version, Writer};

/// One way in which a value is written.
///
/// `read` takes what belongs to the value and leaves what follows: its caller refuses trailing bytes.
pub(super) trait Codec {
    /// The type of the field.
    type Value: PartialEq;
    fn read(reader: &mut Reader<'_>) -> Result<Self::Value, ParameterProblem>;
    fn write(value: &Self::Value, out: &mut Vec<u8>);
}

/// Appends a variable-length integer in its shortest form.
pub(super) fn put_varint(out: &mut Vec<u8>, value: VarInt) {
    let mut room = [0; 8];
    Writer::new(&mut room).put_varint(value);
    out.extend_from_slice(&room[..value.size()]);
}

/// A variable-length integer.
pub(super) enum Number {}

impl Codec for Number {
    type Value = VarInt;
    fn read(reader: &mut Reader<'_>) -> Result<VarInt, ParameterProblem> {
        Ok(reader.varint()?)
    }
    fn write(value: &VarInt, out: &mut Vec<u8>) {
        put_varint(out, *value);
    }
}

/// A variable-length integer where zero means the same as absence.
pub(super) enum NonZeroNumber {}

impl Codec for NonZeroNumber {
    type Value = Option<VarInt>;
    fn read(reader: &mut Reader<'_>) -> Result<Option<VarInt>, ParameterProblem> {
        Ok(Some(reader.varint()?).filter(|&value| value != VarInt::ZERO))
    }
    fn write(value: &Option<VarInt>, out: &mut Vec<u8>) {
        put_varint(out, value.unwrap_or(VarInt::ZERO));
    }
}

/// A variable-length integer of which only small values are legal. Larger ones are read as 255, for the
/// check in the table to refuse.
pub(super) enum SmallNumber {}

impl Codec for SmallNumber {
    type Value = u8;
    fn read(reader: &mut Reader<'_>) -> Result<u8, ParameterProblem> {
        Ok(u8::try_from(reader.varint()?.get()).unwrap_or(u8::MAX))
    }
    fn write(value: &u8, out: &mut Vec<u8>) {
        put_varint(out, VarInt::from(*value));
    }
}

/// A duration as a number of milliseconds.
pub(super) enum Milliseconds {}

impl Codec for Milliseconds {
    type Value = Duration;
    fn read(reader: &mut Reader<'_>) -> Result<Duration, ParameterProblem> {
        Ok(Duration::from_millis(reader.varint()?.get()))
    }
    fn write(value: &Duration, out: &mut Vec<u8>) {
        put_varint(out, units_rounded_up(*value, Duration::from_millis(1)));
    }
}

/// A duration as a number of milliseconds, where zero means the same as absence.
pub(super) enum NonZeroMilliseconds {}

impl Codec for NonZeroMilliseconds {
    type Value = Option<Duration>;
    fn read(reader: &mut Reader<'_>) -> Result<Option<Duration>, ParameterProblem> {
        Ok(Some(Milliseconds::read(reader)?).filter(|value| !value.is_zero()))
    }
    fn write(value: &Option<Duration>, out: &mut Vec<u8>) {
        Milliseconds::write(&value.unwrap_or_default(), out);
    }
}

/// A duration as a number of microseconds.
pub(super) enum Microseconds {}

impl Codec for Microseconds {
    type Value = Duration;
    fn read(reader: &mut Reader<'_>) -> Result<Duration, ParameterProblem> {
        Ok(Duration::from_micros(reader.varint()?.get()))
    }
    fn write(value: &Duration, out: &mut Vec<u8>) {
        put_varint(out, units_rounded_up(*value, Duration::from_micros(1)));
    }
}

/// Rounds up, so that a short idle timeout does not become none, and so that no delay is longer than announced.
fn units_rounded_up(value: Duration, unit: Duration) -> VarInt {
    let units = value.as_nanos().div_ceil(unit.as_nanos());
    VarInt::saturating(u64::try_from(units).unwrap_or(u64::MAX))
}

/// What a decoder for forward erasure correction takes.
pub(super) enum Fec {}

impl Codec for Fec {
    type Value = FecParameters;
    fn read(reader: &mut Reader<'_>) -> Result<FecParameters, ParameterProblem> {
        let value = FecParameters {
            version: reader.varint()?,
            schemes: reader.varint()?,
            window: reader.varint()?,
            symbol: reader.varint()?,
        };
        if value.version != FecParameters::VERSION {
            // Other versions may say more.
            reader.bytes(reader.remaining())?;
        }
        Ok(value)
    }
    fn write(value: &FecParameters, out: &mut Vec<u8>) {
        for number in [value.version, value.schemes, value.window, value.symbol] {
            put_varint(out, number);
        }
    }
}

/// A role in address discovery.
pub(super) enum Discovery {}

impl Codec for Discovery {
    type Value = AddressDiscovery;
    fn read(reader: &mut Reader<'_>) -> Result<AddressDiscovery, ParameterProblem> {
        match reader.varint()?.get() {
            0 => Ok(AddressDiscovery::Provide),
            1 => Ok(AddressDiscovery::Receive),
            2 => Ok(AddressDiscovery::Both),
            _ => Err(ParameterProblem::Value("is above 2")),
        }
    }
    fn write(value: &AddressDiscovery, out: &mut Vec<u8>) {
        put_varint(out, VarInt::from(*value as u8));
    }
}

/// A role in the exchange of timestamps.
pub(super) enum Stamps {}

impl Codec for Stamps {
    type Value = TimeStamps;
    fn read(reader: &mut Reader<'_>) -> Result<TimeStamps, ParameterProblem> {
        match reader.varint()?.get() {
            1 => Ok(TimeStamps::Receive),
            2 => Ok(TimeStamps::Send),
            3 => Ok(TimeStamps::Both),
            _ => Err(ParameterProblem::Value("is neither 1, 2 nor 3")),
        }
    }
    fn write(value: &TimeStamps, out: &mut Vec<u8>) {
        put_varint(out, VarInt::from(*value as u8));
    }
}

/// No bytes: the presence is the value.
pub(super) enum Flag {}

impl Codec for Flag {
    type Value = bool;
    fn read(_: &mut Reader<'_>) -> Result<bool, ParameterProblem> {
        Ok(true)
    }
    fn write(_: &bool, _: &mut Vec<u8>) {}
}

/// A connection ID that fills the parameter.
pub(super) enum Cid {}

impl Codec for Cid {
    type Value = ConnectionId;
    fn read(reader: &mut Reader<'_>) -> Result<ConnectionId, ParameterProblem> {
        let bytes = reader.bytes(reader.remaining())?;
        ConnectionId::new(bytes).ok_or(ParameterProblem::CidTooLong)
    }
    fn write(value: &ConnectionId, out: &mut Vec<u8>) {
        out.extend_from_slice(value.as_bytes());
    }
}

/// A stateless reset token.
pub(super) enum Token {}

impl Codec for Token {
    type Value = ResetToken;
    fn read(reader: &mut Reader<'_>) -> Result<ResetToken, ParameterProblem> {
        Ok(ResetToken(reader.array()?))
    }
    fn write(value: &ResetToken, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.0);
    }
}

/// The largest path ID.
pub(super) enum Path {}

impl Codec for Path {
    type Value = PathId;
    fn read(reader: &mut Reader<'_>) -> Result<PathId, ParameterProblem> {
        let id = u32::try_from(reader.varint()?.get());
        id.map(PathId).map_err(|_| ParameterProblem::Value("is 2^32 or more"))
    }
    fn write(value: &PathId, out: &mut Vec<u8>) {
        put_varint(out, VarInt::from(value.0));
    }
}

/// Two addresses, a connection ID and its token (RFC 9000 §18.2, figure 22).
pub(super) enum Preferred {}

impl Codec for Preferred {
    type Value = PreferredAddress;
    fn read(reader: &mut Reader<'_>) -> Result<PreferredAddress, ParameterProblem> {
        let v4 = SocketAddrV4::new(Ipv4Addr::from(reader.array::<4>()?), reader.u16()?);
        let v6 = SocketAddrV6::new(Ipv6Addr::from(reader.array::<16>()?), reader.u16()?, 0, 0);
        let cid_len = usize::from(reader.u8()?);
        let cid = ConnectionId::new(reader.bytes(cid_len)?).ok_or(ParameterProblem::CidTooLong)?;
        // An address and port of zeros stand for a family without an address.
        Ok(PreferredAddress {
            v4: Some(v4).filter(|&v4| v4 != NO_V4),
            v6: Some(v6).filter(|&v6| v6 != NO_V6),
            cid,
            reset_token: Token::read(reader)?,
        })
    }
    fn write(value: &PreferredAddress, out: &mut Vec<u8>) {
        let (v4, v6) = (value.v4.unwrap_or(NO_V4), value.v6.unwrap_or(NO_V6));
        out.extend_from_slice(&v4.ip().octets());
        out.extend_from_slice(&v4.port().to_be_bytes());
        out.extend_from_slice(&v6.ip().octets());
        out.extend_from_slice(&v6.port().to_be_bytes());
        out.push(value.cid.len() as u8);
        out.extend_from_slice(value.cid.as_bytes());
        Token::write(&value.reset_token, out);
    }
}

const NO_V4: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
const NO_V6: SocketAddrV6 = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0);

/// The chosen version and then the available ones, which fill the parameter (RFC 9368 §3).
pub(super) enum Versions {}

impl Codec for Versions {
    type Value = VersionInformation;
    fn read(reader: &mut Reader<'_>) -> Result<VersionInformation, ParameterProblem> {
        let chosen = Version(reader.u32()?);
        if reader.remaining() > 4 * AVAILABLE_VERSIONS_MAX {
            return Err(ParameterProblem::TooManyVersions);
        }
        let mut available = Vec::with_capacity(reader.remaining() / 4);
        while !reader.is_empty() {
            available.push(Version(reader.u32()?));
        }
        Ok(VersionInformation { chosen, available })
    }
    fn write(value: &VersionInformation, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.chosen.0.to_be_bytes());
        for version in value.available.iter().take(AVAILABLE_VERSIONS_MAX) {
            out.extend_from_slice(&version.0.to_be_bytes());
        }
    }
}

/// A parameter that is there or is not.
pub(super) struct Optional<C>(PhantomData<C>);

impl<C: Codec> Codec for Optional<C> {
    type Value = Option<C::Value>;
    fn read(reader: &mut Reader<'_>) -> Result<Self::Value, ParameterProblem> {
        C::read(reader).map(Some)
    }
    fn write(value: &Self::Value, out: &mut Vec<u8>) {
        if let Some(value) = value {
            C::write(value, out);
        }
    }
}
