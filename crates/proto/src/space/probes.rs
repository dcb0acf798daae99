//! Probe packets that have to be sent (RFC 9002 §6.2.4).

use crate::packed::packed;

/// How many packets of a space shall elicit an acknowledgement, whatever the congestion window says.
#[derive(Debug, Default)]
pub(crate) struct Probes(u8);

packed!(Probes);

impl Probes {
    /// A probe timeout has passed: `packets` have to be sent, whatever was wanted before.
    pub(crate) fn demand(&mut self, packets: u8) {
        self.0 = packets;
    }

    /// One is enough, to keep a silent connection alive or to ask for an acknowledgement.
    pub(crate) fn demand_one(&mut self) {
        self.0 = self.0.max(1);
    }

    pub(crate) fn is_due(&self) -> bool {
        self.0 > 0
    }

    /// Whether one more probe is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.0 == 1
    }

    /// A packet that elicits an acknowledgement was sent.
    pub(crate) fn on_sent(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }

    /// Nothing has to be probed any more.
    pub(crate) fn cancel(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_probes_is_known() {
        let mut probes = Probes::default();
        assert!(!probes.is_due() && !probes.is_last());
        probes.demand(2);
        assert!(probes.is_due() && !probes.is_last());
        probes.on_sent();
        assert!(probes.is_due() && probes.is_last());
        probes.on_sent();
        assert!(!probes.is_due() && !probes.is_last());
    }
}
