//! How much processor time the program has used.

use std::time::Duration;

/// The processor time of the calling thread since it started; `None` where the system does not tell.
pub(crate) fn thread_cpu() -> Option<Duration> {
    #[cfg(unix)]
    return read(rustix::time::ClockId::ThreadCPUTime);
    #[cfg(not(unix))]
    None
}

/// The processor time of all threads of the process; `None` where the system does not tell.
pub(crate) fn process_cpu() -> Option<Duration> {
    #[cfg(unix)]
    return read(rustix::time::ClockId::ProcessCPUTime);
    #[cfg(not(unix))]
    None
}

#[cfg(unix)]
fn read(clock: rustix::time::ClockId) -> Option<Duration> {
    let time = rustix::time::clock_gettime(clock);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}
