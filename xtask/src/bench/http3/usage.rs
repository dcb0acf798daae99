//! What a server and all processes that it has started have used, from `/proc`.

use std::collections::HashMap;
use std::fs;

use crate::Result;

/// CPU time and memory of a tree of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) cpu_s: f64,
    /// The most resident memory that each process has had, in kilobytes, added up.
    pub(super) peak_kb: f64,
}

/// What `/proc/PID/stat` says of a process.
struct Stat {
    parent: u32,
    /// User and system time of the process with all its threads, in ticks.
    own_ticks: u64,
    /// The same of its children that have ended and were waited for.
    children_ticks: u64,
}

/// The usage of the process `root` and of its descendants that still run.
pub(super) fn of_tree(root: u32) -> Result<Usage> {
    let mut stats = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // A process that has ended meanwhile is none of ours: ours wait for requests.
        if let Some(stat) = stat_of(&pid.to_string()) {
            stats.insert(pid, stat);
        }
    }
    if !stats.contains_key(&root) {
        return Err("the server has ended".into());
    }
    let parents: HashMap<u32, u32> = stats.iter().map(|(pid, stat)| (*pid, stat.parent)).collect();
    let mut usage = Usage::default();
    for (pid, stat) in stats.iter().filter(|(pid, _)| descends(**pid, root, &parents)) {
        usage.cpu_s += seconds(stat.own_ticks);
        usage.peak_kb += peak_kb(*pid).unwrap_or(0.0);
    }
    Ok(usage)
}

/// CPU time of all children of this process that were waited for, in seconds.
pub(super) fn of_ended_children() -> Result<f64> {
    Ok(seconds(stat_of("self").ok_or("/proc/self/stat cannot be read")?.children_ticks))
}

/// Whether `pid` is `root` or comes from it.
fn descends(mut pid: u32, root: u32, parents: &HashMap<u32, u32>) -> bool {
    // A number that is used again while /proc is read could close a circle: no chain is longer than the list.
    for _ in 0..=parents.len() {
        if pid == root {
            return true;
        }
        match parents.get(&pid) {
            Some(parent) => pid = *parent,
            None => return false,
        }
    }
    false
}

fn stat_of(pid: &str) -> Option<Stat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of the program, in parentheses, may hold anything, so the fields are counted from its end.
fn parse(stat: &str) -> Option<Stat> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        own_ticks: number(11)? + number(12)?,
        children_ticks: number(13)? + number(14)?,
    })
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn peak_kb(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn fields_are_found_behind_a_name_with_spaces_and_parentheses() {
        let stat = "12 (a) b (c)) S 7 1 1 0 -1 4 5 6 0 0 30 12 3 4 20 0 1 0 99 1 2";
        let stat = parse(stat).expect("a line of /proc");
        assert_eq!((stat.parent, stat.own_ticks, stat.children_ticks), (7, 42, 7));
        assert!(parse("12 no name").is_none());
    }

    #[test]
    fn grandchildren_belong_to_the_tree_and_strangers_do_not() {
        let parents = HashMap::from([(10, 1), (11, 10), (12, 11), (20, 1), (30, 31), (31, 30)]);
        assert!(descends(10, 10, &parents) && descends(12, 10, &parents));
        assert!(!descends(20, 10, &parents) && !descends(1, 10, &parents));
        assert!(!descends(30, 10, &parents));
    }

    #[test]
    fn what_a_child_of_the_server_spends_is_the_servers() {
        let script = "sh -c 'while :; do :; done' & trap 'kill $!; exit' TERM; wait";
        let mut server = Command::new("sh").args(["-c", script]).spawn().expect("there is a shell");
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut usage = Usage::default();
        while usage.cpu_s < 0.1 && Instant::now() < deadline {
            sleep(Duration::from_millis(50));
            usage = of_tree(server.id()).expect("it runs");
        }
        let pid = i32::try_from(server.id()).ok().and_then(rustix::process::Pid::from_raw).expect("a number");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        server.wait().expect("it ends");
        assert!(usage.cpu_s >= 0.1, "{usage:?}");
        assert!(usage.peak_kb > 0.0, "{usage:?}");
        assert!(of_tree(server.id()).is_err());
    }
}
