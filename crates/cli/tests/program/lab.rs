//! `fulmar lab`: names and figures, and that a run is the same everywhere.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use fulmar_lab::scenario::{ControllerName, Scenario};
use serde_json::Value;

use crate::run::{finish, fulmar};
use crate::test_dir::TestDir;

/// What an object of `lab run --json` has.
const RUN: [&str; 14] = [
    "scenario",
    "controller",
    "seed",
    "completion_s",
    "bytes",
    "client",
    "server",
    "up",
    "down",
    "metrics",
    "trace_sha256",
    "settings",
    "scenario_sha256",
    "version",
];
/// What each side of it has.
const SIDE: [&str; 14] = [
    "packets_sent",
    "packets_lost",
    "packets_spurious",
    "bytes_sent",
    "ack_bytes",
    "acks_sent",
    "pto_count",
    "rtt_min_ms",
    "rtt_p50_ms",
    "rtt_p90_ms",
    "rtt_p99_ms",
    "rtt_max_ms",
    "cwnd_max",
    "connections_accepted",
];
/// A scenario with a goal that is met and one that is not.
pub(crate) const SMALL: &str = r#"
title = "A small download"
[link]
rate_mbps = 10
delay_ms = 10
[[connection]]
download_bytes = 20_000
[[goal]]
controller = "cubic"
goal = 1
[[goal]]
controller = "cubic"
metric = "packets_sent"
goal = 1
"#;

/// The object has these fields, and no others.
#[track_caller]
pub(crate) fn has_exactly(object: &Value, names: &[&str]) {
    let mut found: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut names = names.to_vec();
    found.sort_unstable();
    names.sort_unstable();
    assert_eq!(found, names);
}

#[test]
fn all_scenarios_are_listed_wherever_the_program_runs() {
    let dir = TestDir::new("lab-list");
    let mut command = fulmar(&["lab", "list", "--json"]);
    command.current_dir(dir.path());
    let listed = finish(command).succeeded().objects();
    let names: Vec<&str> = listed.iter().map(|object| object["name"].as_str().expect("a name")).collect();
    assert_eq!(names, Scenario::builtin_names().collect::<Vec<_>>());
}

#[test]
fn a_run_has_its_figures_and_is_the_same_in_every_process() {
    for (name, controller) in [
        ("deep-space/minute", ControllerName::Cubic),
        ("recovery/two-of-64", ControllerName::Newreno),
        ("recovery/heavy-loss-exchanges", ControllerName::Cubic),
        ("congestion/four-in-sequence-jitter", ControllerName::Cubic),
        ("congestion/cubic-with-cubic", ControllerName::Newreno),
    ] {
        let arguments = ["lab", "run", name, "--controller", controller.as_str(), "--seed", "7", "--json"];
        let objects = finish(fulmar(&arguments)).succeeded().objects();
        assert_eq!(objects.len(), 1);
        has_exactly(&objects[0], &RUN);
        has_exactly(&objects[0]["client"], &SIDE);
        has_exactly(&objects[0]["server"], &SIDE);
        let scenario = Scenario::builtin(name).expect(name);
        let here = [7, 7, 8].map(|seed| scenario.run(Some(controller), seed).expect(name).trace_sha256);
        assert_eq!(objects[0]["trace_sha256"], here[0], "{name}");
        assert_eq!(here[0], here[1], "{name}");
        assert_ne!(here[0], here[2], "{name}");
    }
}

#[test]
fn runs_are_printed_in_the_order_of_their_seeds() {
    let arguments = ["lab", "run", "deep-space/minute", "--seed", "5", "--runs", "6", "--json"];
    let objects = finish(fulmar(&arguments)).succeeded().objects();
    let seeds: Vec<u64> = objects.iter().map(|object| object["seed"].as_u64().expect("a seed")).collect();
    assert_eq!(seeds, [5, 6, 7, 8, 9, 10]);
}

#[test]
fn several_seeds_are_summed_up_for_people() {
    let arguments = ["lab", "run", "deep-space/long-rtt", "--runs", "3"];
    let text = finish(fulmar(&arguments)).succeeded().stdout();
    assert!(
        text.lines().last().expect("a line").contains(": median ") && text.contains("of 3 runs"),
        "{text}"
    );
}

