//! TLS sessions that the client keeps for the server, sealed (RFC 5077 §4 in the words of RFC 8446 §4.6.1).

use std::sync::Arc;

use rustls::crypto::SecureRandom;
use rustls::server::ProducesTickets;

use super::token::{OpenedToken, SALT_LEN, TokenKeys};

/// What tickets are sealed for, so that no other token passes for one.
const CONTEXT: &[u8] = b"TLS session ticket";
/// How long clients are told to keep a ticket. The keys decide how long it is good for.
const LIFETIME_S: u32 = 24 * 60 * 60;

/// Sealed tickets for a rustls configuration that a program makes by itself. `random` is that of its cryptography
/// provider. See [`ServerConfig::with_sealed_tickets`](crate::ServerConfig::with_sealed_tickets), which does all of it.
pub fn sealed_tickets(keys: TokenKeys, random: &'static dyn SecureRandom) -> Arc<dyn ProducesTickets> {
    Arc::new(SealedTickets { keys, random })
}

/// Makes tickets with a set of keys that several servers can share.
#[derive(Debug)]
struct SealedTickets {
    keys: TokenKeys,
    random: &'static dyn SecureRandom,
}

impl ProducesTickets for SealedTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut salt = [0; SALT_LEN];
        self.random.fill(&mut salt).ok()?;
        Some(self.keys.seal(salt, CONTEXT, plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        match self.keys.open(CONTEXT, cipher) {
            OpenedToken::Authentic { contents, .. } => Some(contents),
            OpenedToken::Forged | OpenedToken::Foreign => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_anywhere_in_a_ticket_is_refused() {
        let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
        let tickets = sealed_tickets(TokenKeys::new([1; 32]), random);
        let ticket = tickets.encrypt(b"the secrets of a session").unwrap();
        assert_eq!(tickets.decrypt(&ticket).unwrap(), b"the secrets of a session");
        for bit in 0..8 * ticket.len() {
            let mut damaged = ticket.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(tickets.decrypt(&damaged), None, "bit {bit}");
        }
        assert_eq!(tickets.lifetime(), 86_400, "a day");
        assert_ne!(tickets.encrypt(b"x"), tickets.encrypt(b"x"), "no two are alike");
    }
}
