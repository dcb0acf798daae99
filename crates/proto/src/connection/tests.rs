//! Connections from the inside.
//!
//! | file | what it tests |
//! |---|---|
//! | `by_hand` | two connections without endpoints |
//! | `floods` | frames in such numbers that only their work or their answers could hurt |
//! | `key_update` | new keys in a running transfer |
//! | `packets` | packets that are authentic and yet not taken |
//! | `parameters` | transport parameters that a peer must not send |
//! | `retry` | a client that is asked to prove its address |
//! | `starvation` | a handshake that has to wait for room in the congestion window |
//! | `violations` | what a peer that breaks the protocol is told |

#[path = "../../tests/pair/mod.rs"]
mod pair;

mod by_hand;
mod floods;
mod key_update;
mod packets;
mod parameters;
mod retry;
mod starvation;
mod violations;