#[test]
fn a_setting_changes_the_run() {
    let time = |setting: &str| {
        let arguments = ["lab", "run", "deep-space/long-rtt", "--set", setting, "--json"];
        finish(fulmar(&arguments)).succeeded().objects()[0]["completion_s"].as_f64().expect("a time")
    };
    assert!(time("link.delay_ms=10") < time("link.delay_ms=300") / 2.0);
}

#[test]
fn what_does_not_exist_is_wrong_usage() {
    finish(fulmar(&["lab", "run", "mars/attacks"])).failed(2, &["mars/attacks", "fulmar lab list"]);
    let told = finish(fulmar(&["lab", "run", "mars/attacks", "--json"])).failed(2, &["mars/attacks"]);
    let objects = told.objects();
    assert_eq!((objects.len(), &objects[0]["kind"]), (1, &"failure".into()));
    assert_eq!(told.stderr(), format!("fulmar: {}\n", objects[0]["error"].as_str().expect("a sentence")));
    finish(fulmar(&["lab", "run", "deep-space/minute", "--set", "link.speed=1"]))
        .failed(2, &["deep-space/minute", "unknown field `speed`"]);
    let dir = TestDir::new("lab-usage");
    let path = dir.path().join("typo.toml");
    fs::write(&path, SMALL.replace("delay_ms", "dealy_ms")).expect("a file");
    let path = path.to_str().expect("a path");
    finish(fulmar(&["lab", "run", path])).failed(2, &["typo.toml:5: [link] dealy_ms: unknown field"]);
}

#[test]
fn a_run_that_fails_says_so() {
    let arguments = ["lab", "run", "deep-space/long-rtt", "--set", "link.loss=\"everything\"", "--json"];
    let finished = finish(fulmar(&arguments));
    assert!(finished.stderr().contains("deep-space/long-rtt with"), "{}", finished.stderr());
    assert!(finished.stderr().ends_with("fulmar: 1 run failed\n"), "{}", finished.stderr());
    // Whoever counts runs misses none.
    let lines = finished.objects();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["scenario"], "deep-space/long-rtt");
    assert_eq!((&lines[0]["seed"], &lines[0]["controller"]), (&1.into(), &"bbr".into()));
    assert_eq!(lines[0]["settings"]["link.loss"], "\"everything\"");
    assert!(lines[0]["error"].as_str().is_some_and(|error| error.contains("deep-space/long-rtt")));
    let dir = TestDir::new("lab-failed");
    let file = |name: &str| dir.path().join(name).to_str().expect("a path").to_owned();
    fs::write(file("failed.jsonl"), finished.stdout()).expect("a file");
    finish(fulmar(&["lab", "report", &file("failed.jsonl"), "-o", &file("page.html")])).succeeded();
    let page = finish(fulmar(&["lab", "report", &file("failed.jsonl"), "-o", "-"])).succeeded().stdout();
    assert_eq!(page, fs::read_to_string(file("page.html")).expect("a page"));
}

#[test]
fn a_run_that_takes_too_long_is_one_sentence() {
    let dir = TestDir::new("lab-late");
    let path = dir.path().join("small.toml");
    fs::write(&path, SMALL).expect("a file");
    let arguments = ["lab", "run", path.to_str().expect("a path"), "--set", "limit_s=0.03", "--json"];
    let finished = finish(fulmar(&arguments));
    let (stderr, objects) = (finished.stderr(), finished.objects());
    let lines: Vec<&str> = stderr.lines().collect();
    let error = objects[0]["error"].as_str().expect("a sentence");
    assert_eq!(lines, [format!("fulmar: {error}").as_str(), "fulmar: 1 run failed"]);
    assert!(error.contains("small.toml with bbr, seed 1 at 0.030000000s: hangs"), "{error}");
    // Who wants to look into it is told more.
    let mut verbose = fulmar(&arguments);
    verbose.arg("-v");
    let stderr = finish(verbose).stderr();
    assert!(stderr.starts_with(lines[0]) && stderr.contains("\n*   connection 0: wakes at "), "{stderr}");
}

