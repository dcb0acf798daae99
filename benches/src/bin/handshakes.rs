//! `handshakes [COUNT]`: so many full handshakes, one after the other, for profilers that count instructions.
#![forbid(unsafe_code)]

fn main() {
    let count: u64 = std::env::args().nth(1).map_or(200, |arg| arg.parse().expect("a number of handshakes"));
    let setup = fulmar_benches::Setup::default();
    for _ in 0..count {
        std::hint::black_box(setup.connect());
    }
}
