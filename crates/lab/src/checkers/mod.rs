//! What must hold in every run, whatever the network does.
//!
//! | file | what it checks |
//! |---|---|
//! | `agreement` | both ends of a connection tell the same story about every stream |
//! | `amplification` | a server sends little to an address that may be forged |
//! | `flight` | no more is in flight than the congestion window and the probes allow; the window stays open |
//!
//! Contents are checked where they are read, by the [`Application`](crate::Application); spinning timers and
//! endless sending by the [`Host`](crate::Host); hangs by the [`Simulation`](crate::Simulation).

mod agreement;
mod amplification;
mod flight;

pub use self::agreement::agreement;
pub(crate) use self::amplification::{Amplification, Kept};
pub(crate) use self::flight::Flight;
