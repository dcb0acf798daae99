use super::*;

const SCENARIO: &str = r#"
title = "A small download"
runs = 2
[link]
rate_mbps = 10
delay_ms = 10
[[connection]]
download_bytes = 20_000
[[goal]]
controller = "cubic"
reference = 1.0
goal = 0.5
[[goal]]
controller = "cubic"
goal = 0.01
[[goal]]
controller = "newreno"
metric = "completion_ratio"
goal = 0.9
[baseline]
"link.delay_ms" = 20
"#;

fn rows(only: Option<ControllerName>) -> Vec<Row> {
    let scenario = Scenario::parse("small", SCENARIO).unwrap();
    let check = Check::new(vec![scenario], only, Seeds::Own).unwrap();
    let results: Vec<_> = check.tasks().iter().map(|task| check.run(*task)).collect();
    check.rows(&results)
}

#[test]
fn each_goal_gets_a_row_with_its_verdict() {
    let rows = rows(None);
    let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::Met, Verdict::Missed, Verdict::Met], "{rows:#?}");
    // Handshake, request and answer take two round trips; the baseline's are twice as long.
    let ratio = rows[2].measured.unwrap();
    assert!((0.4..0.8).contains(&ratio), "{ratio}");
}

#[test]
fn a_check_of_one_controller_leaves_the_others_out() {
    let rows = rows(Some(ControllerName::Newreno));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].controller, ControllerName::Newreno);
}

#[test]
fn a_run_that_fails_misses_its_goal_and_says_why() {
    let text = SCENARIO.replace("[link]", "[link]\nloss = \"everything\"");
    let scenario = Scenario::parse("dead", &text).unwrap();
    let check = Check::new(vec![scenario], Some(ControllerName::Cubic), Seeds::Own).unwrap();
    let results: Vec<_> = check.tasks().iter().map(|task| check.run(*task)).collect();
    let rows = check.rows(&results);
    assert_eq!((rows[0].measured, rows[0].verdict), (None, Verdict::Missed));
    assert!(
        rows[0].note.as_ref().unwrap().starts_with("2 runs failed, the first: dead with cubic, seed 1"),
        "{rows:?}"
    );
}

#[test]
fn whatever_hangs_is_later_than_whatever_does_not() {
    let with = |baseline: &str, loss: &str| {
        let text = SCENARIO.replace("[baseline]", &format!("[baseline]\n{baseline}")).replace("[link]", loss);
        let check =
            Check::new(vec![Scenario::parse("s", &text).unwrap()], Some(ControllerName::Newreno), Seeds::Own)
                .unwrap();
        let results: Vec<_> = check.tasks().iter().map(|task| check.run(*task)).collect();
        check.rows(&results).remove(0)
    };
    // A baseline that never ends gives no ratio; nor does a scenario that never does.
    let dead = "\"link.loss\" = \"everything\"";
    for row in [with(dead, "[link]"), with("", "[link]\nloss = \"everything\"")] {
        assert_eq!((row.measured, row.verdict), (None, Verdict::Missed));
        assert!(row.note.is_some(), "{row:?}");
    }
}

#[test]
fn the_number_of_seeds_can_be_chosen_for_all_rows_or_for_those_that_move_much() {
    let tasks = |seeds| {
        let scenario = Scenario::parse("small", SCENARIO).unwrap();
        Check::new(vec![scenario], Some(ControllerName::Cubic), seeds).unwrap().tasks().len()
    };
    assert_eq!((tasks(Seeds::Own), tasks(Seeds::All(5))), (2, 5));
    let bytes = Scenario::parse("small", SCENARIO).unwrap().bytes();
    let of_large = |small_bytes| tasks(Seeds::OfLarge { seeds: 5, small_bytes });
    assert_eq!((of_large(bytes - 1), of_large(bytes)), (5, 2));
}

const PATHS: &str = r#"
title = "Two links"
runs = 2
[[path]]
name = "A"
link = { rate_mbps = 10, delay_ms = 10 }
[[path]]
name = "B"
link = { rate_mbps = 5, delay_ms = 10 }
[[connection]]
download_bytes = 500_000
[[goal]]
metric = "sum_share"
goal = 0.1
[[goal]]
metric = "best_share"
goal = 0.9
[[goal]]
metric = "best_and_half_share"
goal = 100
[[goal]]
metric = "best_share"
goal = 0.9
set = { "connection.0.download_bytes" = 100_000 }
"#;

#[test]
fn paths_together_are_compared_with_each_alone() {
    let scenario = Scenario::parse("paths", PATHS).unwrap();
    let check = Check::new(vec![scenario], None, Seeds::Own).unwrap();
    let results: Vec<_> = check.tasks().iter().map(|task| check.run(*task)).collect();
    let rows = check.rows(&results);
    let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
    assert_eq!(verdicts, [Verdict::Met, Verdict::Met, Verdict::Missed, Verdict::Met], "{rows:#?}");
    let [sum, best, half] = [0, 1, 2].map(|row: usize| rows[row].measured.unwrap());
    let (a, b) = (rows[0].alone_mbps["A"], rows[0].alone_mbps["B"]);
    assert!((6.0..10.0).contains(&a) && (3.0..5.0).contains(&b), "{a} and {b}");
    assert!(((sum * (a + b)) / (best * a) - 1.0).abs() < 1e-9, "the same goodput is divided");
    assert!(((half * (a + b / 2.0)) / (best * a) - 1.0).abs() < 1e-9, "the same goodput is divided");
}

#[test]
fn a_goal_may_want_other_settings_which_its_row_tells() {
    let scenario = Scenario::parse("paths", PATHS).unwrap();
    let check = Check::new(vec![scenario], None, Seeds::All(1)).unwrap();
    // The scenario as it is and its two paths, with both sizes.
    assert_eq!(check.tasks().len(), 6);
    let results: Vec<_> = check.tasks().iter().map(|task| check.run(*task)).collect();
    let rows = check.rows(&results);
    assert_eq!(rows[1].scenario, "paths");
    assert_eq!(rows[3].scenario, "paths connection.0.download_bytes=100000");
    assert!(rows[3].alone_mbps["A"] < rows[1].alone_mbps["A"], "a short transfer is slower: {rows:#?}");
}

#[test]
fn goals_about_paths_need_paths() {
    let text = PATHS.replacen("[[path]]\nname = \"B\"\nlink = { rate_mbps = 5, delay_ms = 10 }\n", "", 1);
    let error = Scenario::parse("file.toml", &text).unwrap_err().to_string();
    assert_eq!(error, "file.toml:9: [[goal]]: a sum_share needs several `[[path]]`s to compare with");
    let text =
        PATHS.replace("\"connection.0.download_bytes\" = 100_000", "\"connection.1.download_bytes\" = 1");
    let error = Scenario::parse("file.toml", &text).unwrap_err().to_string();
    assert!(error.contains("`connection` has 1 entries"), "{error}");
}
