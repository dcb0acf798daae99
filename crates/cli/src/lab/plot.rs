//! The page of runs in the lab: what `--plot` writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fulmar::PathId;
use fulmar_lab::scenario::{Figures, Scenario, SideFigures};
use fulmar_lab::{ConnectionLogs, LinkTrace, Recording, Side};
use fulmar_plot::{Event, Lane, Page, Points, Run, Timeline, Timelines};

use crate::failure::Failure;

/// So many ends of connections are drawn of each run: those that sent most.
const LANES_MAX: usize = 8;

/// Fails where no page can be written, before the runs that it would show.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    let is_new = !path.exists();
    let opened = fs::File::options().append(true).create(true).open(path);
    opened.map_err(Failure::io(format!("cannot write {}", path.display())))?;
    if is_new {
        // Runs that fail leave nothing behind.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Writes the page.
pub(super) fn write(path: &Path, mut runs: Vec<Run>) -> Result<(), Failure> {
    let mut scenarios: Vec<&str> = runs.iter().filter_map(|run| run.name.split(' ').next()).collect();
    scenarios.dedup();
    let title = match (scenarios.as_slice(), runs.as_slice()) {
        (_, [run]) => run.name.clone(),
        ([scenario], runs) => format!("{scenario}: {} runs compared", runs.len()),
        (_, runs) => format!("{} runs compared", runs.len()),
    };
    shorten_names(&mut runs);
    let subtitle =
        "Fulmar in the lab: both ends in virtual time, the same for everyone who repeats it".to_owned();
    let page = Page { title, subtitle, runs };
    let action = format!("cannot write {}", path.display());
    fs::write(path, page.html()).map_err(Failure::io(action))
}

/// Takes from the names of several runs the words that all of them have, since the title has those.
fn shorten_names(runs: &mut [Run]) {
    let words = |name: &str| name.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let names: Vec<Vec<String>> = runs.iter().map(|run| words(&run.name)).collect();
    let Some((first, others)) = names.split_first().filter(|(_, others)| !others.is_empty()) else { return };
    let common = |place: usize| others.iter().all(|name| name.get(place) == first.get(place));
    for (run, name) in runs.iter_mut().zip(&names) {
        let own = name.iter().enumerate().filter(|(place, _)| !common(*place)).map(|(_, word)| word.as_str());
        let short = own.collect::<Vec<_>>().join(" ");
        // A run that only lacks what another has is the one without it.
        run.name = if short.is_empty() { "as it is".to_owned() } else { short };
    }
}

/// What is drawn of a run.
pub(super) fn run(
    name: String,
    scenario: &Scenario,
    base: &Scenario,
    settings: &[String],
    (figures, recording): (&Figures, &Recording),
) -> Run {
    let several = recording.connections.len() > 1;
    let mut lanes: Vec<PathLane> = Vec::new();
    for (number, logs) in recording.connections.iter().enumerate() {
        let end = |side: &str| if several { format!("{side} {}", number + 1) } else { side.to_owned() };
        lanes.extend(lanes_of(&end("client"), Side::Client, logs, recording));
        lanes.extend(lanes_of(&end("server"), Side::Server, logs, recording));
    }
    lanes.retain(|lane| !lane.timeline.is_empty());
    keep_largest(&mut lanes);
    // Links that none of these went over have lanes of their own.
    let drawn: BTreeSet<(usize, bool)> =
        lanes.iter().filter_map(|lane| lane.link).map(|(side, link)| (link, side.is_client())).collect();
    for (link, path) in recording.paths.iter().enumerate() {
        for (side, end) in [(Side::Client, "client"), (Side::Server, "server")] {
            if !drawn.contains(&(link, side.is_client())) {
                let name = format!("{end}, path {}", path.name);
                lanes.push(PathLane { name, timeline: Timeline::default(), link: Some((side, link)) });
            }
        }
    }
    let lanes = lanes.into_iter().map(|PathLane { name, timeline, link }| {
        let lane = Lane { name, timeline, ..Lane::default() };
        match link {
            Some((side, link)) => with_queue(lane, trace(recording, side, link)),
            None => lane,
        }
    });
    let events = scenario.events().into_iter();
    let events = events.map(|event| Event { start: event.start, end: event.end, what: event.what });
    Run {
        name,
        facts: facts(figures, recording),
        lanes: lanes.collect(),
        events: events.collect(),
        scenario: base.text().to_owned(),
        settings: settings.to_vec(),
    }
}

/// Keeps the lanes that are drawn, in their order.
fn keep_largest(lanes: &mut Vec<PathLane>) {
    let mut by_bytes: Vec<usize> = (0..lanes.len()).collect();
    by_bytes.sort_by_key(|&place| std::cmp::Reverse(lanes[place].timeline.bytes()));
    let kept: BTreeSet<usize> = by_bytes.into_iter().take(LANES_MAX).collect();
    let mut place = 0;
    lanes.retain(|_| {
        place += 1;
        kept.contains(&(place - 1))
    });
}

/// An end of a connection on one of its paths, and the direction of the link whose queue is drawn with it, if that is known.
struct PathLane {
    name: String,
    timeline: Timeline,
    link: Option<(Side, usize)>,
}

/// The lanes of an end: one for the connection, with the figures of its first path, and one for each further path.
fn lanes_of(end: &str, side: Side, logs: &ConnectionLogs, recording: &Recording) -> Vec<PathLane> {
    let log = if side.is_client() { &logs.client } else { &logs.server };
    let (connection, others) = Timelines::from_log(log).finish();
    let link_of = |id: u32| {
        let found = logs.links.iter().find(|(path, _)| *path == PathId(id));
        found.map(|(_, link)| *link).or((id == 0).then_some(0))
    };
    let mut drawn = BTreeSet::from_iter(link_of(0));
    let first =
        PathLane { name: end.to_owned(), timeline: connection, link: link_of(0).map(|link| (side, link)) };
    let others = others.into_iter().map(|(id, timeline)| {
        // A path that failed may be followed by another over the same link.
        let link = link_of(id);
        let is_first = link.is_some_and(|link| drawn.insert(link));
        let name = match link.and_then(|link| recording.paths.get(link)) {
            Some(path) if is_first => format!("{end}, path {}", path.name),
            Some(path) => format!("{end}, path {id} over {}", path.name),
            None => format!("{end}, path {id}"),
        };
        PathLane { name, timeline, link: link.filter(|_| is_first).map(|link| (side, link)) }
    });
    std::iter::once(first).chain(others).collect()
}

/// The course of a link in the direction in which this side sends.
fn trace(recording: &Recording, side: Side, link: usize) -> &LinkTrace {
    match (recording.paths.get(link), side) {
        (Some(path), Side::Client) => &path.up,
        (Some(path), Side::Server) => &path.down,
        (None, Side::Client) => &recording.up,
        (None, Side::Server) => &recording.down,
    }
}

/// Adds the queue of a link to a lane.
fn with_queue(mut lane: Lane, link: &LinkTrace) -> Lane {
    for sample in &link.queue {
        // The peak between two samples is drawn where it was told.
        if sample.bytes_max > sample.bytes {
            lane.queue.push(sample.at, sample.bytes_max);
        }
        lane.queue.push(sample.at, sample.bytes);
    }
    let mut queue = lane.queue.as_slice().iter().peekable();
    let (mut waiting, mut drops, mut marks) = (0, Points::default(), Points::default());
    let mut events: Vec<_> = link.drops.iter().map(|drop| (drop.at, true)).collect();
    events.extend(link.marks.iter().map(|at| (*at, false)));
    events.sort_by_key(|(at, _)| *at);
    for (at, dropped) in events {
        while let Some(sample) = queue.next_if(|sample| sample.at <= at.as_nanos()) {
            waiting = sample.value;
        }
        if dropped { drops.push(at, waiting) } else { marks.push(at, waiting) }
    }
    Lane { drops, marks, ..lane }
}

/// The figures of the table above the charts.
fn facts(figures: &Figures, recording: &Recording) -> Vec<(String, String)> {
    // What the side did that sent most is what the run is about.
    let Figures { client, server, completion_s, .. } = figures;
    let side: &SideFigures = if client.bytes_sent >= server.bytes_sent { client } else { server };
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("completion", completion_s.map_or("-".to_owned(), |time| format!("{time:.3} s")));
    fact("goodput", figures.goodput_mbps().map_or("-".to_owned(), |rate| format!("{rate:.2} Mbit/s")));
    fact("packets sent", side.packets_sent.to_string());
    fact("lost", side.packets_lost.to_string());
    fact("lost in error", side.packets_spurious.to_string());
    // Of all paths, and of what lies behind them.
    let hops = figures.hops.iter().map(|hop| hop.up.packets_dropped + hop.down.packets_dropped);
    let dropped = figures.up.packets_dropped + figures.down.packets_dropped + hops.sum::<u64>();
    fact("dropped by the link", dropped.to_string());
    fact("probe timeouts", side.pto_count.to_string());
    if let (Some(min), Some(max)) = (side.rtt_min_ms, side.rtt_max_ms) {
        fact("round-trip time", format!("{min:.1} to {max:.1} ms"));
    }
    fact("largest window", in_bytes(side.cwnd_max));
    let overwritten: u64 = recording.connections.iter().map(|logs| logs.overwritten).sum();
    if overwritten > 0 {
        fact("log entries without room", overwritten.to_string());
    }
    let of_paths = recording.paths.iter().flat_map(|path| [&path.up, &path.down]);
    // With paths, the first one stands in both.
    let links: Vec<_> = match recording.paths.is_empty() {
        true => vec![&recording.up, &recording.down],
        false => of_paths.collect(),
    };
    let left_out: u64 = links.iter().map(|link| link.left_out).sum();
    if left_out > 0 {
        fact("drops and marks without room", left_out.to_string());
    }
    facts
}

/// A number of bytes that is easy to read.
fn in_bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortened(names: &[&str]) -> Vec<String> {
        let run = |name: &&str| Run { name: (*name).to_owned(), ..Run::default() };
        let mut runs: Vec<Run> = names.iter().map(run).collect();
        shorten_names(&mut runs);
        runs.into_iter().map(|run| run.name).collect()
    }

    #[test]
    fn packets_that_any_path_dropped_are_told() {
        let text = "title = \"x\"\n[[path]]\nname = \"A\"\nlink = { rate_mbps = 1, delay_ms = 10, queue_bytes = 5_000 }\n\
                    [[path]]\nname = \"B\"\nlink = { rate_mbps = 10, delay_ms = 10, loss = { uniform = { probability = 0.02 } } }\n\
                    [[connection]]\nupload_bytes = 2_000_000\n";
        let scenario = Scenario::parse("paths", text).expect("a scenario");
        let (figures, recording) = scenario.run_recorded(None, 1).expect("a run");
        let [a, b] = [0, 1]
            .map(|path| figures.paths[path].up.packets_dropped + figures.paths[path].down.packets_dropped);
        assert!(b > 0, "{:?}", figures.paths);
        let facts = facts(&figures, &recording);
        assert!(facts.contains(&("dropped by the link".to_owned(), (a + b).to_string())), "{facts:?}");
    }

    /// Two paths whose round-trip times and windows are unlike; the first one stands still for a while.
    const TWO_PATHS: &str = r#"
        title = "two paths"
        [[path]]
        name = "A"
        link = { rate_mbps = 20, delay_ms = 15, queue_ms = 60 }
        [[path.schedule]]
        at_s = 1
        suspend = { duration_ms = 500, side = "both" }
        [[path]]
        name = "B"
        link = { rate_mbps = 10, delay_ms = 40, queue_ms = 100 }
        [[connection]]
        download_bytes = 8_000_000
        "#;

    /// The values of a series of a lane in the data of a page, whose points are differences.
    fn values(lane: &serde_json::Value, key: &str) -> Vec<i64> {
        let series = lane["series"].as_array().unwrap().iter().find(|series| series["key"] == key);
        let mut last = 0;
        let points = series.map(|series| series["v"].as_array().unwrap().clone()).unwrap_or_default();
        let sum = |difference: &serde_json::Value| {
            last += difference.as_i64().unwrap();
            last
        };
        points.iter().map(sum).collect()
    }

    #[test]
    fn each_path_has_a_lane_with_figures_of_its_own() {
        let scenario = Scenario::parse("paths", TWO_PATHS).expect("a scenario");
        let (figures, recording) = scenario.run_recorded(None, 1).expect("a run");
        let run = run(String::new(), &scenario, &scenario, &[], (&figures, &recording));
        let names: Vec<&str> = run.lanes.iter().map(|lane| lane.name.as_str()).collect();
        assert_eq!(names, ["client", "client, path B", "server", "server, path B"]);
        let html = Page { runs: vec![run], ..Page::default() }.html();
        let data = html.split("id=\"data\">").nth(1).expect("the data").split("</script>").next().unwrap();
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        let lanes = data["runs"][0]["lanes"].as_array().unwrap();
        // Acknowledgements of the slow path come back over the quick one, too.
        for (lane, least_ms) in [(&lanes[2], 15 + 15), (&lanes[3], 40 + 15)] {
            let smallest = values(lane, "rtt_min");
            assert!(!smallest.is_empty() && smallest.is_sorted_by(|a, b| a >= b), "{smallest:?}");
            assert!(smallest.iter().all(|micros| *micros >= 1_000 * least_ms), "{smallest:?}");
            assert!(lane["phases"].as_array().unwrap().len() < 200, "{}", lane["phases"]);
            assert!(!values(lane, "sent").is_empty() && !values(lane, "queue").is_empty());
        }
        let [whole, second] = [&lanes[2], &lanes[3]].map(|lane| lane["bytes"].as_u64().unwrap());
        assert!(whole == 8_000_000 && (1..whole).contains(&second), "{second} of {whole} bytes");
    }

    #[test]
    fn runs_are_told_apart_by_what_is_different() {
        assert_eq!(shortened(&["w/x cubic seed 1", "w/x bbr seed 1"]), ["cubic", "bbr"]);
        assert_eq!(shortened(&["w/x cubic seed 1", "w/x cubic seed 1 a=b"]), ["as it is", "a=b"]);
        assert_eq!(shortened(&["w/x cubic seed 1"]), ["w/x cubic seed 1"]);
    }
}
