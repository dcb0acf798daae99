//! Which datagrams are answered that still come for a connection which this end has closed (RFC 9000 §10.2.1).

/// The answers get rarer: each takes twice as many datagrams as the one before, so that two ends never keep each other busy.
#[derive(Debug)]
pub(crate) struct CloseAnswers {
    /// Datagrams that came since the last answer, and how many must come until the next one.
    received: u32,
    threshold: u32,
}

impl CloseAnswers {
    /// The first datagram is answered.
    pub(crate) fn new() -> Self {
        Self { received: 0, threshold: 1 }
    }

    /// Whether the next datagram is to be answered.
    pub(crate) fn is_due(&self) -> bool {
        self.received + 1 >= self.threshold
    }

    /// A datagram came that is not answered.
    pub(crate) fn on_ignored(&mut self) {
        self.received += 1;
    }

    /// A datagram is answered.
    pub(crate) fn on_answered(&mut self) {
        (self.received, self.threshold) = (0, self.threshold.saturating_mul(2));
    }

    /// Whether anything came: also what was answered may not have heard of it.
    pub(crate) fn are_doubtful(&self) -> bool {
        self.received > 0 || self.threshold > 1
    }
}
