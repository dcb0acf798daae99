//! Connections from the inside.
//!
//! | file | what it tests |
//! |---|---|
//! | `ack_frequency` | what is agreed about acknowledgements |
//! | `starvation` | a handshake that has to wait for room in the congestion window |
//! | `violations` | what a peer that breaks the protocol is told |

#[path = "../../tests/pair/mod.rs"]
mod pair;

mod ack_frequency;
mod starvation;
mod violations;
