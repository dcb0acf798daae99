//! What is refused.

use super::*;

#[test]
fn illegal_numbers_are_refused_and_the_last_legal_ones_are_not() {
    let cases = [
        (0x03, 1199, 1200),
        (0x08, (1 << 60) + 1, 1 << 60),
        (0x09, (1 << 60) + 1, 1 << 60),
        (0x0a, 21, 20),
        (0x0b, 1 << 14, (1 << 14) - 1),
        (0x0e, 1, 2),
        (0x3e, 1 << 32, (1 << 32) - 1),
        (0x7158, 4, 3),
        (0x7158, 0, 1),
        (0x9f81_a176, 3, 2),
        // In microseconds, over the default max_ack_delay of 25 ms.
        (0xff04_de1b, 25_001, 25_000),
    ];
    for (id, illegal, legal) in cases {
        for side in SIDES {
            assert!(matches!(refused(side, &number(id, illegal), id), ParameterProblem::Value(_)));
            let read = TransportParameters::read(side, &number(id, legal)).unwrap();
            assert_eq!(TransportParameters::read(side, &read.write(side, None)), Ok(read));
        }
    }
    for id in [0x03, 0x0e] {
        refused(Side::Client, &number(id, 0), id);
    }
    for id in [0x08, 0x09, 0x0a, 0x0b, 0x3e, 0x7158, 0x9f81_a176, 0xff04_de1b] {
        refused(Side::Client, &number(id, VarInt::MAX.get()), id);
    }
    // An exponent that only looks small in its low byte.
    refused(Side::Client, &number(0x0a, 0x103), 0x0a);
}

#[test]
fn the_shortest_ack_delay_is_compared_with_the_longest_in_any_order() {
    let (shortest, longest) = (number(0xff04_de1b, 5_001), number(0x0b, 5));
    for bytes in [[shortest.clone(), longest.clone()].concat(), [longest, shortest].concat()] {
        refused(Side::Server, &bytes, 0xff04_de1b);
    }
    let equal = [number(0xff04_de1b, 5_000), number(0x0b, 5)].concat();
    let read = TransportParameters::read(Side::Server, &equal).unwrap();
    assert_eq!(read.min_ack_delay, Some(read.max_ack_delay));
}

#[test]
fn a_client_neither_sends_nor_gets_away_with_what_is_for_servers() {
    let written = split(&all().write(Side::Client, None));
    for (id, value) in split(&all().write(Side::Server, None)) {
        let server_only = [0x00, 0x02, 0x0d, 0x10].contains(&id);
        assert_eq!(written.contains(&(id, value.clone())), !server_only, "{id:#x}");
        if server_only {
            assert_eq!(refused(Side::Client, &parameter(id, &value), id), ParameterProblem::ServerOnly);
        }
    }
}

#[test]
fn preferred_addresses_need_connection_ids() {
    let bytes = parameter(0x0d, &preferred_bytes(&[]));
    assert!(matches!(refused(Side::Server, &bytes, 0x0d), ParameterProblem::Value(_)));
    let bytes = parameter(0x0d, &preferred_bytes(&[1; 21]));
    assert_eq!(refused(Side::Server, &bytes, 0x0d), ParameterProblem::CidTooLong);
    let good = parameter(0x0d, &preferred_bytes(&[1]));
    let without_cids = [good.clone(), parameter(0x0f, &[])].concat();
    assert!(matches!(refused(Side::Server, &without_cids, 0x0d), ParameterProblem::Value(_)));
    let with_cids = [good, parameter(0x0f, &[1])].concat();
    assert!(TransportParameters::read(Side::Server, &with_cids).is_ok());
}

#[test]
fn connection_ids_may_be_empty_but_not_longer_than_20_bytes() {
    for id in [0x00, 0x0f, 0x10] {
        let bytes = parameter(id, &[5; 21]);
        assert_eq!(refused(Side::Server, &bytes, id), ParameterProblem::CidTooLong);
        assert!(TransportParameters::read(Side::Server, &parameter(id, &[5; 20])).is_ok());
    }
    let read = TransportParameters::read(Side::Client, &parameter(0x0f, &[])).unwrap();
    assert_eq!(read.initial_scid, Some(ConnectionId::EMPTY));
    assert_eq!(read.write(Side::Client, None), parameter(0x0f, &[]));
}

