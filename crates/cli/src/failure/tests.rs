use super::*;

#[test]
fn a_stateless_reset_is_named() {
    let failure = Failure::connection("localhost:4433")(ConnectionError::Reset);
    assert!(failure.to_string().contains("stateless reset"), "{failure}");
    assert_eq!(failure.exit_code(), EXIT_FAILURE);
}

#[test]
fn exit_codes_tell_usage_from_failure() {
    assert_eq!(Failure::Usage("wrong".to_owned()).exit_code(), 2);
    assert_eq!(Failure::Interrupted.exit_code(), 130);
    assert_eq!(Failure::NotVerified("checksums differ".to_owned()).exit_code(), 1);
}

#[test]
fn a_reason_of_the_peer_cannot_steer_the_terminal() {
    assert_eq!(in_words(b""), "");
    assert_eq!(in_words(b"bye"), " (bye)");
    assert_eq!(in_words(b"\x1b[2J\xff\n"), " (\\u{1b}[2J\u{fffd}\\n)");
}
