//! Files that are there in a compressed form, too (RFC 9110 §12.5.3).

use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, GetAll, HeaderValue};

/// A way to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Zstd,
    Gzip,
}

/// How many there are.
pub(super) const COUNT: usize = 3;

impl Encoding {
    /// The name in fields.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The names by which clients ask for it.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Brotli => &["br"],
            Self::Zstd => &["zstd"],
            Self::Gzip => &["gzip", "x-gzip"],
        }
    }

    /// What follows the name of the file.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

/// What the client takes, what it likes best first, and of what it likes alike what commonly is the smallest. What it says to like
/// less than the file as it is is left out. What it refuses altogether is not looked at: a file as it is may always be sent.
pub(super) fn accepted(headers: &HeaderMap) -> impl Iterator<Item = Encoding> {
    let lists = headers.get_all(ACCEPT_ENCODING);
    let has_any = lists.iter().next().is_some();
    has_any.then(|| in_order(&lists)).into_iter().flatten()
}

/// The same of what a client says.
fn in_order(lists: &GetAll<'_, HeaderValue>) -> impl Iterator<Item = Encoding> + use<> {
    let all: [_; COUNT] = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];
    let any = weight(lists, &["*"]).unwrap_or(0);
    let least = weight(lists, &["identity"]).unwrap_or(0).max(1);
    let mut liked = all.map(|encoding| (weight(lists, encoding.names()).unwrap_or(any), encoding));
    liked.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    liked.into_iter().filter(move |(weight, _)| *weight >= least).map(|(_, encoding)| encoding)
}

/// The weight that a client gives to what has one of these names, if it says one.
fn weight(lists: &GetAll<'_, HeaderValue>, names: &[&str]) -> Option<u16> {
    let lists = lists.iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).find_map(|item| {
        let (name, parameter) = item.split_once(';').unwrap_or((item, ""));
        let is_named = names.iter().any(|other| name.trim().eq_ignore_ascii_case(other));
        is_named.then(|| thousandths(parameter))
    })
}

/// The weight in a parameter such as `q=0.8`; 1 if there is none, 0 if it is malformed.
fn thousandths(parameter: &str) -> u16 {
    let parameter = parameter.trim();
    if parameter.is_empty() {
        return 1000;
    }
    let value = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
    match value.and_then(|value| value.trim().parse::<f32>().ok()) {
        Some(value) if (0.0..=1.0).contains(&value) => (value * 1000.0).round() as u16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_liked_best_comes_first() {
        for (value, expected) in [
            ("gzip, deflate, br, zstd", &["br", "zstd", "gzip"][..]),
            ("gzip;q=1.0, br;q=0.5", &["gzip", "br"]),
            ("br;q=0, *", &["zstd", "gzip"]),
            ("GZIP", &["gzip"]),
            ("x-gzip", &["gzip"]),
            ("gzip;q=0.001", &["gzip"]),
            ("gzip;q=2", &[]),
            ("gzip;q=0", &[]),
            ("identity", &[]),
            ("identity;q=1, gzip;q=0.1", &[]),
            ("identity;q=0.5, gzip;q=0.1, br;q=0.5, *;q=0.7", &["zstd", "br"]),
            ("identity;q=0, gzip;q=0.1", &["gzip"]),
            ("", &[]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().expect("a value"));
            assert_eq!(accepted(&headers).map(Encoding::name).collect::<Vec<_>>(), expected, "{value}");
        }
        assert_eq!(accepted(&HeaderMap::new()).count(), 0);
    }
}
