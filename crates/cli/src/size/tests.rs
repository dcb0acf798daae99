use super::*;

#[test]
fn sizes_have_decimal_and_binary_units() {
    for (text, bytes) in [
        ("0", 0),
        ("1500", 1500),
        ("7B", 7),
        ("10kB", 10_000),
        ("10 KB", 10_000),
        ("100MB", 100_000_000),
        ("1GB", 1_000_000_000),
        ("1gb", 1_000_000_000),
        ("1.5GB", 1_500_000_000),
        ("0.25MiB", 262_144),
        ("2TB", 2_000_000_000_000),
        ("1KiB", 1024),
        ("1GiB", 1_073_741_824),
        ("200k", 204_800),
        ("1M", 1_048_576),
        ("1G", 1_073_741_824),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
}

#[test]
fn what_is_no_size_is_refused() {
    for text in [
        "",
        "GB",
        "-1",
        "1XB",
        "1.",
        ".5GB",
        "1..5GB",
        "1.5.5GB",
        "1e9",
        "99999999999999999999",
        "99999999TB",
    ] {
        let error = parse_size(text).expect_err(text);
        assert!(error.contains("is no size"), "{error}");
    }
}

#[test]
fn sizes_are_printed_with_three_digits() {
    for (bytes, text) in [
        (0, "0 B"),
        (999, "999 B"),
        (1_234, "1.23 kB"),
        (56_789, "56.8 kB"),
        (2_000_000, "2.00 MB"),
        (123_000_000_000, "123 GB"),
    ] {
        assert_eq!(Size(bytes).to_string(), text);
    }
}

#[test]
fn rates_choose_their_unit() {
    for (bytes, millis, text) in [
        (0, 0, "0 bit/s"),
        (0, 1_000, "0 bit/s"),
        (5, 1_000, "40 bit/s"),
        (1_234, 1_000, "9.87 kbit/s"),
        (124_990, 1_000, "1.00 Mbit/s"),
        (5_000_000, 1_000, "40.0 Mbit/s"),
        (62_500_000, 1_000, "500 Mbit/s"),
        (1_000_000_000, 4_000, "2.00 Gbit/s"),
        (1_550_000_000, 1_000, "12.4 Gbit/s"),
    ] {
        let rate = Rate { bytes, duration: Duration::from_millis(millis) };
        assert_eq!(rate.to_string(), text, "{bytes} in {millis} ms");
    }
}
