//! Whole Fulmar endpoints in a simulated network, in virtual time.
//!
//! A [`Lab`] says what a run is made of; [`Lab::run`] lets it happen and checks it, [`Lab::start`] gives a
//! [`Simulation`] to be driven by hand. [`swarm::run`] makes a whole random scenario out of a seed.
//!
//! | file | owns |
//! |---|---|
//! | `lab` | what a run is made of |
//! | `simulation` | the loop: packets arrive, hosts act, the time goes on |
//! | `host` | an endpoint, its connections, and what they may not do |
//! | `workload`, `application` | what the applications of both sides do and see |
//! | `content` | data that can be verified wherever it turns up |
//! | `checkers` | what must hold in every run |
//! | `report` | what came out of a run |
//! | `scenario` | scenario files: reading, running, checking against goals |
//! | `explore` | random links, and how far from the ideal transfers over them are |
//! | `sweep` | a scenario at many values of a setting, and where its time leaps |
//! | `swarm` | a random scenario for each seed |
//! | `crypto` | TLS with seeded randomness, a fixed certificate and a fixed time |
//! | `trace`, `capture` | the fingerprint of a run; its packets for Wireshark |
//!
//! **Invariant**: a run depends on its scenario and its seed only. No clock, no randomness of the operating
//! system, no thread.
#![forbid(unsafe_code)]

mod application;
mod capture;
mod checkers;
mod content;
pub mod crypto;
pub mod explore;
mod host;
mod lab;
mod report;
pub mod scenario;
mod simulation;
pub mod swarm;
pub mod sweep;
mod trace;
mod workload;

pub use application::{
    Application, Frames, Messages, Receiving, ReceivingEnd, Sending, SendingEnd, SendingFate,
};
pub use checkers::agreement;
pub use content::Content;
pub use fulmar_proto::Side;
pub use fulmar_sim::{LinkConfig, LinkTrace};
pub use host::{Host, Peaks, Session};
use lab::SERVER_ADDRESS;
pub use lab::{Churn, Close, Connecting, Lab, LabPath, Limits, Role, Shift};
pub use report::{
    ConnectionLogs, ConnectionReport, Failure, HopReport, Moved, PathRecording, PathReport, Progress,
    Recording, RunReport, SideReport, Window,
};
pub use simulation::Simulation;
pub use trace::{Trace, TraceHash};
pub use workload::{MediaStream, Workload};
