//! How much may be sent to an address that has not proven itself (RFC 9000 §8.1).

use crate::packed::packed;

/// An unvalidated address gets at most this many times the bytes that came from it.
const AMPLIFICATION_FACTOR: u64 = 3;

/// The anti-amplification limit of an address.
#[derive(Debug)]
pub(crate) struct AntiAmplification {
    validated: bool,
    received: u64,
    sent: u64,
}

packed!(AntiAmplification { validated, received, sent });

impl AntiAmplification {
    /// A client has chosen its server's address itself, so it starts `validated`.
    pub(crate) fn new(validated: bool) -> Self {
        Self { validated, received: 0, sent: 0 }
    }

    /// Whether the address has proven itself.
    pub(crate) fn is_validated(&self) -> bool {
        self.validated
    }

    /// The address has proven itself.
    pub(crate) fn validate(&mut self) {
        self.validated = true;
    }

    pub(crate) fn on_received(&mut self, bytes: u64) {
        self.received = self.received.saturating_add(bytes);
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// Bytes that came from the address so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that were sent there so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// How many bytes may be sent now.
    pub(crate) fn available(&self) -> u64 {
        if self.validated {
            return u64::MAX;
        }
        self.received.saturating_mul(AMPLIFICATION_FACTOR).saturating_sub(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_address_gets_three_times_what_it_sent() {
        let mut amplification = AntiAmplification::new(false);
        assert_eq!(amplification.available(), 0);
        amplification.on_received(1_200);
        amplification.on_sent(3_000);
        assert_eq!(amplification.available(), 600);
        amplification.on_sent(700);
        assert_eq!(amplification.available(), 0);
        amplification.validate();
        assert_eq!(amplification.available(), u64::MAX);
    }
}
