//! `requests [COUNT]`: so many requests of a kilobyte, a hundred at a time, for profilers that count instructions.
#![forbid(unsafe_code)]

const CONCURRENT: u64 = 100;

fn main() {
    let count = std::env::args().nth(1).map_or(10_000, |arg| arg.parse().expect("a number of requests"));
    fulmar_benches::Setup::default().connect().requests(count, CONCURRENT);
}