#[test]
fn several_scenarios_run_with_one_command() {
    let dir = TestDir::new("lab-several");
    let path = dir.path().join("small.toml");
    fs::write(&path, SMALL).expect("a file");
    let path = path.to_str().expect("a path");
    let arguments = ["lab", "run", "deep-space/minute", path, "--controller", "cubic", "--json"];
    let objects = finish(fulmar(&arguments)).succeeded().objects();
    let names: Vec<&str> =
        objects.iter().map(|object| object["scenario"].as_str().expect("a name")).collect();
    assert_eq!(names, ["deep-space/minute", path]);
    assert!(objects.iter().all(|object| object["controller"] == "cubic"));
}

#[test]
fn a_run_tells_its_settings_and_its_scenario() {
    let dir = TestDir::new("lab-settings");
    let path = dir.path().join("small.toml");
    fs::write(&path, SMALL).expect("a file");
    let path = path.to_str().expect("a path");
    let run = |json: &[&str]| {
        let settings = ["--set", "link.delay_ms=20", "--compare", "link.rate_mbps=5"];
        let arguments: Vec<&str> =
            ["lab", "run", path].into_iter().chain(settings).chain(json.iter().copied()).collect();
        finish(fulmar(&arguments)).succeeded()
    };
    let objects = run(&["--json"]).objects();
    let settings: Vec<String> = objects.iter().map(|object| object["settings"].to_string()).collect();
    let both = r#"{"link.delay_ms":"20","link.rate_mbps":"5"}"#;
    assert_eq!(settings, [r#"{"link.delay_ms":"20"}"#, both]);
    assert_eq!(objects[0]["scenario_sha256"], objects[1]["scenario_sha256"]);
    assert!(run(&[]).stdout().contains("seed 1 link.delay_ms=20 link.rate_mbps=5: "));
    let shown = finish(fulmar(&["lab", "show", path, "--json"])).succeeded().objects();
    assert_eq!(
        (shown[0]["text"].as_str(), &shown[0]["sha256"]),
        (Some(SMALL), &objects[0]["scenario_sha256"])
    );
}

#[test]
fn a_section_runs_as_a_whole_and_a_scenario_can_be_shown() {
    // Nine scenarios, none of which gets through.
    let nothing = ["--set", "link.loss=\"everything\"", "--set", "endpoints.handshake_timeout_s=1"];
    let arguments: Vec<&str> = ["lab", "run", "D"].into_iter().chain(nothing).collect();
    assert!(finish(fulmar(&arguments)).stderr().ends_with("fulmar: 9 runs failed\n"));
    let text = finish(fulmar(&["lab", "show", "wifi/fade"])).succeeded().stdout();
    let shown = Scenario::parse("shown", &text).expect("a scenario");
    assert_eq!(shown.title(), Scenario::builtin("wifi/fade").expect("a scenario").title());
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_a_failure() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let mut command = fulmar(&["lab", "run", "deep-space/long-rtt", "--json"]);
    let output = command.stdout(full).output().expect("the program ends");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("cannot write to standard output").count(), 1, "{told}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn whoever_reads_results_may_go() {
    let dir = TestDir::new("lab-pipe");
    let place = |name: &str| dir.path().join(name).to_str().expect("a path").to_owned();
    fs::write(dir.path().join("small.toml"), SMALL).expect("written");
    let campaign =
        format!("scenario = \"{}\"\ncontrollers = [\"cubic\"]\nseeds = 300\n", place("small.toml"));
    fs::write(dir.path().join("campaign.toml"), campaign).expect("written");
    let row = |seed: u32| format!("{{\"scenario\":\"x\",\"seed\":{seed},\"completion_s\":1}}\n");
    fs::write(dir.path().join("results.jsonl"), (0..9).map(row).collect::<String>()).expect("written");
    for arguments in
        [["grid", &place("campaign.toml"), "--format", "csv"], ["report", &place("results.jsonl"), "-o", "-"]]
    {
        let mut command = fulmar(&[&["lab"], &arguments[..]].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut first = [0; 1];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("something is written");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn links_in_a_row_have_their_figures() {
    let dir = TestDir::new("lab-hops");
    let file = dir.path().join("hops.toml");
    fs::write(&file, SMALL.replace("[[connection]]", "[[hop]]\nlink = { rate_mbps = 5 }\n[[connection]]"))
        .expect("written");
    let file = file.to_str().expect("a path");
    let run =
        &finish(fulmar(&["lab", "run", file, "--controller", "cubic", "--json"])).succeeded().objects()[0];
    let hop = &run["hops"][0];
    has_exactly(hop, &["up", "down"]);
    assert_eq!(run["metrics"]["utilisation"], hop["down"]["utilisation"]);
    let told = finish(fulmar(&["lab", "run", file, "--controller", "cubic"])).succeeded().stdout();
    assert!(told.contains("hop 1: up "), "{told}");
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_the_runs() {
    let dir = TestDir::new("lab-plot");
    let page = dir.path().join("none/page.html");
    let page = page.to_str().expect("a path");
    let ended = finish(fulmar(&["lab", "run", "deep-space/long-rtt", "--plot", page]));
    assert!(ended.stdout().is_empty() && ended.stderr().contains("cannot write"), "{}", ended.stderr());
    // Nor does a run that fails leave a page behind.
    let page = dir.path().join("page.html");
    let page = page.to_str().expect("a path");
    let nothing = ["--set", "link.loss=\"everything\"", "--set", "endpoints.handshake_timeout_s=1"];
    let arguments = [&["lab", "run", "deep-space/long-rtt", "--plot", page], &nothing[..]].concat();
    assert!(finish(fulmar(&arguments)).stderr().contains("1 run failed"));
}

#[test]
fn a_capture_holds_the_secrets_and_changes_nothing() {
    let dir = TestDir::new("lab-pcap");
    let path = dir.path().join("run.pcapng");
    let path = path.to_str().expect("a path");
    let run = |more: &[&str]| {
        let arguments = [&["lab", "run", "deep-space/long-rtt", "--json"], more].concat();
        finish(fulmar(&arguments)).succeeded().objects().remove(0)
    };
    let (plain, captured) = (run(&[]), run(&["--pcap", path]));
    assert_eq!(plain["trace_sha256"], captured["trace_sha256"]);
    let file = fs::read(path).expect("a capture");
    let has = |text: &str| file.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("CLIENT_HANDSHAKE_TRAFFIC_SECRET") && has("SERVER_TRAFFIC_SECRET_0"));
    // A megabyte came, and the client saw it.
    assert!(file.len() > 1_000_000, "{}", file.len());
    let both = ["lab", "run", "deep-space/minute", "deep-space/mars", "--pcap", path];
    finish(fulmar(&both)).failed(2, &["--pcap writes one run"]);
    // What it does not do it does not leave out without a word.
    for more in [["--controller", "bbr,cubic"], ["--compare", "link.delay_ms=5"], ["--plot", path]] {
        let arguments = [&["lab", "run", "deep-space/minute", "--pcap", path][..], &more].concat();
        let told = finish(fulmar(&arguments)).stderr();
        assert!(told.contains("--pcap writes one run") || told.contains("cannot be used with"), "{told}");
    }
}

#[test]
fn a_recorded_link_becomes_a_schedule() {
    let dir = TestDir::new("trace");
    let trace = dir.path().join("cell.down");
    fs::write(&trace, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n30\n").expect("a file");
    let arguments = ["lab", "trace", trace.to_str().expect("a path"), "--step-ms", "10", "--duration-s", "1"];
    let schedule = finish(fulmar(&arguments)).succeeded().stdout();
    assert!(schedule.starts_with("[[schedule]]\nat_s = 0\ndirection = \"down\"\n"), "{schedule}");
    let scenario = dir.path().join("cell.toml");
    fs::write(&scenario, format!("{SMALL}{schedule}")).expect("a file");
    finish(fulmar(&["lab", "run", scenario.to_str().expect("a path")])).succeeded();
}
