//! `fulmar lab explore`: the same links each time, percentiles, and files that repeat the worst.

use std::fs;

use crate::run::{finish, fulmar};
use crate::test_dir::TestDir;

const SPACE: &str = "rate_mbps = [5, 20]\nrtt_ms = [10, 50]\nbytes = [30_000, 100_000]\n";

#[test]
fn random_links_are_told_one_by_one_and_summed_up_whatever_the_number_of_jobs() {
    let dir = TestDir::new("lab-explore");
    let space = dir.path().join("space.toml");
    fs::write(&space, SPACE).expect("a file");
    let space = space.to_str().expect("a path");
    let base = ["lab", "explore", "--links", "6", "--seed", "3", "--space", space, "--json"];
    let objects = |jobs: &str| {
        let arguments: Vec<&str> = base.iter().copied().chain(["--jobs", jobs]).collect();
        finish(fulmar(&arguments)).succeeded().objects()
    };
    let all = objects("1");
    assert_eq!(all, objects("4"));
    let (summary, links) = all.split_last().expect("objects");
    assert_eq!(links.len(), 6);
    for link in links {
        let ideal = link["ideal_s"].as_f64().expect("a time");
        for outcome in link["outcomes"].as_array().expect("outcomes") {
            let ratio = outcome["completion_s"].as_f64().expect("a time") / ideal;
            assert!((ratio - outcome["ratio"].as_f64().expect("a ratio")).abs() < 1e-9, "{link}");
        }
    }
    let of_all = &summary["summary"][0];
    assert_eq!((of_all["controller"].as_str(), of_all["links"].as_u64()), (Some("bbr"), Some(6)));
}

#[test]
fn the_worst_links_are_scenario_files_that_run_again() {
    let dir = TestDir::new("lab-explore-out");
    let file = |name: &str| dir.path().join(name).to_str().expect("a path").to_owned();
    fs::write(file("space.toml"), SPACE).expect("a file");
    let arguments = [
        "lab",
        "explore",
        "--links",
        "4",
        "--space",
        &file("space.toml"),
        "--out",
        &file("out"),
        "--worst",
        "2",
    ];
    let text = finish(fulmar(&arguments)).succeeded().stdout();
    assert!(text.contains("The worst links with cubic:"), "{text}");
    let worst = file("out/worst-cubic-2.toml");
    finish(fulmar(&["lab", "run", &worst, "--controller", "cubic"])).succeeded();
    let page = fs::read_to_string(file("out/explore.html")).expect("a page");
    assert!(page.contains("Round-trip time (ms)"));
}

#[test]
fn a_space_that_makes_no_sense_is_told_with_its_place() {
    let dir = TestDir::new("lab-explore-space");
    let path = dir.path().join("space.toml");
    fs::write(&path, "rtt_ms = [50, 2]\n").expect("a file");
    let path = path.to_str().expect("a path");
    finish(fulmar(&["lab", "explore", "--space", path])).failed(2, &["space.toml:1: rtt_ms: a range"]);
}
