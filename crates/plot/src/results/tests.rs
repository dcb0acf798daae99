use proptest::prelude::*;

use super::*;

const LINE: &str = r#"{"id":"x","settings":{"up.delay_ms":100,"controller":"bbr"},"scenario":"wifi/one","controller":"bbr","seed":3,"completion_s":1.5,"bytes":10,"client":{"packets_lost":2,"rtt_min_ms":null},"trace_sha256":"ab","error":null}"#;

#[test]
fn json_lines_of_a_campaign_are_read() {
    let results = Results::parse(&format!("{LINE}\n\n{LINE}\n")).unwrap();
    assert_eq!(results.rows.len(), 2);
    let row = &results.rows[0];
    assert_eq!((row.scenario.as_str(), row.controller.as_str()), ("wifi/one", "bbr"));
    assert_eq!(row.settings[1], ("up.delay_ms".to_owned(), "100".to_owned()));
    let figures: Vec<_> = row.figures.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    assert_eq!(figures, [("bytes", 10.0), ("client.packets_lost", 2.0), ("completion_s", 1.5)]);
}

#[test]
fn a_setting_that_is_a_number_has_one_form() {
    for (written, same) in [
        ("20", "20"),
        ("20.0", "20"),
        ("2e1", "20"),
        ("1_000", "1000"),
        ("-0.50", "-0.5"),
        ("off", "off"),
        ("inf", "inf"),
    ] {
        let text = format!(r#"{{"scenario":"x","settings":{{"a":"{written}"}}}}"#);
        assert_eq!(Results::parse(&text).unwrap().rows[0].settings, [("a".to_owned(), same.to_owned())]);
    }
    let csv = Results::parse("id,a,scenario,seed\nx,20.0,s,7\n").unwrap();
    assert_eq!((csv.rows[0].settings[0].1.as_str(), csv.rows[0].seed), ("20", Some(7)));
}

#[test]
fn figures_of_paths_are_told_apart_by_their_names_and_those_of_hops_by_their_numbers() {
    let text = r#"{"scenario":"x","paths":[{"name":"A","up":{"packets_sent":1,"load":null},"down":{"packets_sent":2}},
        {"name":"B","down":{"packets_sent":3}}, 5],"hops":[{"up":{}},{"down":{"packets_sent":4}}]}"#;
    let row = &Results::parse(&text.replace('\n', "")).unwrap().rows[0];
    let figures: Vec<_> = row.figures.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    let [up, down, other] =
        ["paths.A.up.packets_sent", "paths.A.down.packets_sent", "paths.B.down.packets_sent"];
    assert_eq!(figures, [("hops.2.down.packets_sent", 4.0), (down, 2.0), (up, 1.0), (other, 3.0)]);
}

#[test]
fn csv_of_a_campaign_is_read_as_the_json_is() {
    let text = "id,controller,up.delay_ms,scenario,controller,seed,completion_s,scenario_sha256,version,trace_sha256,error\r\n\
                \"a, \"\"b\"\"\",bbr,100,wifi/one,bbr,3,1.5,5e1f,0.1.0,ab,\r\n";
    let row = &Results::parse(text).unwrap().rows[0];
    assert_eq!(row.settings, [("up.delay_ms".to_owned(), "100".to_owned())]);
    assert_eq!((row.controller.as_str(), row.figures["completion_s"], row.figures.len()), ("bbr", 1.5, 1));
}

#[test]
fn tables_that_were_put_together_are_one() {
    let head = "id,scenario,controller,seed,completion_s\n";
    let results = Results::parse(&format!("{head}a,x,bbr,1,1.5\n{head}b,x,bbr,2,2.5\n{head}")).unwrap();
    let times: Vec<f64> = results.rows.iter().map(|row| row.figures["completion_s"]).collect();
    assert_eq!(times, [1.5, 2.5]);
    let other = format!("{head}a,x,bbr,1,1.5\nid,scenario,controller,seed,bytes\n");
    let told = Results::parse(&other).unwrap_err().to_string();
    assert!(told.starts_with("line 3: `bytes` in the column completion_s is no number"), "{told}");
}

#[test]
fn a_run_that_failed_counts_without_figures() {
    let row = &Results::parse(r#"{"id":"x","settings":{},"error":"hangs"}"#).unwrap().rows[0];
    assert_eq!(row.error.as_deref(), Some("hangs"));
    assert!(row.figures.is_empty());
}

#[test]
fn mistakes_are_told_with_their_line() {
    let told = |text: &str| Results::parse(text).unwrap_err().to_string();
    assert_eq!(told(""), "line 1: there are no results");
    assert!(told(&format!("{LINE}\n{{\"scenario\":")).starts_with("line 2: this is not one JSON object"));
    assert_eq!(told(&format!("{LINE}\n{{}}")), "line 2: a result needs the name of its `scenario`");
    assert_eq!(told("[1]"), "line 1: this is JSON, but not an object");
    assert!(told("a,b\n1,2\n").starts_with("line 1: a header with the column `scenario`"));
    let head = "scenario,completion_s\n";
    assert_eq!(told(&format!("{head}x,1\ny\n")), "line 3: 1 fields, but the header has 2 columns");
    assert_eq!(told(&format!("{head}x,fast\n")), "line 2: `fast` in the column completion_s is no number");
    assert_eq!(told(&format!("{head}\"x,1\n")), "line 2: a quoted field has no end");
}

proptest! {
    #[test]
    fn whatever_a_file_holds_it_is_read_or_refused(text in ".{0,200}", head in prop::bool::ANY) {
        let text = if head { format!("scenario,bytes\n{text}") } else { text };
        let _ = Results::parse(&text);
    }
}
