use super::*;

fn section(oldest: u64, required: u64) -> References {
    References { required, oldest }
}

#[test]
fn the_oldest_reference_is_that_of_all_sections() {
    let mut outstanding = Outstanding::default();
    outstanding.add(0, section(3, 5), 10);
    outstanding.add(4, section(1, 5), 10);
    outstanding.add(8, section(1, 9), 10);
    assert_eq!(outstanding.oldest(), Some(1));
    assert_eq!(outstanding.acknowledge(4), Some(section(1, 5)));
    assert_eq!(outstanding.oldest(), Some(1));
    outstanding.cancel(8);
    assert_eq!(outstanding.oldest(), Some(3));
    assert_eq!(outstanding.acknowledge(0), Some(section(3, 5)));
    assert_eq!((outstanding.oldest(), outstanding.acknowledge(0)), (None, None));
}

#[test]
fn a_stream_is_at_risk_until_what_it_needs_is_known() {
    let mut outstanding = Outstanding::default();
    outstanding.add(0, section(0, 4), 2);
    outstanding.add(0, section(0, 6), 2);
    outstanding.add(4, section(0, 2), 2);
    assert_eq!(outstanding.streams_at_risk(), 1);
    assert!(outstanding.is_at_risk(0, 2) && !outstanding.is_at_risk(4, 2));
    outstanding.on_known(4);
    assert_eq!(outstanding.streams_at_risk(), 1);
    outstanding.on_known(6);
    assert_eq!(outstanding.streams_at_risk(), 0);
}

#[test]
fn an_acknowledged_section_leaves_the_risk_of_those_behind_it() {
    let mut outstanding = Outstanding::default();
    outstanding.add(0, section(0, 9), 2);
    outstanding.add(0, section(0, 5), 2);
    assert_eq!(outstanding.acknowledge(0), Some(section(0, 9)));
    assert_eq!(outstanding.streams_at_risk(), 1);
    outstanding.on_known(9);
    assert_eq!(outstanding.streams_at_risk(), 0);
    outstanding.cancel(0);
    assert_eq!(outstanding.oldest(), None);
}

#[test]
fn sections_beyond_the_limit_are_told() {
    let mut outstanding = Outstanding::default();
    for n in 0..SECTIONS_MAX as u64 {
        assert!(!outstanding.is_full());
        outstanding.add(n % 7, section(n, n + 1), 0);
    }
    assert!(outstanding.is_full());
    outstanding.cancel(3);
    assert!(!outstanding.is_full());
}
