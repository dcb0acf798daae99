//! `fulmar lab check` and `fulmar lab grid`: goals, lists of what is expected, campaigns.

use std::fs;

use crate::lab::{SMALL, has_exactly};
use crate::run::{finish, fulmar};
use crate::test_dir::TestDir;

/// What an object of `lab check --json` has.
const ROW: [&str; 7] = ["scenario", "controller", "metric", "reference", "goal", "measured", "verdict"];

#[test]
fn a_check_of_no_goals_is_wrong_usage() {
    let dir = TestDir::new("lab-no-goals");
    let path = dir.path().join("plain.toml");
    let (plain, _) = SMALL.split_once("[[goal]]").expect("goals");
    fs::write(&path, plain).expect("a file");
    let path = path.to_str().expect("a path");
    finish(fulmar(&["lab", "check", path])).failed(2, &["nothing to check", "[[goal]]"]);
}

#[test]
fn a_check_tells_with_json_why_nothing_was_measured() {
    let dir = TestDir::new("lab-check-failed");
    let path = dir.path().join("lossy.toml");
    let text = SMALL.replace("[link]\n", "[link]\nloss = \"everything\"\n");
    fs::write(&path, text + "\n[endpoints]\nhandshake_timeout_s = 1\n").expect("a file");
    let path = path.to_str().expect("a path");
    let rows =
        finish(fulmar(&["lab", "check", path, "--seeds", "1", "--json"])).failed(1, &["missed"]).objects();
    assert!(rows[0]["measured"].is_null());
    assert!(rows[0]["note"].as_str().is_some_and(|note| note.contains("failed")), "{rows:?}");
}

#[test]
fn a_check_has_a_row_for_each_goal_and_tells_of_a_missed_one() {
    let dir = TestDir::new("lab-check");
    let path = dir.path().join("small.toml");
    fs::write(&path, SMALL).expect("a file");
    let path = path.to_str().expect("a path");
    let rows = finish(fulmar(&["lab", "check", path, "--json"])).failed(1, &["1 goal was missed"]).objects();
    rows.iter().for_each(|row| has_exactly(row, &ROW));
    let verdicts: Vec<&str> = rows.iter().map(|row| row["verdict"].as_str().expect("a verdict")).collect();
    assert_eq!(verdicts, ["met", "missed"]);
    let table = finish(fulmar(&["lab", "check", path])).failed(1, &[]).stdout();
    let first: Vec<&str> = table.lines().next().expect("a header").split_whitespace().collect();
    assert_eq!(first, ["scenario", "controller", "figure", "reference", "goal", "measured", "verdict"]);
}

#[test]
fn a_check_against_a_list_fails_only_for_what_the_list_does_not_have() {
    let dir = TestDir::new("lab-expected");
    let file = |name: &str| dir.path().join(name).to_str().expect("a path").to_owned();
    let (path, list) = (file("small.toml"), file("expected.toml"));
    fs::write(&path, SMALL).expect("a file");
    let check = |arguments: &[&str]| {
        let all: Vec<&str> =
            ["lab", "check", path.as_str()].into_iter().chain(arguments.iter().copied()).collect();
        finish(fulmar(&all))
    };
    check(&["--seeds", "3", "--write-expected", &list]).succeeded();
    let text = fs::read_to_string(&list).expect("a list");
    assert!(text.contains("seeds = 3") && text.contains("small.toml cubic packets_sent\""), "{text}");
    check(&["--expected", &list]).succeeded();
    check(&["--seeds", "3", "--small-bytes", "5000", "--write-expected", &list]).succeeded();
    let of_large = fs::read_to_string(&list).expect("a list");
    assert!(of_large.contains("seeds = 3") && of_large.contains("small_bytes = 5000"), "{of_large}");
    check(&["--expected", &list]).succeeded();
    fs::write(&list, "seeds = 2\nmissed = []\n").expect("a file");
    let worse = check(&["--expected", &list]).failed(1, &["1 goal was missed"]).stdout();
    assert!(worse.contains("cubic packets_sent: missed, and was met"), "{worse}");
    // The one that is listed is met, and the other one is not listed.
    fs::write(&list, text.replace("packets_sent", "completion_s")).expect("a file");
    let other = check(&["--expected", &list, "--json"]).failed(1, &["1 goal was missed"]).objects();
    assert_eq!(other[2]["newly_met"].as_array().map(Vec::len), Some(1), "{other:?}");
}

#[test]
fn a_campaign_goes_on_where_it_was_interrupted_and_can_be_split() {
    let dir = TestDir::new("lab-grid");
    let file = |name: &str| dir.path().join(name).to_str().expect("a path").to_owned();
    let campaign = file("campaign.toml");
    let text = "scenario = \"deep-space/long-rtt\"\nseeds = 2\n[set]\n\"link.delay_ms\" = [10, 20]\n";
    fs::write(&campaign, text).expect("a file");
    let grid = |out: &str, shard: &str| {
        let told = finish(fulmar(&["lab", "grid", &campaign, "-o", out, "--shard", shard])).stderr();
        let expected = match out.contains("cut") {
            true => "fulmar: 1 of 4 results were in the file already\n",
            false => "",
        };
        assert_eq!(told, expected);
        let text = fs::read_to_string(out).expect("results");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let whole = grid(&file("whole.jsonl"), "1/1");
    assert_eq!(whole.len(), 4);
    fs::write(file("cut.jsonl"), format!("{}\n{}", whole[0], &whole[1][..40])).expect("a file");
    assert_eq!(grid(&file("cut.jsonl"), "1/1"), whole);
    let mut parts = grid(&file("part1.jsonl"), "1/2");
    parts.extend(grid(&file("part2.jsonl"), "2/2"));
    parts.sort();
    assert_eq!(parts, whole);
    let csv = grid(&file("whole.csv"), "1/1");
    assert_eq!(csv.len(), 5);
}

#[test]
fn a_campaign_writes_its_runs_in_the_order_of_its_settings() {
    let dir = TestDir::new("lab-grid-order");
    let campaign = dir.path().join("campaign.toml");
    // The first takes much longer to simulate than all others.
    let text = "scenario = \"satellite/basic\"\nseeds = 1\n[set]\n\"connection.0.download_bytes\" = [30000000, 1000, 2000, 3000]\n";
    fs::write(&campaign, text).expect("a file");
    let lines = finish(fulmar(&["lab", "grid", campaign.to_str().expect("a path")])).succeeded().objects();
    let bytes = lines.iter().map(|line| line["settings"]["connection.0.download_bytes"].as_u64());
    assert_eq!(bytes.collect::<Vec<_>>(), [30_000_000, 1000, 2000, 3000].map(Some));
}

#[test]
fn a_campaign_as_csv_has_a_column_for_each_setting() {
    let dir = TestDir::new("lab-csv");
    let campaign = dir.path().join("campaign.toml");
    let text = "scenario = \"deep-space/long-rtt\"\nseeds = 1\n[set]\n\"link.delay_ms\" = [10, 20]\n";
    fs::write(&campaign, text).expect("a file");
    let campaign = campaign.to_str().expect("a path");
    let table = finish(fulmar(&["lab", "grid", campaign, "--format", "csv"])).succeeded().stdout();
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    assert_eq!(header[..2], ["id", "link.delay_ms"]);
    let hash = header.iter().position(|name| *name == "trace_sha256").expect("a column");
    let hashes: Vec<&str> = lines.map(|line| line.split(',').nth(hash).expect("a field")).collect();
    assert!(hashes.len() == 2 && hashes[0] != hashes[1] && hashes[0].len() == 64, "{hashes:?}");
}
