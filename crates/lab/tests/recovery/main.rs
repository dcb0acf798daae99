//! Timers and loss recovery on links that break, stop, narrow, reorder, or are very long.

mod erasure;
mod handshake;
mod long_delay;
mod narrow_path;
mod outage;
mod reordering;
mod repeats;
mod run;