#[test]
fn version_lists_are_whole_bounded_and_without_zero() {
    let list = |versions: &[u32]| {
        parameter(0x11, &versions.iter().flat_map(|version| version.to_be_bytes()).collect::<Vec<u8>>())
    };
    for side in SIDES {
        for zero in [&[0, 1, 0][..], &[1, 1, 0], &[1, 0, 1]] {
            assert!(matches!(refused(side, &list(zero), 0x11), ParameterProblem::Value(_)));
        }
        for len in [0, 3, 5, 7] {
            assert_eq!(refused(side, &parameter(0x11, &[1; 7][..len]), 0x11), ParameterProblem::Truncated);
        }
        let most = [1; AVAILABLE_VERSIONS_MAX + 1];
        assert!(TransportParameters::read(side, &list(&most)).is_ok());
        let too_many = [1; AVAILABLE_VERSIONS_MAX + 2];
        assert_eq!(refused(side, &list(&too_many), 0x11), ParameterProblem::TooManyVersions);
    }
    // Only a client has to list its choice.
    assert!(matches!(refused(Side::Client, &list(&[1, 2]), 0x11), ParameterProblem::Value(_)));
    assert!(matches!(refused(Side::Client, &list(&[1]), 0x11), ParameterProblem::Value(_)));
    assert!(TransportParameters::read(Side::Server, &list(&[1, 2])).is_ok());
}

#[test]
fn parameters_that_occur_twice_are_refused() {
    let bytes = all().write(Side::Server, None);
    for (id, value) in split(&bytes) {
        let twice = [bytes.clone(), parameter(id, &value)].concat();
        assert_eq!(refused(Side::Server, &twice, id), ParameterProblem::Duplicate);
    }
    let unknown = [parameter(27, &[1]), number(0x04, 1), parameter(27, &[2])].concat();
    assert_eq!(refused(Side::Client, &unknown, 27), ParameterProblem::Duplicate);
    // The same number in a longer form is the same parameter.
    let longer = [&number(0x04, 1)[..], &[0x40, 0x04, 1, 1]].concat();
    assert_eq!(refused(Side::Client, &longer, 0x04), ParameterProblem::Duplicate);
}

#[test]
fn the_number_of_parameters_is_bounded() {
    let unknown = |count: u64| -> Vec<u8> { (0..count).flat_map(|i| parameter(0x1000 + i, &[])).collect() };
    let most = PARAMETERS_MAX as u64;
    assert_eq!(TransportParameters::read(Side::Client, &unknown(most)), Ok(TransportParameters::default()));
    assert_eq!(
        TransportParameters::read(Side::Client, &unknown(most + 1)),
        Err(TransportParameterError::TooMany)
    );
}

#[test]
fn a_cut_anywhere_but_between_parameters_is_refused() {
    let bytes = all().write(Side::Server, None);
    let mut boundaries = vec![0];
    for (id, value) in split(&bytes) {
        boundaries.push(boundaries.last().unwrap() + parameter(id, &value).len());
    }
    for len in 0..=bytes.len() {
        let read = TransportParameters::read(Side::Server, &bytes[..len]);
        assert_eq!(read.is_ok(), boundaries.contains(&len), "cut at {len}: {read:?}");
    }
}

#[test]
fn values_that_are_too_short_or_too_long_are_refused() {
    for (id, value) in split(&all().write(Side::Server, None)) {
        let longer = [&value[..], &[1]].concat();
        refused(Side::Server, &parameter(id, &longer), id);
        for len in 0..value.len() {
            let bytes = parameter(id, &value[..len]);
            match id {
                // Connection IDs have any length up to 20, lists of versions any multiple of four.
                0x00 | 0x0f | 0x10 => assert!(TransportParameters::read(Side::Server, &bytes).is_ok()),
                0x11 if len > 0 && len % 4 == 0 => {
                    assert!(TransportParameters::read(Side::Server, &bytes).is_ok());
                }
                _ => assert_eq!(refused(Side::Server, &bytes, id), ParameterProblem::Truncated),
            }
        }
    }
    assert_eq!(refused(Side::Client, &parameter(0x0c, &[0]), 0x0c), ParameterProblem::TrailingBytes);
    assert_eq!(
        refused(Side::Client, &[0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 0x04),
        ParameterProblem::Truncated
    );
}

#[test]
fn any_value_of_any_byte_is_refused_or_legal() {
    for side in SIDES {
        let mut bytes = all().write(side, None);
        for at in 0..bytes.len() {
            let before = bytes[at];
            for value in 0..=u8::MAX {
                bytes[at] = value;
                read_is_legal(side, &bytes);
            }
            bytes[at] = before;
        }
    }
}

#[test]
fn errors_name_the_parameter() {
    let error = |bytes: &[u8]| TransportParameters::read(Side::Client, bytes).unwrap_err().to_string();
    assert_eq!(error(&number(0x0a, 21)), "transport parameter ack_delay_exponent is above 20");
    assert_eq!(
        error(&parameter(0x02, &[0; 16])),
        "transport parameter stateless_reset_token may only be sent by a server"
    );
    assert_eq!(error(&[0x3f, 1]), "transport parameter 0x3f is too short");
    assert_eq!(error(&[0x40]), "the transport parameters end in the middle of one");
}
