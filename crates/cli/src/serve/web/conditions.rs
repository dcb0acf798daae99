//! Requests that depend on what the client has already (RFC 9110 §13).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{
    HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};

/// By what a client knows the state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Validators {
    /// An entity tag, which is strong: of the length of the file and of the time of its last change, in nanoseconds.
    pub(super) tag: HeaderValue,
    /// In whole seconds, as fields have it.
    pub(super) modified: Option<SystemTime>,
}

/// What the conditions of a request lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Serve,
    /// The client has it: status 304.
    NotModified,
    /// The client wanted something that is no more: status 412.
    Failed,
}

impl Validators {
    /// Those of a file of `len` bytes, or of its form in an encoding of that name.
    pub(super) fn new(len: u64, modified: Option<SystemTime>, encoding: Option<&str>) -> Self {
        let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
        let nanos = since.map_or(0, |since| since.as_nanos());
        let encoding = encoding.map_or_else(String::new, |name| format!("-{name}"));
        // Until the year 2554 the number has 64 bits, and numbers of 128 take several times as long to write.
        let text = match u64::try_from(nanos) {
            Ok(nanos) => format!("\"{nanos:x}-{len:x}{encoding}\""),
            Err(_) => format!("\"{nanos:x}-{len:x}{encoding}\""),
        };
        // Digits and letters are always a value.
        let tag = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("\"\""));
        Self { tag, modified: since.map(|since| UNIX_EPOCH + Duration::from_secs(since.as_secs())) }
    }

    /// Looks at the conditions in the order of RFC 9110 §13.2.2. The request is GET or HEAD.
    pub(super) fn judge(&self, headers: &HeaderMap) -> Verdict {
        if headers.contains_key(IF_MATCH) {
            if !self.is_listed(headers, &IF_MATCH, true) {
                return Verdict::Failed;
            }
        } else if let (Some(date), Some(modified)) = (date(headers, &IF_UNMODIFIED_SINCE), self.modified)
            && modified > date
        {
            return Verdict::Failed;
        }
        if headers.contains_key(IF_NONE_MATCH) {
            if self.is_listed(headers, &IF_NONE_MATCH, false) {
                return Verdict::NotModified;
            }
        } else if let (Some(date), Some(modified)) = (date(headers, &IF_MODIFIED_SINCE), self.modified)
            && modified <= date
        {
            return Verdict::NotModified;
        }
        Verdict::Serve
    }

    /// Whether a part may be sent: always, unless the client has the rest of another state (If-Range).
    pub(super) fn allow_part(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(IF_RANGE) else { return true };
        // Dates are compared to the letter; one that is weak, being of this very second, would be the client's risk.
        value == self.tag || (self.modified.is_some() && date(headers, &IF_RANGE) == self.modified)
    }

    fn is_listed(&self, headers: &HeaderMap, name: &HeaderName, is_strong: bool) -> bool {
        headers.get_all(name).iter().any(|value| {
            value.as_bytes() == b"*" || value.to_str().is_ok_and(|list| self.is_in(list, is_strong))
        })
    }

    /// Our tags have no commas, so that a tag of others that has one is no match either way.
    fn is_in(&self, list: &str, is_strong: bool) -> bool {
        list.split(',').map(str::trim).any(|tag| match tag.strip_prefix("W/") {
            Some(weak) => !is_strong && self.tag == weak,
            None => self.tag == tag,
        })
    }
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    fn validators() -> Validators {
        let modified = httpdate::parse_http_date(DATE).expect("a date") + Duration::from_nanos(15);
        Validators::new(255, Some(modified), None)
    }

    #[test]
    fn conditions_are_looked_at_in_their_order() {
        let validators = validators();
        let tag = validators.tag.to_str().expect("text").to_owned();
        assert!(tag.ends_with("-ff\""), "{tag}");
        let (weak, list) = (format!("W/{tag}"), format!("\"x\", {tag}"));
        let cases: &[(&[(HeaderName, &str)], Verdict)] = &[
            (&[], Verdict::Serve),
            (&[(IF_NONE_MATCH, &tag)], Verdict::NotModified),
            (&[(IF_NONE_MATCH, &weak)], Verdict::NotModified),
            (&[(IF_NONE_MATCH, &list)], Verdict::NotModified),
            (&[(IF_NONE_MATCH, "*")], Verdict::NotModified),
            (&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, DATE)], Verdict::Serve),
            (&[(IF_MODIFIED_SINCE, DATE)], Verdict::NotModified),
            (&[(IF_MODIFIED_SINCE, BEFORE)], Verdict::Serve),
            (&[(IF_MODIFIED_SINCE, "yesterday")], Verdict::Serve),
            (&[(IF_MATCH, &tag)], Verdict::Serve),
            (&[(IF_MATCH, &weak)], Verdict::Failed),
            (&[(IF_MATCH, "\"x\"")], Verdict::Failed),
            (&[(IF_MATCH, "*")], Verdict::Serve),
            (&[(IF_UNMODIFIED_SINCE, DATE)], Verdict::Serve),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], Verdict::Failed),
            (&[(IF_MATCH, &tag), (IF_UNMODIFIED_SINCE, BEFORE)], Verdict::Serve),
        ];
        for (fields, expected) in cases {
            let fields = fields.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value")));
            let headers: HeaderMap = fields.collect();
            assert_eq!(validators.judge(&headers), *expected, "{headers:?}");
        }
    }

    #[test]
    fn a_part_is_sent_only_of_what_the_client_has() {
        let validators = validators();
        let tag = validators.tag.to_str().expect("text").to_owned();
        for (value, is_allowed) in
            [(&*tag, true), (&*format!("W/{tag}"), false), ("\"x\"", false), (DATE, true), (BEFORE, false)]
        {
            let headers: HeaderMap = [(IF_RANGE, value.parse().expect("a value"))].into_iter().collect();
            assert_eq!(validators.allow_part(&headers), is_allowed, "{value}");
        }
        assert!(validators.allow_part(&HeaderMap::new()));
    }

    #[test]
    fn each_form_of_a_file_has_a_tag_of_its_own() {
        let plain = Validators::new(1, None, None).tag;
        assert!(plain != Validators::new(1, None, Some("br")).tag);
        assert!(plain != Validators::new(2, None, None).tag);
        assert_eq!(plain, Validators::new(1, None, None).tag);
    }
}
