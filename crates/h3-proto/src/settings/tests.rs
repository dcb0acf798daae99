use super::{SETTINGS_MAX, Settings};
use crate::error::ErrorCode;
use crate::varint;

fn payload(pairs: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (id, value) in pairs {
        varint::write(*id, &mut out);
        varint::write(*value, &mut out);
    }
    out
}

fn refusal(pairs: &[(u64, u64)]) -> ErrorCode {
    Settings::decode(&payload(pairs)).unwrap_err().code()
}

#[test]
fn settings_are_read_as_they_were_written() {
    let settings = Settings {
        qpack_max_table_capacity: 4096,
        qpack_blocked_streams: 100,
        max_field_section_size: Some(65536),
        enable_connect_protocol: true,
        h3_datagram: true,
        others: vec![(0x2c7c_f000, 1)],
    };
    assert_eq!(Settings::decode(&settings.encode()).unwrap(), settings);
    assert_eq!(Settings::decode(&[]).unwrap(), Settings::default());
}

#[test]
fn what_breaks_the_rules_is_refused() {
    assert_eq!(refusal(&[(1, 0), (1, 0)]), ErrorCode::SettingsError);
    assert_eq!(refusal(&[(0x4242, 0), (0x4242, 1)]), ErrorCode::SettingsError);
    for id in [0, 2, 3, 4, 5] {
        assert_eq!(refusal(&[(id, 1)]), ErrorCode::SettingsError);
    }
    assert_eq!(refusal(&[(0x08, 2)]), ErrorCode::SettingsError);
    assert_eq!(refusal(&[(0x33, 2)]), ErrorCode::SettingsError);
    assert_eq!(Settings::decode(&[1]).unwrap_err().code(), ErrorCode::FrameError);
    let many: Vec<_> = (0..=SETTINGS_MAX as u64).map(|n| (0x1000 + n, 0)).collect();
    assert_eq!(refusal(&many), ErrorCode::ExcessiveLoad);
}

#[test]
fn reserved_settings_are_not_kept() {
    assert_eq!(Settings::decode(&payload(&[(0x21, 7), (0x40, 9)])).unwrap(), Settings::default());
}

#[test]
fn a_server_must_not_take_back_what_a_client_remembers() {
    let remembered =
        Settings { max_field_section_size: Some(1000), h3_datagram: true, ..Settings::default() };
    let same = remembered.clone();
    assert!(same.check_not_less_than(&remembered).is_ok());
    let more = Settings { max_field_section_size: None, ..remembered.clone() };
    assert!(more.check_not_less_than(&remembered).is_ok());
    let less = Settings { max_field_section_size: Some(999), ..remembered.clone() };
    assert!(less.check_not_less_than(&remembered).is_err());
    let less = Settings { h3_datagram: false, ..remembered.clone() };
    assert!(less.check_not_less_than(&remembered).is_err());
}
