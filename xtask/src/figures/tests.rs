use serde_json::json;

use super::*;

const DOCUMENT: &str = "Before
<!-- figures
| a | {completion_s: x/y --runs 3} s, {max client.packets_lost: x/y --runs 3}, {client.packets_sent / server.packets_sent: x/y --runs 3} |
-->
| a | old |
<!-- end of figures -->
After
";

fn three_runs(arguments: &str) -> Result<Vec<Value>> {
    assert_eq!(arguments, "x/y --runs 3");
    let run = |time: f64, lost: u64| json!({"completion_s": time, "client": {"packets_lost": lost, "packets_sent": 300}, "server": {"packets_sent": 40}});
    Ok(vec![run(3.0, 0), run(1.0, 1_234), run(2.0, 5)])
}

#[test]
fn a_table_is_made_of_its_template() {
    let new = renewed(DOCUMENT, &mut three_runs).unwrap();
    assert_eq!(new, DOCUMENT.replace("old", "2.00 s, 1,234, 7.50"));
    assert_eq!(renewed(&new, &mut three_runs).unwrap(), new);
}

#[test]
fn what_cannot_be_computed_is_told() {
    for (from, to, expected) in [
        ("completion_s", "completion", "no run has `completion: x/y --runs 3`"),
        ("{completion_s: x/y --runs 3}", "{completion_s}", "`completion_s` names no run"),
        ("<!-- end", "<!--", "the figures of a template have no end"),
    ] {
        let error = renewed(&DOCUMENT.replace(from, to), &mut three_runs).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn figures_have_the_digits_of_their_kind() {
    let cases = [
        ("completion_s", 13_200.4, "13,200"),
        ("completion_s", 148.93, "148.9"),
        ("down.ack_share", 0.0282, "2.8 %"),
        ("server.ack_bytes", 511_400.0, "511 kB"),
        ("client.packets_sent", 75_453.0, "75,453"),
    ];
    for (path, value, expected) in cases {
        assert_eq!(written(path, value), expected, "{path}");
    }
}
