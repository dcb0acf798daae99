//! Transport parameters that are cut, damaged or huge (RFC 9000 §7.4, §18): they are taken or refused, with the right code.

use std::cell::Cell;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Side, TransportErrorCode as Code, TransportParameters};

use super::by_hand::{
    ORIGINAL_DCID, cid, client, client_that_tells, exchange, lost, server, server_that_tells,
};
use super::memory::memory_of;
use crate::ConnectionError;

/// What became of a handshake.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Taken,
    Refused(Code),
}

/// Encodes the parameters of one end and lets a test change the bytes; then the other end judges them.
fn judge(by_client: bool, change: impl FnOnce(&mut Vec<u8>)) -> End {
    let now = Instant::from_millis(1);
    let tell = |side| {
        move |parameters: TransportParameters| {
            let mut bytes = parameters.write(side, None);
            change(&mut bytes);
            bytes
        }
    };
    let (mut client, mut server) = match by_client {
        true => (client_that_tells(now, tell(Side::Client)), server(now, cid(ORIGINAL_DCID), |_| {}, &[])),
        false => (client(now, |_| {}, &[]), server_that_tells(now, cid(ORIGINAL_DCID), tell(Side::Server))),
    };
    exchange(&mut client, &mut server, now);
    let judge = if by_client { &mut server } else { &mut client };
    match lost(judge) {
        None => End::Taken,
        Some(ConnectionError::Transport(error)) => End::Refused(error.code),
        // The other end may have closed before it: it judges nothing that is changed here.
        Some(other) => panic!("{other:?}"),
    }
}

fn len_of_parameters(by_client: bool) -> usize {
    let len = Cell::new(0);
    assert_eq!(judge(by_client, |bytes| len.set(bytes.len())), End::Taken);
    len.get()
}

/// What parameters can be refused with: those of versions have a code of their own (RFC 9368 §4).
fn is_right(end: &End) -> bool {
    let refused = [Code::TRANSPORT_PARAMETER_ERROR, Code::VERSION_NEGOTIATION_ERROR];
    matches!(end, End::Taken) || refused.iter().any(|code| *end == End::Refused(*code))
}

#[test]
fn parameters_cut_at_every_byte() {
    for by_client in [true, false] {
        let len = len_of_parameters(by_client);
        let taken = (0..len).filter(|kept| {
            let end = judge(by_client, |bytes| bytes.truncate(*kept));
            assert!(is_right(&end), "{kept} of {len} bytes: {end:?}");
            end == End::Taken
        });
        // Between two parameters, behind those that must be there.
        assert!(taken.count() < 20);
    }
}

#[test]
fn parameters_with_each_byte_damaged() {
    for by_client in [true, false] {
        let len = len_of_parameters(by_client);
        let mut refused = 0;
        for at in 0..len {
            for change in [0x01, 0x80] {
                let end = judge(by_client, |bytes| bytes[at] ^= change);
                assert!(is_right(&end), "byte {at} of {len}, {change:#x}: {end:?}");
                refused += usize::from(end != End::Taken);
            }
        }
        assert!(refused > len / 2, "{refused} of {}", 2 * len);
    }
}

#[test]
fn parameters_with_a_byte_too_many_at_every_place() {
    for by_client in [true, false] {
        for at in 0..=len_of_parameters(by_client) {
            let end = judge(by_client, |bytes| bytes.insert(at, 0));
            assert!(is_right(&end), "{at}: {end:?}");
        }
    }
}

/// A parameter that nobody knows.
fn unknown(number: u64, len: usize) -> Vec<u8> {
    // RFC 9000 §18.1: 31 * N + 27 is reserved for this.
    let id = (31 * number + 27 + (0b10 << 30)) as u32;
    let head = [id.to_be_bytes(), (len as u32 + (0b10 << 30)).to_be_bytes()].concat();
    [head, vec![0xee; len]].concat()
}

#[test]
fn huge_parameters_with_the_log_on() {
    for (count, len) in [(1, 40_000), (30, 1_000), (5_000, 0), (5_000, 1)] {
        let raw: Vec<u8> = (0..count).flat_map(|n| unknown(n, len)).collect();
        let now = Instant::from_millis(1);
        let mut attacker = client(now, |_| {}, &raw);
        let mut victim = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
        // Of both ends: the log was made before.
        let memory = memory_of(|| {
            // More than a congestion window: it takes some round trips.
            for round in 0..50 {
                exchange(&mut attacker, &mut victim, now + Duration::from_millis(50 * round));
            }
        });
        assert!(memory.peak < 1 << 20, "{count} of {len} bytes: {memory:?}");
        assert!(victim.log().is_some_and(|log| log.iter().count() > 0));
        match lost(&mut victim) {
            None => assert!(victim.handshake.is_confirmed(), "{count} of {len} bytes"),
            Some(ConnectionError::Transport(error)) => {
                assert_eq!(error.code, Code::TRANSPORT_PARAMETER_ERROR, "{count} of {len} bytes");
            }
            Some(other) => panic!("{other:?}"),
        }
    }
}
