//! The throughput of the core on one processor core, both ends together.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fulmar_benches::Pair;

const BYTES: u64 = 20_000_000;

fn transfer(c: &mut Criterion) {
    let mut group = c.benchmark_group("core");
    group.throughput(Throughput::Bytes(BYTES)).sample_size(20);
    group.bench_function("upload", |b| {
        let mut pair = Pair::new();
        b.iter(|| pair.upload(BYTES));
    });
    group.bench_function("handshake", |b| b.iter(Pair::new));
    group.finish();
}

criterion_group!(benches, transfer);
criterion_main!(benches);
