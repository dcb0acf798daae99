//! How much memory something takes.

/// What was allocated by one thread while something ran, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    /// The most that was there at a time, of what was not there before.
    pub(super) peak: u64,
    /// What is still there.
    pub(super) kept: i64,
}

/// Runs something and watches the allocator.
pub(super) fn memory_of(run: impl FnOnce()) -> Memory {
    let seen = allocation_counter::measure(run);
    Memory { peak: seen.bytes_max, kept: seen.bytes_current }
}

#[test]
fn memory_is_counted() {
    let mut kept = Vec::new();
    let memory = memory_of(|| {
        // An optimised build would leave out what nobody looks at.
        drop(std::hint::black_box(vec![1_u8; 100_000]));
        kept = vec![1_u8; 1_000];
    });
    assert_eq!((memory.peak, memory.kept), (100_000, 1_000));
}
