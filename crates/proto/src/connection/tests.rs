//! Connections from the inside.
//!
//! | file | what it tests |
//! |---|---|
//! | `violations`, `parameters`, `packets`, `by_hand` | what a peer that breaks the protocol is told |
//! | `conformance` | the same, as h3spec asks of servers, where the others do not have it |
//! | `floods` | what a peer that sends too much can reach |
//! | `retry`, `key_update` | what only shows from within |
//! | `ack_frequency` | what is agreed about acknowledgements |
//! | `quic_bit` | peers that give it any value from the first packet on |
//! | `log` | what the log tells |
//! | `starvation` | a handshake that has to wait for room in the congestion window |

#[path = "../../tests/pair/mod.rs"]
mod pair;

mod ack_frequency;
mod by_hand;
mod conformance;
mod floods;
mod key_update;
mod log;
mod packets;
mod parameters;
mod quic_bit;
mod retry;
mod starvation;
mod violations;
