//! Alternative services (RFC 7838): where else a server says that it is found by HTTP/3.

use std::sync::Arc;
use std::time::Duration;

use fulmar::Instant;
use http::HeaderValue;

/// How long a value of the field may be, in bytes. A longer one is ignored.
pub const ALT_SVC_BYTES_MAX: usize = 4096;

/// How many alternatives are taken of a value. The others are ignored: they are in order of preference.
pub const ALTERNATIVES_MAX: usize = 8;

/// How long an alternative is good if its server does not say (RFC 7838 §3.1).
const MAX_AGE_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an alternative is kept at most, whatever its server says. A server that is still there says it again.
const MAX_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The longest name that DNS can hold (RFC 1035 §3.1), with the brackets of an address.
const HOST_MAX: usize = 255;

/// What a value of the field `Alt-Svc` says of HTTP/3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AltSvc {
    /// The server takes back what it has said before.
    Clear,
    /// Where it is found, in order of preference; at most [`ALTERNATIVES_MAX`]. Alternatives for other protocols than `h3` are left
    /// out.
    Services(Vec<Alternative>),
}

/// A place where a server is found by HTTP/3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// The host, by name or address, without brackets; empty if it is that of the server itself.
    pub host: String,
    /// The UDP port.
    pub port: u16,
    /// How long it is good, at most 30 days.
    pub max_age: Duration,
    /// Whether it is good as well after this end has moved to another network.
    pub persist: bool,
}

impl AltSvc {
    /// Reads a value of the field. What is malformed in it ends the reading; what came before is good.
    ///
    /// Returns `None` if it says nothing: it is too long, or malformed from the beginning.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        if value.len() > ALT_SVC_BYTES_MAX {
            return None;
        }
        let mut reader = Reader(value);
        reader.skip_spaces();
        if reader.0.trim_ascii() == b"clear" {
            return Some(Self::Clear);
        }
        let mut services = Vec::new();
        let mut count = 0;
        while services.len() < ALTERNATIVES_MAX {
            // Some servers end a list with a comma, which RFC 9110 §5.6.1 lets a reader take.
            while reader.take(b',') {
                reader.skip_spaces();
            }
            let Some(service) = reader.service() else { break };
            count += 1;
            services.extend(service);
            reader.skip_spaces();
            if !reader.take(b',') {
                break;
            }
            reader.skip_spaces();
        }
        (count > 0).then_some(Self::Services(services))
    }

    /// The same, where the response that says it is so old (RFC 7838 §3.1): what a cache gives was said before it was given.
    pub(super) fn aged(mut self, age: Duration) -> Self {
        if let Self::Services(services) = &mut self {
            services.iter_mut().for_each(|service| service.max_age = service.max_age.saturating_sub(age));
        }
        self
    }
}

/// What is left of a value.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// An alternative with its parameters; nothing within if it is for another protocol, or its authority is none.
    fn service(&mut self) -> Option<Option<Alternative>> {
        let protocol = self.token()?;
        let is_http3 = protocol == b"h3";
        if !self.take(b'=') {
            return None;
        }
        let authority = self.quoted()?;
        let (mut max_age, mut persist) = (MAX_AGE_DEFAULT, false);
        loop {
            self.skip_spaces();
            if !self.take(b';') {
                break;
            }
            self.skip_spaces();
            let name = self.token()?;
            if !self.take(b'=') {
                return None;
            }
            let value = if self.0.first() == Some(&b'"') { self.quoted()? } else { self.token()?.to_vec() };
            match name.to_ascii_lowercase().as_slice() {
                b"ma" => max_age = seconds(&value)?,
                b"persist" => persist = value == b"1",
                _ => {}
            }
        }
        let place = authority_of(&authority).filter(|_| is_http3);
        Some(place.map(|(host, port)| Alternative { host, port, max_age, persist }))
    }

    fn token(&mut self) -> Option<&'a [u8]> {
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        let end = self.0.iter().position(|byte| !is_token(byte)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// A quoted string (RFC 9110 §5.6.4), without the quotes.
    fn quoted(&mut self) -> Option<Vec<u8>> {
        if !self.take(b'"') {
            return None;
        }
        let mut text = Vec::new();
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return Some(text),
                b'\\' => {
                    let (&escaped, rest) = self.0.split_first()?;
                    self.0 = rest;
                    text.push(escaped);
                }
                byte => text.push(byte),
            }
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn skip_spaces(&mut self) {
        while self.take(b' ') || self.take(b'\t') {}
    }
}

/// A number of seconds; one that is too large is what is kept at most.
pub(super) fn seconds(digits: &[u8]) -> Option<Duration> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let seconds = std::str::from_utf8(digits).ok()?.parse().unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds).min(MAX_AGE_MAX))
}

/// Splits `[host]:port`.
fn authority_of(authority: &[u8]) -> Option<(String, u16)> {
    let (host, port) = std::str::from_utf8(authority).ok()?.rsplit_once(':')?;
    let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']')?.parse::<std::net::Ipv6Addr>().ok()?.to_string(),
        None if host.len() <= HOST_MAX && host.bytes().all(legal) => host.to_ascii_lowercase(),
        None => return None,
    };
    Some((host, port))
}

/// The alternatives of a server that are good now.
#[derive(Debug, Default)]
pub(super) struct Known(Vec<(Alternative, Instant)>);

impl Known {
    /// Takes what a server says at `now`: it replaces what it has said before (RFC 7838 §3.1). Returns whether there is a place that was
    /// not known.
    pub(super) fn learn(&mut self, said: AltSvc, now: Instant) -> bool {
        let services = match said {
            AltSvc::Clear => Vec::new(),
            AltSvc::Services(services) => services,
        };
        let is_new = |service: &Alternative| !self.0.iter().any(|(known, _)| known.is_at(service));
        let has_new = services.iter().any(is_new);
        self.0 = services.into_iter().map(|service| (service.clone(), now + service.max_age)).collect();
        has_new
    }

    /// The places, in order of preference.
    pub(super) fn at(&mut self, now: Instant) -> Vec<Alternative> {
        self.0.retain(|(_, until)| *until > now);
        self.0.iter().map(|(service, _)| service.clone()).collect()
    }

    /// This end has moved to another network: what its server has not called good there as well is forgotten (RFC 7838 §2.2).
    pub(super) fn on_new_network(&mut self) {
        self.0.retain(|(service, _)| service.persist);
    }

    /// Forgets a place.
    pub(super) fn forget(&mut self, place: &Alternative) {
        self.0.retain(|(service, _)| !service.is_at(place));
    }
}

/// An alternative service that connections lead to.
#[derive(Debug)]
pub(super) struct Used {
    pub(super) place: Alternative,
    /// As requests name it in the field `Alt-Used`.
    pub(super) name: Option<HeaderValue>,
}

impl Used {
    /// `host` is the name that it was found by.
    pub(super) fn new(host: &str, place: &Alternative) -> Arc<Self> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        // With its port where that is not the one of the scheme (RFC 7838 §5).
        let text = if place.port == 443 { host } else { format!("{host}:{}", place.port) };
        Arc::new(Self { place: place.clone(), name: HeaderValue::from_str(&text).ok() })
    }
}

impl Alternative {
    pub(super) fn is_at(&self, other: &Self) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }
}

#[cfg(test)]
mod tests;
