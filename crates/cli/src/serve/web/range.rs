//! Parts of a file (RFC 9110 §14).

use http::HeaderMap;
use http::header::RANGE;

/// What of a file is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it.
    Whole,
    /// From the first of these bytes up to the second, which is no part of it.
    Part(u64, u64),
    /// Nothing that it has.
    Unsatisfiable,
}

/// What the field Range asks for of a file of `len` bytes. A server may ignore the field: this one does if it is malformed, names
/// another unit, or asks for several parts that are not next to each other.
pub(super) fn wanted(headers: &HeaderMap, len: u64) -> Wanted {
    let Some(value) = headers.get(RANGE).and_then(|value| value.to_str().ok()) else { return Wanted::Whole };
    let Some((unit, ranges)) = value.split_once('=') else { return Wanted::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::Whole;
    }
    let mut all: Option<(u64, u64)> = None;
    let mut is_any = false;
    for range in ranges.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        let Some(part) = one(range, len) else { return Wanted::Whole };
        is_any = true;
        let Some((start, end)) = part else { continue };
        all = match all {
            None => Some((start, end)),
            Some((first, last)) if start <= last && first <= end => Some((first.min(start), last.max(end))),
            Some(_) => return Wanted::Whole,
        };
    }
    match all {
        Some((start, end)) => Wanted::Part(start, end),
        None if is_any => Wanted::Unsatisfiable,
        None => Wanted::Whole,
    }
}

/// One range: `None` if it is malformed, nothing in it if the file has no such bytes.
fn one(range: &str, len: u64) -> Option<Option<(u64, u64)>> {
    let (first, last) = range.split_once('-')?;
    if first.is_empty() {
        let suffix = number(last)?;
        return Some((suffix > 0 && len > 0).then(|| (len.saturating_sub(suffix), len)));
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    Some((first < len).then(|| (first, last.saturating_add(1).min(len))))
}

/// Digits and nothing else. What is too large for any file is as good as the largest number.
fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_understood_or_ignored() {
        for (value, expected) in [
            ("bytes=0-0", Wanted::Part(0, 1)),
            ("bytes=10-19", Wanted::Part(10, 20)),
            ("bytes=90-", Wanted::Part(90, 100)),
            ("bytes=90-1000", Wanted::Part(90, 100)),
            ("bytes=-1", Wanted::Part(99, 100)),
            ("bytes=-1000", Wanted::Part(0, 100)),
            ("Bytes=0-99999999999999999999999", Wanted::Part(0, 100)),
            ("bytes=0-9, 10-19", Wanted::Part(0, 20)),
            ("bytes=0-9,200-", Wanted::Part(0, 10)),
            ("bytes=100-", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
            ("bytes=0-1,50-51", Wanted::Whole),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=a-", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("0-1", Wanted::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, value.parse().expect("a value"));
            assert_eq!(wanted(&headers, 100), expected, "{value}");
        }
        assert_eq!(wanted(&HeaderMap::new(), 100), Wanted::Whole);
    }

    #[test]
    fn an_empty_file_has_no_parts() {
        let mut headers = HeaderMap::new();
        for value in ["bytes=0-", "bytes=-5"] {
            headers.insert(RANGE, value.parse().expect("a value"));
            assert_eq!(wanted(&headers, 0), Wanted::Unsatisfiable, "{value}");
        }
    }
}
