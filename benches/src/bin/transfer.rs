//! Sends so many megabytes through the core: for profilers that count instructions, such as callgrind. A second
//! argument gives both ends a log of so many entries, or, if it is `fec`, forward erasure correction.
#![forbid(unsafe_code)]

fn main() {
    let megabytes: u64 =
        std::env::args().nth(1).map_or(100, |arg| arg.parse().expect("a number of megabytes"));
    let mut pair = match std::env::args().nth(2).as_deref() {
        Some("fec") => fulmar_benches::Pair::with_fec(),
        entries => fulmar_benches::Pair::with_log(
            entries.map_or(0, |entries| entries.parse().expect("a number of entries")),
        ),
    };
    for _ in 0..megabytes.div_ceil(100) {
        pair.upload(megabytes.min(100) * 1_000_000);
    }
}
