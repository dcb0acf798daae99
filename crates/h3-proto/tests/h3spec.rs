//! The cases of h3spec that concern HTTP/3 and QPACK: a client breaks a rule, and the server says which.

mod pair;

use fulmar_h3_proto::{Config, ErrorCode, Scope};
use pair::raw::{GET, control, frame, get_with, headers, server_says, varint};

/// What the server says to bytes on the stream of a request.
fn on_request(bytes: Vec<u8>) -> Option<(Scope, ErrorCode)> {
    server_says(Config::default(), &[(2, control(&[]), false), (0, bytes, true)])
}

/// What it says to bytes on a unidirectional stream, beside a control stream.
fn on_uni(bytes: Vec<u8>) -> Option<(Scope, ErrorCode)> {
    server_says(Config::default(), &[(2, control(&[]), false), (6, bytes, false)])
}

fn on_control(bytes: Vec<u8>) -> Option<(Scope, ErrorCode)> {
    server_says(Config::default(), &[(2, bytes, false)])
}

fn connection(code: ErrorCode) -> Option<(Scope, ErrorCode)> {
    Some((Scope::Connection, code))
}

fn message_error() -> Option<(Scope, ErrorCode)> {
    Some((Scope::Stream(0), ErrorCode::MessageError))
}

#[test]
fn data_before_headers_is_unexpected() {
    assert_eq!(on_request(frame(0, b"data")), connection(ErrorCode::FrameUnexpected));
}

#[test]
fn a_pseudo_header_field_that_comes_twice_is_malformed() {
    assert_eq!(on_request(headers(&[&GET[..], &[(":path", "/")]].concat())), message_error());
}

#[test]
fn a_request_without_a_mandatory_pseudo_header_field_is_malformed() {
    for missing in [0, 1, 3] {
        let mut fields = GET.to_vec();
        fields.remove(missing);
        assert_eq!(on_request(headers(&fields)), message_error(), "{fields:?}");
    }
}

#[test]
fn a_prohibited_pseudo_header_field_is_malformed() {
    assert_eq!(on_request(headers(&[&GET[..], &[(":status", "200")]].concat())), message_error());
    assert_eq!(on_request(headers(&[&GET[..], &[(":unknown", "x")]].concat())), message_error());
}

#[test]
fn a_pseudo_header_field_behind_others_is_malformed() {
    let mut fields = GET.to_vec();
    fields.insert(3, ("x-field", "value"));
    assert_eq!(on_request(headers(&fields)), message_error());
}

#[test]
fn a_control_stream_without_settings_first_lacks_them() {
    assert_eq!(on_control([vec![0], frame(7, &[0])].concat()), connection(ErrorCode::MissingSettings));
    // Even a frame that means nothing.
    assert_eq!(on_control([vec![0], frame(0x21, &[])].concat()), connection(ErrorCode::MissingSettings));
}

#[test]
fn data_on_the_control_stream_is_unexpected() {
    assert_eq!(on_control(control(&frame(0, b"data"))), connection(ErrorCode::FrameUnexpected));
}

#[test]
fn headers_on_the_control_stream_are_unexpected() {
    assert_eq!(on_control(control(&headers(&GET))), connection(ErrorCode::FrameUnexpected));
}

#[test]
fn settings_that_come_twice_are_unexpected() {
    assert_eq!(on_control(control(&frame(4, &[]))), connection(ErrorCode::FrameUnexpected));
}

#[test]
fn cancel_push_on_a_request_is_unexpected() {
    assert_eq!(on_request(frame(3, &[0])), connection(ErrorCode::FrameUnexpected));
    assert_eq!(on_request([headers(&GET), frame(3, &[0])].concat()), connection(ErrorCode::FrameUnexpected));
}

#[test]
fn a_setting_that_comes_twice_is_an_error() {
    let settings = [0x33, 0, 0x33, 0];
    assert_eq!(on_control([vec![0], frame(4, &settings)].concat()), connection(ErrorCode::SettingsError));
}

#[test]
fn a_setting_of_http2_is_an_error() {
    assert_eq!(on_control([vec![0], frame(4, &[2, 0])].concat()), connection(ErrorCode::SettingsError));
}

#[test]
fn an_index_that_the_static_table_does_not_have_fails() {
    // 99 entries are there; the field is the one after the last.
    let section = [0, 0, 0xff, 99 - 63];
    assert_eq!(on_request(frame(1, &section)), connection(ErrorCode::QpackDecompressionFailed));
}

#[test]
fn a_table_that_is_larger_than_allowed_is_an_error_of_the_encoder_stream() {
    let set_capacity = [0x02, 0x3f, 0xff, 0xff, 0x7f];
    assert_eq!(on_uni(set_capacity.to_vec()), connection(ErrorCode::QpackEncoderStreamError));
}

#[test]
fn an_insert_count_increment_of_zero_is_an_error_of_the_decoder_stream() {
    let settings = frame(4, &[&[1], &varint(4096)[..], &[7, 16]].concat());
    let streams = [(2, [vec![0], settings].concat(), false), (6, vec![0x03, 0x00], false)];
    assert_eq!(server_says(Config::default(), &streams), connection(ErrorCode::QpackDecoderStreamError));
    assert_eq!(on_uni(vec![0x03, 0x00]), connection(ErrorCode::QpackDecoderStreamError));
}

#[test]
fn a_critical_stream_that_ends_closes_the_connection() {
    for stream in [control(&[]), vec![0x02], vec![0x03]] {
        let said = server_says(Config::default(), &[(2, stream, true)]);
        assert_eq!(said, connection(ErrorCode::ClosedCriticalStream));
    }
}

#[test]
fn what_breaks_no_rule_is_served() {
    assert_eq!(on_request(headers(&get_with(&[("x-field", "value")]))), None);
}
