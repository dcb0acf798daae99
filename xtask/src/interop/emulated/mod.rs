//! The list of the public runner over a network of our own: what each case is, who can play it, and how it is judged.

mod case;
mod load;
mod matrix;
mod peers;
mod rules;
mod run;
mod table;

pub(super) use self::case::Case;
pub(crate) use self::load::{LoadOptions, run as run_load};
pub(super) use self::matrix::run;
use self::peers::{Pair, Peer, Programs};
use self::run::Stage;
use self::table::{Outcome, Verdict, render};
