//! Messages in words, for `-I`, `-i` and `-v`.

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode, Version};

/// The head of a response.
pub(super) fn head(version: Version, status: StatusCode, headers: &HeaderMap) -> String {
    format!("{version:?} {status}\n{}", lines(headers))
}

/// The fields of a message.
fn lines(headers: &HeaderMap) -> String {
    let text = |value: &HeaderValue| match value.is_sensitive() {
        true => "(a secret)".to_owned(),
        false => printable(Some(value)),
    };
    let line = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}\n", text(value));
    headers.iter().map(line).collect()
}

/// A message with its fields, each line with a mark of its direction.
pub(super) fn told(first: &str, headers: &HeaderMap, mark: char) -> String {
    let fields: String = lines(headers).lines().map(|line| format!("\n{mark} {line}")).collect();
    format!("{first}{fields}")
}

/// Text of a peer, which steers no terminal.
pub(super) fn printable(value: Option<&HeaderValue>) -> String {
    let text = String::from_utf8_lossy(value.map_or(b"", HeaderValue::as_bytes));
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
