//! What files the timers of an endpoint take. Alone in its process, as it counts them.

#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::time::Duration;

use common::{Pair, run, within};

/// How many timers of the kernel this process has.
fn timers() -> usize {
    let files = fs::read_dir("/proc/self/fd").expect("a list of open files");
    files
        .filter_map(|file| fs::read_link(file.expect("an open file").path()).ok())
        .filter(|target| target.as_os_str() == "anon_inode:[timerfd]")
        .count()
}

#[test]
fn an_endpoint_that_is_gone_leaves_no_timer() {
    run(async {
        let pair = Pair::new().await;
        assert_eq!(timers(), 2, "one for each worker");
        drop(pair);
        let gone = async {
            while timers() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within(Duration::from_secs(10), gone).await;
    });
}
