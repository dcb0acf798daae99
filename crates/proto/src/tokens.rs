//! The tokens that prove a client's address: in a Retry, and for later connections (RFC 9000 §8.1).

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{ConnectionId, Reader, Version};

use crate::config::{AddressValidation, EndpointConfig};
use crate::crypto::{OpenedToken, SALT_LEN, TokenKeys};
use crate::streams::ReceiveCredit;

/// The first byte of a token, which tells how it was given away (RFC 9000 §8.1.1).
const KIND_RETRY: u8 = 0x52;
const KIND_NEW_TOKEN: u8 = 0x4e;

/// How what follows the time of issue in a NEW_TOKEN token is written. Older tokens end with the time, and of a format that
/// this server does not know it only takes the proof of the address: servers of several versions may share their keys.
const FORMAT_WINDOW_HINT: u8 = 1;

/// How far the clocks of servers that share keys may be apart.
const CLOCK_SKEW: Duration = Duration::from_secs(10);

/// What the token in an Initial packet proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenVerdict {
    /// Nothing: there is none, or none that counts (RFC 9000 §8.1.3).
    Nothing,
    /// The client followed a Retry. `original_dcid` is where it sent its first packet.
    Retried { original_dcid: ConnectionId },
    /// The address is that of an earlier connection, which made use of receive windows of this size.
    Known { window_hint: ReceiveCredit },
    /// It is a Retry's, but was not given to this client or is too old. The client follows no other Retry
    /// (RFC 9000 §8.1.2).
    InvalidRetry,
}

/// Makes tokens. It is shared with the connections, which give them away.
#[derive(Debug)]
pub(crate) struct TokenIssuer {
    keys: TokenKeys,
    retry_lifetime: Duration,
    token_lifetime: Duration,
    per_connection: usize,
    /// How many used tokens are remembered.
    used_max: usize,
    /// The time of [`Instant::ZERO`], since the beginning of 1970.
    epoch: Duration,
}

impl TokenIssuer {
    pub(crate) fn new(endpoint: &EndpointConfig, config: &AddressValidation) -> Self {
        let keys = config.keys.clone().unwrap_or_else(|| TokenKeys::new(*endpoint.reset_key.token_secret()));
        Self {
            keys,
            retry_lifetime: config.retry_lifetime,
            token_lifetime: config.token_lifetime,
            per_connection: config.tokens_per_connection,
            used_max: config.used_tokens_max,
            epoch: endpoint.epoch,
        }
    }

    /// How many tokens a connection gives away.
    pub(crate) fn per_connection(&self) -> usize {
        self.per_connection
    }

    /// A token for a later connection from `remote`'s host, with the same version (RFC 9369 §5), which is to begin with
    /// receive windows of this size. All of them are of one length.
    pub(crate) fn new_token(
        &self,
        rng: &mut Rng,
        now: Instant,
        version: Version,
        remote: IpAddr,
        window_hint: &ReceiveCredit,
    ) -> Vec<u8> {
        let mut contents = self.millis(now).to_be_bytes().to_vec();
        contents.push(FORMAT_WINDOW_HINT);
        contents.extend(window_hint.stream.to_be_bytes());
        contents.extend(window_hint.connection.to_be_bytes());
        self.seal(rng, KIND_NEW_TOKEN, &context(KIND_NEW_TOKEN, version, remote), &contents)
    }

    /// The token of a Retry to `remote` that sends it to `dst`, in answer to a packet to `original_dcid`.
    pub(crate) fn retry_token(
        &self,
        rng: &mut Rng,
        now: Instant,
        version: Version,
        remote: SocketAddr,
        (original_dcid, dst): (&ConnectionId, &ConnectionId),
    ) -> Vec<u8> {
        let contents = [&self.millis(now).to_be_bytes(), original_dcid.as_bytes()].concat();
        self.seal(rng, KIND_RETRY, &retry_context(version, remote, dst), &contents)
    }

