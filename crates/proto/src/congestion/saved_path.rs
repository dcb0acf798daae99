//! What a connection learned of its path, for a later one (RFC 9959).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The version of the encoding.
const VERSION: u8 = 1;

/// How long the parameters are good for. Nobody knows what a path will be like; an hour is what a user stays at a
/// place, and the checks of a resuming connection do the rest.
pub const SAVED_PATH_LIFETIME: Duration = Duration::from_secs(3_600);

/// Congestion control parameters of a path, saved for a later connection to the same peer (RFC 9959).
///
/// One set is for one connection (RFC 9959 §3.2): of several that start at the same time, one may have it.
/// There is no clock in it: whoever keeps it calls [`SavedPath::aged`] with the time that has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPath {
    /// The peer's address; the port does not matter.
    pub remote: IpAddr,
    /// This end's address, where it was known.
    pub local: Option<IpAddr>,
    /// The bytes that the path delivered in a round trip (`saved_cwnd`). 0 if too little was sent to know: then only the round-trip time
    /// is of use.
    pub window: u64,
    /// Whether the path was full then. If not, it may carry more than that.
    pub full: bool,
    /// The smallest round-trip time (`saved_rtt`).
    pub rtt: Duration,
    /// How long this is still good for.
    pub lifetime: Duration,
}

impl SavedPath {
    /// The same, so much later; `None` if it is not good for anything any more.
    #[must_use]
    pub fn aged(mut self, by: Duration) -> Option<Self> {
        self.lifetime = self.lifetime.checked_sub(by).filter(|left| !left.is_zero())?;
        Some(self)
    }

    /// Whether this is about the path between these addresses.
    pub(crate) fn is_about(&self, remote: IpAddr, local: Option<IpAddr>) -> bool {
        let same_end = self.local.zip(local).is_none_or(|(saved, now)| saved == now);
        !self.lifetime.is_zero() && self.remote.to_canonical() == remote.to_canonical() && same_end
    }

    /// The parameters as bytes, to be kept beside a session ticket.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for address in [Some(self.remote), self.local] {
            match address {
                None => bytes.push(0),
                Some(IpAddr::V4(address)) => {
                    bytes.push(4);
                    bytes.extend(address.octets());
                }
                Some(IpAddr::V6(address)) => {
                    bytes.push(6);
                    bytes.extend(address.octets());
                }
            }
        }
        bytes.push(u8::from(self.full));
        bytes.extend(self.window.to_be_bytes());
        // A time of zero would be no measurement.
        for time in [self.rtt.max(Duration::from_micros(1)), self.lifetime] {
            bytes.extend(u64::try_from(time.as_micros()).unwrap_or(u64::MAX).to_be_bytes());
        }
        bytes
    }

    /// Reads what [`SavedPath::encode`] wrote; `None` if it is anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (&VERSION, mut rest) = bytes.split_first()? else { return None };
        let remote = take_address(&mut rest)??;
        let local = take_address(&mut rest)?;
        let full = match take::<1>(&mut rest)? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let window = take_number(&mut rest)?;
        let rtt = Duration::from_micros(take_number(&mut rest)?);
        let lifetime = Duration::from_micros(take_number(&mut rest)?);
        (rest.is_empty() && !rtt.is_zero()).then_some(Self { remote, local, window, full, rtt, lifetime })
    }
}

/// The next address; the inner `None` is none.
fn take_address(rest: &mut &[u8]) -> Option<Option<IpAddr>> {
    let (kind, after) = rest.split_first()?;
    *rest = after;
    match kind {
        0 => Some(None),
        4 => Some(Some(IpAddr::V4(Ipv4Addr::from(take::<4>(rest)?)))),
        6 => Some(Some(IpAddr::V6(Ipv6Addr::from(take::<16>(rest)?)))),
        _ => None,
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    take::<8>(rest).map(u64::from_be_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(remote: IpAddr, local: Option<IpAddr>) -> SavedPath {
        let rtt = Duration::from_micros(612_345);
        SavedPath {
            remote,
            local,
            window: 18_000_000,
            full: local.is_some(),
            rtt,
            lifetime: SAVED_PATH_LIFETIME,
        }
    }

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9));

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        for path in [saved(V4, None), saved(V6, Some(V6)), saved(V4, Some(V4))] {
            let bytes = path.encode();
            assert_eq!(SavedPath::decode(&bytes), Some(path));
            for len in 0..bytes.len() {
                assert_eq!(SavedPath::decode(&bytes[..len]), None);
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(SavedPath::decode(&longer), None);
        }
        let mut other = saved(V4, None).encode();
        other[0] = VERSION + 1;
        assert_eq!(SavedPath::decode(&other), None);
    }

    #[test]
    fn a_round_trip_of_less_than_a_microsecond_is_written_as_one() {
        let path = SavedPath { rtt: Duration::from_nanos(900), ..saved(V4, None) };
        let read = SavedPath::decode(&path.encode()).expect("what was written");
        assert_eq!(read, SavedPath { rtt: Duration::from_micros(1), ..path });
    }

    #[test]
    fn age_takes_from_the_lifetime_until_nothing_is_left() {
        let path = saved(V4, None).aged(Duration::from_secs(600)).unwrap();
        assert_eq!(path.lifetime, Duration::from_secs(3_000));
        assert_eq!(path.aged(Duration::from_secs(3_000)), None);
    }

    #[test]
    fn another_address_is_another_path() {
        let mapped = IpAddr::V6(Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped());
        assert!(saved(V4, None).is_about(V4, Some(V6)));
        assert!(saved(V4, None).is_about(mapped, None));
        assert!(!saved(V4, None).is_about(V6, None));
        assert!(!saved(V4, Some(V4)).is_about(V4, Some(V6)), "another interface");
    }
}
