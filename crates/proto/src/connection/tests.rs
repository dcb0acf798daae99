//! What a peer that breaks the protocol is told (RFC 9000 §11, §19, §20).

#[path = "../../tests/pair/mod.rs"]
mod pair;

mod violations;
