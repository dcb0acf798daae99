//! Connections from the inside.
//!
//! | file | what it tests |
//! |---|---|
//! | `violations`, `parameters`, `packets`, `by_hand` | what a peer that breaks the protocol is told |
//! | `path_violations` | the same where there are several paths |
//! | `conformance` | the same, as h3spec asks of servers, where the others do not have it |
//! | `floods`, `gaps`, `ids`, `chatter`, `path_floods` | what a peer that sends too much can reach |
//! | `mutations` | handshakes of which each byte is damaged or missing |
//! | `orders` | the datagrams of a handshake in every order, and every frame in every kind of packet |
//! | `erasure`, `erasure_michel` | what a peer can do with forward erasure correction, in both dialects |
//! | `lies` | false acknowledgements and counts |
//! | `tokens` | everything that a first packet can carry as a token |
//! | `before_confirmation` | what is not yet done, or not yet believed, while the handshake lasts |
//! | `small_credit` | what an address that has sent little is sent |
//! | `memory`, `idle_memory` | how much memory something takes; what an idle connection holds |
//! | `retry`, `key_update` | what only shows from within |
//! | `ack_frequency` | what is agreed about acknowledgements |
//! | `quic_bit` | peers that give it any value from the first packet on |
//! | `log` | what the log tells |
//! | `starvation` | a handshake that has to wait for room in the congestion window |

#[path = "../../tests/pair/mod.rs"]
mod pair;

mod ack_frequency;
mod before_confirmation;
mod by_hand;
mod chatter;
mod conformance;
mod erasure;
mod erasure_michel;
mod floods;
mod gaps;
mod idle_memory;
mod ids;
mod key_update;
mod lies;
mod log;
mod memory;
mod misplaced;
mod mutations;
mod orders;
mod packets;
mod parameters;
mod path_cid_violations;
mod path_floods;
mod path_violations;
mod quic_bit;
mod retry;
mod small_credit;
mod starvation;
mod tokens;
mod violations;

use fulmar_wire::PathId;

use crate::ids::SpaceId;

/// The space of application data on the only path.
const DATA: SpaceId = SpaceId::Data(PathId::ZERO);
