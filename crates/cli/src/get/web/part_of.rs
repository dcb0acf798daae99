//! Parts of what a URL names: which one came, and of which version (RFC 9110 §15.3.7).

use http::header::{self, HeaderMap};

/// What a response says of the part that it brings: `bytes 100-199/200`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) first: u64,
    /// Behind its last byte.
    pub(super) end: u64,
    /// The length of all.
    pub(super) total: u64,
}

impl Part {
    /// `None` unless it is one part of something whose length is known: without that nobody could tell when all is there.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?;
        let (part, total) = range.trim().split_once('/')?;
        let (first, last) = part.split_once('-')?;
        let number = |digits: &str| digits.parse::<u64>().ok().filter(|_| !digits.starts_with('+'));
        let (first, last, total) = (number(first)?, number(last)?, number(total)?);
        let part = Self { first, end: last.checked_add(1)?, total };
        (first <= last && last < total && content_length(headers).is_none_or(|len| len == part.len()))
            .then_some(part)
    }

    pub(super) fn len(self) -> u64 {
        self.end - self.first
    }

    /// Whether nothing follows it.
    pub(super) fn is_last(self) -> bool {
        self.end == self.total
    }
}

/// What names this version of what was asked for, if a later request can rely on it (RFC 9110 §13.1.5).
pub(super) fn validator(headers: &HeaderMap) -> Option<String> {
    let strong = headers.get(header::ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    let named = strong.or_else(|| headers.get(header::LAST_MODIFIED))?;
    named.to_str().ok().map(str::to_owned)
}

/// Whether a part is of the version that a validator names. There are servers that do not look at If-Range.
pub(super) fn is_same_version(validator: &str, headers: &HeaderMap) -> bool {
    // A tag is in each response that would have had it (RFC 9110 §15.3.7); a date may be left out.
    let is_named = !is_tag(validator) || headers.contains_key(header::ETAG);
    is_named && may_be_same_version(validator, headers)
}

/// The same of a response that need not name its version, as one without content: whether it names no other one.
pub(super) fn may_be_same_version(validator: &str, headers: &HeaderMap) -> bool {
    let name = if is_tag(validator) { header::ETAG } else { header::LAST_MODIFIED };
    headers.get(name).is_none_or(|named| named == validator)
}

fn is_tag(validator: &str) -> bool {
    validator.starts_with('"')
}

pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (name.parse().expect("a name"), value.parse().expect("a value"))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn a_part_says_where_it_begins_and_ends() {
        for (range, expected) in [
            ("bytes 10-19/30", Some((10, 20, 30, false))),
            ("bytes 10-29/30", Some((10, 30, 30, true))),
            ("bytes 10-30/30", None),
            ("bytes 10-9/30", None),
            ("bytes 10-19/*", None),
            ("bytes */30", None),
            ("bytes 10-/30", None),
            ("bytes +10-19/30", None),
            ("bytes 0-18446744073709551615/18446744073709551615", None),
            ("items 10-19/30", None),
        ] {
            let part = Part::of(&headers(&[("content-range", range)]));
            let found = part.map(|part| (part.first, part.end, part.total, part.is_last()));
            assert_eq!(found, expected, "{range}");
        }
        let part = |len| Part::of(&headers(&[("content-range", "bytes 10-19/30"), ("content-length", len)]));
        assert!(part("10").is_some() && part("11").is_none());
        assert_eq!(Part::of(&HeaderMap::new()), None);
    }

    #[test]
    fn parts_of_other_versions_are_told_from_those_that_fit() {
        const DATE: &str = "Mon, 23 Nov 2026 04:41:15 GMT";
        let tagged = |tag| headers(&[("etag", tag), ("last-modified", DATE)]);
        assert_eq!(validator(&tagged("\"x\"")).as_deref(), Some("\"x\""));
        assert_eq!(validator(&tagged("W/\"x\"")).as_deref(), Some(DATE));
        assert!(is_same_version("\"x\"", &tagged("\"x\"")));
        for other in ["\"y\"", "W/\"x\""] {
            assert!(!is_same_version("\"x\"", &tagged(other)), "{other}");
        }
        assert!(!is_same_version("\"x\"", &HeaderMap::new()));
        assert!(is_same_version(DATE, &HeaderMap::new()) && is_same_version(DATE, &tagged("W/\"x\"")));
        assert!(!is_same_version("Mon, 23 Nov 2026 04:41:16 GMT", &tagged("W/\"x\"")));
        for (validator, other) in [("\"x\"", "\"y\""), (DATE, "Mon, 23 Nov 2026 04:41:16 GMT")] {
            assert!(may_be_same_version(validator, &HeaderMap::new()));
            assert!(may_be_same_version(validator, &tagged("\"x\"")));
            assert!(!may_be_same_version(other, &tagged("\"x\"")), "{other}");
        }
    }
}
