//! The tokens that a server gives to its client for later connections (RFC 9000 §8.1.3).

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use fulmar_base::{Instant, Rng};
use fulmar_wire::{Frame, NewToken, Version};

use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Once;
use crate::streams::ReceiveCredit;
use crate::tokens::TokenIssuer;

/// How many tokens may be on their way: more than a connection begins with, see
/// `AddressValidation::tokens_per_connection`. When full, the oldest is given up.
const TOKENS_MAX: usize = 16;

/// How many hosts are remembered for which the client has tokens; when full, the oldest is forgotten. A client that
/// goes to and fro between a few networks gets no token for each time.
const HOSTS_MAX: usize = 8;

#[derive(Debug)]
struct Given {
    number: u64,
    token: Vec<u8>,
    fate: Once<()>,
}

/// The NEW_TOKEN frames of a connection that the client is not known to have.
#[derive(Debug, Default)]
pub(super) struct AddressTokens {
    /// Makes them; a client has none.
    issuer: Option<Arc<TokenIssuer>>,
    given: VecDeque<Given>,
    /// How many there were.
    count: u64,
    hosts: VecDeque<IpAddr>,
    /// The credit with which a later connection begins that shows the newest token.
    credit: ReceiveCredit,
}

impl AddressTokens {
    /// This end is a server whose connection begins with this credit. A client that comes back must not get less than
    /// its TLS sessions remember, or else they are of no use to it (RFC 9000 §7.4.1).
    pub(super) fn set_issuer(&mut self, issuer: Arc<TokenIssuer>, credit: ReceiveCredit) {
        self.issuer = Some(issuer);
        self.credit = credit;
    }

    /// The handshake is complete: the client at `host` gets the tokens with which a connection begins.
    pub(super) fn begin(&mut self, now: Instant, rng: &mut Rng, version: Version, host: IpAddr) {
        let Some(issuer) = self.issuer.clone() else { return };
        self.remember_host(host);
        for _ in 0..issuer.per_connection() {
            self.give(issuer.new_token(rng, now, version, host, &self.credit));
        }
    }

    /// The client is at `host` now, and gets a token for it if it has none.
    pub(super) fn on_moved(&mut self, now: Instant, rng: &mut Rng, version: Version, host: IpAddr) {
        let Some(issuer) = self.issuer.clone().filter(|issuer| issuer.per_connection() > 0) else { return };
        if self.remember_host(host) {
            self.give(issuer.new_token(rng, now, version, host, &self.credit));
        }
    }

    /// Whether there may be another token that tells of more.
    pub(super) fn can_grow(&self) -> bool {
        !self.hosts.is_empty() && self.issuer.as_ref().is_some_and(|issuer| issuer.per_connection() > 0)
    }

    /// Whether the client makes use of so much more credit than its tokens tell of that it is worth another one. Each such
    /// step doubles what they tell, so there are no more steps than there are doublings from the first window to the largest.
    pub(super) fn is_outgrown_by(&self, credit: &ReceiveCredit) -> bool {
        self.can_grow() && credit.has_doubled_since(&self.credit)
    }

    /// The client at `host` makes use of this credit, and gets a token that tells so.
    pub(super) fn outgrow(
        &mut self,
        now: Instant,
        rng: &mut Rng,
        version: Version,
        host: IpAddr,
        credit: ReceiveCredit,
    ) {
        let Some(issuer) = self.issuer.clone() else { return };
        self.credit = self.credit.max(credit);
        self.remember_host(host);
        self.give(issuer.new_token(rng, now, version, host, &self.credit));
    }

    /// Gives a token to the client.
    fn give(&mut self, token: Vec<u8>) {
        if self.given.len() == TOKENS_MAX {
            self.given.pop_front();
        }
        self.given.push_back(Given { number: self.count, token, fate: Once::Pending(()) });
        self.count += 1;
    }

    /// The client gets a token for `host`. Returns false if it has one.
    fn remember_host(&mut self, host: IpAddr) -> bool {
        let host = host.to_canonical();
        if self.hosts.contains(&host) {
            return false;
        }
        if self.hosts.len() == HOSTS_MAX {
            self.hosts.pop_front();
        }
        self.hosts.push_back(host);
        true
    }

    /// Gives back the memory that nothing needs while the connection rests.
    pub(super) fn rest(&mut self) {
        self.given.shrink_to_fit();
        self.hosts.shrink_to_fit();
    }

    /// Whether a token waits.
    pub(super) fn wants_to_send(&self) -> bool {
        self.given.iter().any(|given| given.fate.pending().is_some())
    }

    /// Writes the tokens that wait.
    pub(super) fn write(&mut self, out: &mut FrameWriter<'_>) {
        for Given { number, token, fate } in &mut self.given {
            if fate.pending().is_some() {
                let sent = SentFrame::NewToken { number: *number };
                if !out.write(&Frame::NewToken(NewToken { token }), sent) {
                    return;
                }
                fate.on_written();
            }
        }
    }

    pub(super) fn on_acked(&mut self, number: u64) {
        self.given.retain(|given| given.number != number);
    }

    pub(super) fn on_lost(&mut self, number: u64) {
        if let Some(given) = self.given.iter_mut().find(|given| given.number == number) {
            given.fate.on_lost();
        }
    }
}

#[cfg(test)]
mod tests;