    fn seal(&self, rng: &mut Rng, kind: u8, context: &[u8], contents: &[u8]) -> Vec<u8> {
        let mut token = vec![kind];
        token.extend(self.keys.seal(rng.bytes(), context, contents));
        token
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from((self.epoch + now.saturating_since(Instant::ZERO)).as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a token of `issued` is neither too old nor from the future.
    fn is_current(&self, now: Instant, issued: u64, lifetime: Duration) -> bool {
        let (now, issued) = (Duration::from_millis(self.millis(now)), Duration::from_millis(issued));
        issued <= now + CLOCK_SKEW && now <= issued.saturating_add(lifetime)
    }

    fn check_retry(
        &self,
        now: Instant,
        version: Version,
        remote: SocketAddr,
        dst: &ConnectionId,
        sealed: &[u8],
    ) -> TokenVerdict {
        let contents = match self.keys.open(&retry_context(version, remote, dst), sealed) {
            OpenedToken::Authentic { contents, .. } => contents,
            OpenedToken::Forged => return TokenVerdict::InvalidRetry,
            OpenedToken::Foreign => return TokenVerdict::Nothing,
        };
        let mut reader = Reader::new(&contents);
        let (Ok(issued), Some(original_dcid)) =
            (reader.array().map(u64::from_be_bytes), ConnectionId::new(reader.rest()))
        else {
            return TokenVerdict::InvalidRetry;
        };
        match self.is_current(now, issued, self.retry_lifetime) {
            true => TokenVerdict::Retried { original_dcid },
            false => TokenVerdict::InvalidRetry,
        }
    }
}

/// What both kinds of tokens are bound to: a host, and the version they are for.
fn context(kind: u8, version: Version, host: IpAddr) -> Vec<u8> {
    let mut context = vec![kind];
    context.extend(version.0.to_be_bytes());
    match host.to_canonical() {
        IpAddr::V4(host) => context.extend(host.octets()),
        IpAddr::V6(host) => context.extend(host.octets()),
    }
    context
}

/// A Retry's token is also bound to the port, and to the connection ID that came with it.
fn retry_context(version: Version, remote: SocketAddr, dst: &ConnectionId) -> Vec<u8> {
    let mut context = context(KIND_RETRY, version, remote.ip());
    context.extend(remote.port().to_be_bytes());
    context.extend(dst.as_bytes());
    context
}

/// Checks tokens, whichever endpoint they are shown to: each counts once among all that share this.
#[derive(Debug, Default)]
pub(crate) struct TokenVerifier {
    used: Mutex<UsedTokens>,
}

impl TokenVerifier {
    /// What `token`, in an authentic packet from `remote` to `dst`, proves. A token for later connections is used
    /// up by this.
    pub(crate) fn check(
        &self,
        issuer: &TokenIssuer,
        now: Instant,
        version: Version,
        (remote, dst): (SocketAddr, &ConnectionId),
        token: &[u8],
    ) -> TokenVerdict {
        match token.split_first() {
            Some((&KIND_RETRY, sealed)) => issuer.check_retry(now, version, remote, dst, sealed),
            Some((&KIND_NEW_TOKEN, sealed)) => self.check_new(issuer, now, version, remote.ip(), sealed),
            _ => TokenVerdict::Nothing,
        }
    }

    fn check_new(
        &self,
        issuer: &TokenIssuer,
        now: Instant,
        version: Version,
        remote: IpAddr,
        sealed: &[u8],
    ) -> TokenVerdict {
        let context = context(KIND_NEW_TOKEN, version, remote);
        let OpenedToken::Authentic { salt, contents } = issuer.keys.open(&context, sealed) else {
            return TokenVerdict::Nothing;
        };
        let mut reader = Reader::new(&contents);
        let Ok(issued) = reader.array().map(u64::from_be_bytes) else {
            return TokenVerdict::Nothing;
        };
        if !issuer.is_current(now, issued, issuer.token_lifetime) {
            return TokenVerdict::Nothing;
        }
        let oldest = issuer.millis(now).saturating_sub(issuer.token_lifetime.as_millis() as u64);
        // Nothing panics under this lock.
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match used.insert(issued, salt, oldest, issuer.used_max) {
            true => TokenVerdict::Known { window_hint: read_window_hint(&mut reader).unwrap_or_default() },
            false => TokenVerdict::Nothing,
        }
    }
}

/// The size of receive windows with which the client's next connection is to begin, if the token has one.
fn read_window_hint(reader: &mut Reader<'_>) -> Option<ReceiveCredit> {
    if reader.u8().ok()? != FORMAT_WINDOW_HINT {
        return None;
    }
    let mut read = || reader.array().map(u64::from_be_bytes).ok();
    Some(ReceiveCredit { stream: read()?, connection: read()? })
}

/// The tokens that were used, each of which counts once (RFC 9000 §8.1.4).
///
/// Memory is bounded without a gap: when there is no room, the token that was issued first is forgotten, and
/// from then on every token that was issued as early counts as used.
#[derive(Debug, Default)]
struct UsedTokens {
    /// When they were issued, in milliseconds since 1970, and their salts, which are unique.
    tokens: BTreeSet<(u64, [u8; SALT_LEN])>,
    /// Tokens that were issued at this time or before it count as used.
    horizon: Option<u64>,
}

impl UsedTokens {
    /// Records the use of a token. Returns false if it was used before, or may have been. Tokens that were issued
    /// before `oldest` have expired. At most `max` are remembered.
    fn insert(&mut self, issued: u64, salt: [u8; SALT_LEN], oldest: u64, max: usize) -> bool {
        while self.tokens.first().is_some_and(|(issued, _)| *issued < oldest) {
            self.tokens.pop_first();
        }
        if self.horizon.is_some_and(|horizon| issued <= horizon) || !self.tokens.insert((issued, salt)) {
            return false;
        }
        while self.tokens.len() > max
            && let Some((issued, _)) = self.tokens.pop_first()
        {
            self.horizon = self.horizon.max(Some(issued));
        }
        true
    }
}

#[cfg(test)]
mod tests;
