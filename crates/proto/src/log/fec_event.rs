//! What is logged of forward erasure correction.

/// What forward erasure correction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FecEvent {
    /// A repair symbol was written into a packet.
    RepairSent {
        /// The id of the first source symbol that it covers.
        first: u64,
        /// How many it covers.
        count: u16,
    },
    /// A repair symbol arrived.
    RepairReceived {
        /// The id of the first source symbol that it covers.
        first: u64,
        /// How many it covers.
        count: u16,
        /// What became of it.
        outcome: RepairOutcome,
    },
    /// A source symbol was recovered.
    Recovered {
        /// Its id.
        id: u64,
    },
    /// Symbols have contradicted one another: from now on nothing is recovered.
    DecoderOff,
}

/// What became of a repair symbol that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairOutcome {
    /// It may help later.
    Kept,
    /// It let source symbols be recovered.
    Used,
    /// It said nothing new.
    Redundant,
    /// It came too late, or its use would have been too much work, or the decoder is off.
    Dropped,
}
