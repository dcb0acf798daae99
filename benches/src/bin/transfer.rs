//! Sends so many megabytes through the core: for profilers that count instructions, such as callgrind. A second
//! argument gives both ends a log of so many entries.
#![forbid(unsafe_code)]

fn main() {
    let megabytes: u64 =
        std::env::args().nth(1).map_or(100, |arg| arg.parse().expect("a number of megabytes"));
    let entries = std::env::args().nth(2).map_or(0, |arg| arg.parse().expect("a number of entries"));
    let mut pair = fulmar_benches::Pair::with_log(entries);
    for _ in 0..megabytes.div_ceil(100) {
        pair.upload(megabytes.min(100) * 1_000_000);
    }
}
