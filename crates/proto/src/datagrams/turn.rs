//! How much datagrams have sent while others waited.

/// The bytes of datagrams that were written while others waited, since these had their turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    bytes: u32,
    /// How much the others had written by then: when that has changed, a new turn begins.
    others: u32,
}

impl Turn {
    /// Datagrams of so many bytes were written while others waited, who have written `others` so far.
    pub(crate) fn charge(&mut self, bytes: usize, others: u64) {
        let before = self.bytes(others);
        *self = Self {
            bytes: before.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX)),
            others: others as u32,
        };
    }

    /// What was written in this turn.
    pub(crate) fn bytes(&self, others: u64) -> u32 {
        if self.others == others as u32 { self.bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_lasts_until_others_have_written() {
        let mut turn = Turn::default();
        turn.charge(1_000, 5);
        turn.charge(10, 5);
        assert_eq!((turn.bytes(5), turn.bytes(6)), (1_010, 0));
        turn.charge(1, 6);
        assert_eq!(turn.bytes(6), 1);
    }
}
