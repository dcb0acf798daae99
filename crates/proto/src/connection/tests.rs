//! What a peer that breaks the protocol is told (RFC 9000 §11, §19, §20), and what only shows from within.

#[path = "../../tests/pair/mod.rs"]
mod pair;

mod by_hand;
mod floods;
mod key_update;
mod packets;
mod parameters;
mod retry;
mod violations;
