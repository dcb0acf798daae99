//! The template has the whole command line, and its controller is one among the others.

use std::process::{Command, Output};

fn program(arguments: &[&str]) -> Output {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let program =
        Command::new(env!("CARGO_BIN_EXE_own-controller")).args(arguments).current_dir(root).output();
    program.expect("the program runs")
}

fn run(arguments: &[&str]) -> Vec<serde_json::Value> {
    let output = program(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

#[test]
fn the_controller_runs_with_parameters_beside_others() {
    let link = "examples/own-controller/link.toml";
    let lines = run(&["lab", "run", link, "--controller", "aimd,bbr", "--json"]);
    let names: Vec<_> = lines.iter().map(|line| line["controller"].as_str()).collect();
    assert_eq!(names, [Some("aimd"), Some("bbr")]);
    let set = ["lab", "run", link, "--set", "controllers.aimd.decrease=0.3", "--json"];
    let gentle = &lines[0]["completion_s"];
    assert!(run(&set)[0]["completion_s"].as_f64() > gentle.as_f64(), "{gentle}");
}

#[test]
fn campaigns_and_random_links_take_it() {
    let lines = run(&["lab", "grid", "examples/own-controller/campaign.toml", "--shard", "1/30"]);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().any(|line| line["controller"] == "aimd"), "{lines:?}");
    // Results of this controller are of this build of the program alone.
    let is_of_build =
        |line: &serde_json::Value| line["id"].as_str().is_some_and(|id| id.contains(" program="));
    assert!(lines.iter().all(|line| is_of_build(line) == (line["controller"] == "aimd")), "{lines:?}");
    let lines = run(&["lab", "explore", "--links", "1", "--controller", "aimd", "--json"]);
    assert_eq!(lines[0]["outcomes"][0]["controller"], "aimd");
}

#[test]
fn a_parameter_that_it_does_not_know_is_told() {
    let link = "examples/own-controller/link.toml";
    let output = program(&["lab", "run", link, "--set", "controllers.aimd.decreese=0.3"]);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && complaint.contains("unknown field `decreese`"), "{complaint}");
}
