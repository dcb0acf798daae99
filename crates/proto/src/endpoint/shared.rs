//! What endpoints have in common that serve the same sockets or keys side by side, each with a worker of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fulmar_base::Instant;

use super::reset_limit::ResetLimit;
use super::reset_tokens::SharedResetTokens;
use crate::config::EndpointConfig;
use crate::crypto::trailing_token;
use crate::memory::EndpointMemory;
use crate::tokens::TokenVerifier;

/// The limits and memories that several endpoints keep together, so that a server has no more of them with more workers:
/// which address tokens were used, how many stateless resets are sent, how many attempts to connect are half open, and what
/// connections hold for sending and of what they received. They also know of each other whose connection a stateless reset ends.
///
/// All of it is touched rarely, and never for a packet of a connection; each part has a lock or a counter of its own. With one
/// endpoint, what happens depends on its calls alone. With several it depends on which of them comes first.
#[derive(Debug)]
pub struct EndpointShared {
    pub(super) memory: EndpointMemory,
    pub(super) token_verifier: TokenVerifier,
    reset_limit: Mutex<ResetLimit>,
    pub(super) reset_tokens: Arc<SharedResetTokens>,
    half_open: Arc<AtomicUsize>,
}

impl EndpointShared {
    /// What endpoints with this configuration share.
    pub fn new(config: &EndpointConfig) -> Arc<Self> {
        Arc::new(Self {
            memory: EndpointMemory::new(config.send_memory, config.receive_memory, config.fec_memory),
            token_verifier: TokenVerifier::default(),
            reset_limit: Mutex::new(ResetLimit::new(config.max_stateless_resets)),
            reset_tokens: Arc::default(),
            half_open: Arc::default(),
        })
    }

    /// How many attempts to connect are half open: they wait to be accepted or were accepted, and nothing proves
    /// yet that their address is not forged.
    pub fn half_open(&self) -> usize {
        self.half_open.load(Ordering::Relaxed)
    }

    /// Bytes of [`EndpointConfig::send_memory`] that connections have reserved.
    pub fn send_memory_reserved(&self) -> u64 {
        self.memory.send.reserved()
    }

    /// Bytes of [`EndpointConfig::receive_memory`] that connections have reserved.
    pub fn receive_memory_reserved(&self) -> u64 {
        self.memory.receive.reserved()
    }

    /// The number of the endpoint (see [`Endpoint::number`](super::Endpoint::number)) whose connection this datagram ends, if it
    /// is a stateless reset and the connection takes it for one. The connection ID of a stateless reset is made up, so with several
    /// endpoints this is to be asked for datagrams that none of them recognizes, before one of them answers.
    pub fn endpoint_of_reset(&self, datagram: &[u8]) -> Option<usize> {
        self.reset_tokens.endpoint_of(&trailing_token(datagram)?)
    }

    /// Whether one more stateless reset may be sent now; it is counted then.
    pub(super) fn take_reset(&self, now: Instant) -> bool {
        // Nothing panics under this lock.
        self.reset_limit.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }

    /// Counts an attempt as half open for as long as the result lives.
    pub(super) fn open_half(&self) -> HalfOpen {
        self.half_open.fetch_add(1, Ordering::Relaxed);
        HalfOpen(self.half_open.clone())
    }
}

/// An attempt to connect that is counted as half open.
#[derive(Debug)]
pub(super) struct HalfOpen(Arc<AtomicUsize>);

impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
