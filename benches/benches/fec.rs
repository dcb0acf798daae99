//! Forward erasure correction: the kernels, and a repair symbol made and used.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fulmar_fec::{Cauchy, Decoder, Kernel, Limits, RepairId, SourceWindow};

/// The bytes of a symbol in a packet of 1,452 bytes.
const SYMBOL: usize = 1408;
/// The symbols of a window.
const WINDOW: u16 = 64;

/// Bytes multiplied and added per second, with one symbol in the fastest cache, and with the 64 of a window in turn.
fn mul_add(c: &mut Criterion) {
    let symbols: Vec<Vec<u8>> = (0..WINDOW).map(|i| vec![i as u8; SYMBOL]).collect();
    for kernel in Kernel::available() {
        let mut group = c.benchmark_group(format!("mul_add/{}", kernel.name()));
        let mut sum = vec![0; SYMBOL];
        group.throughput(Throughput::Bytes(SYMBOL as u64));
        group.bench_function("one", |b| b.iter(|| kernel.mul_add(&mut sum, &symbols[3], 0x8e)));
        group.throughput(Throughput::Bytes(SYMBOL as u64 * u64::from(WINDOW)));
        group.bench_function("window", |b| {
            b.iter(|| symbols.iter().for_each(|symbol| kernel.mul_add(&mut sum, symbol, 0x8e)));
        });
        group.finish();
    }
}

/// A repair symbol over a whole window.
fn encode(c: &mut Criterion) {
    for kernel in Kernel::available() {
        let window = window(kernel);
        let id = RepairId { first: 0, count: WINDOW, key: 3 };
        let mut repair = Vec::new();
        c.bench_function(&format!("repair/{}", kernel.name()), |b| {
            b.iter(|| window.repair(&Cauchy, &id, &mut repair));
        });
    }
}

/// What a repair symbol costs the receiver that lacks one symbol of the window, and what a symbol costs that is there.
fn decode(c: &mut Criterion) {
    let kernel = Kernel::best();
    let window = window(kernel);
    let id = RepairId { first: 0, count: WINDOW, key: 0 };
    let mut repair = Vec::new();
    window.repair(&Cauchy, &id, &mut repair).expect("the window has all symbols");
    let with_a_loss = || {
        let mut decoder = Decoder::with_kernel(Limits::default(), kernel);
        for i in (0..WINDOW).filter(|i| *i != 7) {
            decoder.on_source(i.into(), &[i as u8; SYMBOL]).expect("nothing contradicts it");
        }
        decoder
    };
    c.bench_function("recover", |b| {
        b.iter_batched(
            with_a_loss,
            |mut decoder| {
                decoder.on_repair(&Cauchy, &id, &repair).expect("nothing contradicts it");
                decoder
            },
            BatchSize::SmallInput,
        );
    });
    let mut decoder = Decoder::with_kernel(Limits::default(), kernel);
    let (mut next, symbol) = (0, vec![5; SYMBOL]);
    c.bench_function("source", |b| {
        b.iter(|| {
            next += 1;
            decoder.on_source(next, &symbol)
        });
    });
}

fn window(kernel: Kernel) -> SourceWindow {
    let mut window = SourceWindow::with_kernel(WINDOW, kernel);
    for i in 0..WINDOW {
        window.push(&[i as u8; SYMBOL]).expect("the symbol is short enough");
    }
    window
}

criterion_group!(benches, mul_add, encode, decode);
criterion_main!(benches);
