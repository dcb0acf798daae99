//! The few parts of a URL that matter here: `[https://]HOST[:PORT]/PATH[?QUERY]`.

use std::fmt;

use crate::authority::Authority;
use crate::hq;

/// The port of `https` where none is given.
const DEFAULT_PORT: u16 = 443;

/// What to ask for, and whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) authority: Authority,
    /// The path, beginning with a slash, and the query if there is one; percent-encoded as far as a request line
    /// needs it.
    pub(crate) target: String,
}

impl Url {
    /// What the user has written. `https://` may be left out: nothing else can be got.
    pub(crate) fn of_user(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return Self::parse(text);
        }
        Self::parse(&format!("https://{text}")).map_err(|why| match why.split_once("`: ") {
            Some((_, why)) => format!("`{text}`: {why}"),
            None => why,
        })
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let in_url = |why: String| format!("`{text}`: {why}");
        let scheme = "https://";
        let rest = match text.get(..scheme.len()) {
            Some(start) if start.eq_ignore_ascii_case(scheme) => &text[scheme.len()..],
            _ => return Err(in_url("a URL begins with https://".to_owned())),
        };
        // A fragment is for the reader, not for the server (RFC 3986 §3.5).
        let rest = rest.split('#').next().unwrap_or(rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err(in_url("a user name in a URL is not supported (-u USER:PASSWORD is)".to_owned()));
        }
        let authority = Authority::parse(authority, Some(DEFAULT_PORT)).map_err(in_url)?;
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = encode(&without_dots(&format!("{slash}{target}")));
        if hq::request(&target).len() > hq::REQUEST_MAX {
            return Err(in_url(format!("it is longer than {} bytes", hq::REQUEST_MAX)));
        }
        Ok(Self { authority, target })
    }

    /// Adds a name to a path that ends with a slash. `-`, which stands for standard input, is none.
    pub(super) fn name_in_directory(&mut self, name: &[u8]) {
        let path_len = self.path().len();
        if !self.path().ends_with('/') || name == b"-" {
            return;
        }
        // All that may mean something in a URL means itself in a name (RFC 3986 §2.3).
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        let name: String = name
            .iter()
            .map(|&byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect();
        self.target.insert_str(path_len, &name);
    }

    /// The path without the query.
    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or(&self.target)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { authority: Authority { host, port }, target } = self;
        let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
        // RFC 6874: the zone of an address stands behind a percent sign, which a URI encodes.
        write!(f, "https://{open}{}{close}", host.replace('%', "%25"))?;
        if *port != DEFAULT_PORT {
            write!(f, ":{port}")?;
        }
        f.write_str(target)
    }
}

/// Takes `.` and `..` out of the path (RFC 3986 §5.2.4).
fn without_dots(target: &str) -> String {
    let end = target.find(['?', '#']).unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let mut segments: Vec<&str> = Vec::new();
    let mut is_folder = false;
    for segment in path.split('/').skip(1) {
        is_folder = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let slash = if is_folder && !segments.is_empty() { "/" } else { "" };
    format!("/{}{slash}{rest}", segments.join("/"))
}

/// Percent-encodes what would break the request line, is no ASCII, or stands in no URI (RFC 3986 appendix A) though people write it.
/// What is encoded already stays as it is, and so do brackets, which servers know as they are.
fn encode(target: &str) -> String {
    let is_of_uris = |byte: u8| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
    };
    let mut encoded = String::with_capacity(target.len());
    for byte in target.bytes() {
        if is_of_uris(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
