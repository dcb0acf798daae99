use crate::scenario::Scenario;
use crate::scenario::tests::complaint;

const SCENARIO: &str = r#"title = "Two links"
[[path]]
name = "A"
link = { rate_mbps = 10, delay_ms = 10, queue_ms = 40 }
[[path]]
name = "B"
link = { rate_mbps = 2, delay_ms = 50, queue_ms = 200 }
[[path.schedule]]
at_s = 1
set = { loss = "everything" }
[[connection]]
download_bytes = 100_000
"#;

#[test]
fn paths_that_make_no_sense_are_refused() {
    let changed = |from: &str, to: &str| SCENARIO.replace(from, to);
    for (text, expected) in [
        (changed("\"B\"", "\"A\""), "file.toml:5: [[path]]: another path is called A, too"),
        (changed("name = \"A\"", ""), "file.toml:2: [[path]]: a path needs a `name`"),
        (changed("rate_mbps = 2,", "rate = 2,"), "file.toml:7: [[path]] link: unknown field `rate`"),
        (
            changed("name = \"B\"", "name = \"B\"\nclient = \"10.0.0.1\""),
            "file.toml:5: [[path]]: 10.0.0.1 is the address of another end",
        ),
        (
            changed("name = \"B\"", "name = \"B\"\nclient = \"10.0.0.2\""),
            "file.toml:5: [[path]]: 10.0.0.2 is the address of another end",
        ),
        (
            changed("name = \"B\"", "name = \"B\"\nserver = \"10.0.0.1\""),
            "file.toml:5: [[path]]: 10.0.0.1 is an address of the client",
        ),
        (
            changed("name = \"B\"", "name = \"B\"\nclient = \"::1\""),
            "file.toml:5: [[path]]: ::1 cannot reach 10.0.0.2",
        ),
        (
            changed("set = { loss = \"everything\" }", ""),
            "file.toml:8: [[path.schedule]]: an entry needs `suspend`, or `set`",
        ),
        (
            format!("{SCENARIO}[link]\ndelay_ms = 1\n"),
            "file.toml: a scenario has a `[link]`, or a `[[path]]`",
        ),
        (format!("{SCENARIO}[nat]\nkind = \"symmetric\"\n"), "file.toml: `[nat]` and `[[shift]]` are about"),
        (format!("only = \"C\"\n{SCENARIO}"), "file.toml: `only` is one of A, B, not C"),
        (
            "title = 'x'\nonly = 'A'\n[[connection]]\nupload_bytes = 1\n".to_owned(),
            "file.toml: `only` names a `[[path]]`, and there is none",
        ),
    ] {
        let complaint = complaint(&text);
        assert!(complaint.starts_with(expected), "{complaint}\ninstead of {expected}");
    }
}

#[test]
fn a_path_is_set_by_its_number_or_its_name() {
    let scenario = Scenario::parse("s", SCENARIO).unwrap();
    let changed = scenario.with_settings(["path.0.link.rate_mbps=4", "path.B.link.delay_ms=7"]).unwrap();
    let [a, b] = changed.lab_paths(1).try_into().unwrap();
    assert_eq!((a.up.rate_bps, a.up.delay.as_millis()), (Some(4_000_000), 10));
    assert_eq!((b.down.rate_bps, b.down.delay.as_millis()), (Some(2_000_000), 7));
    let error = scenario.with_settings(["path.C.link.delay_ms=7"]).unwrap_err().to_string();
    assert!(error.ends_with("`path` has 2 entries, counted from 0"), "{error}");
}

#[test]
fn a_path_alone_is_as_fast_as_the_same_link() {
    let seconds = |scenario: &Scenario| scenario.run(None, 1).unwrap().completion_s.unwrap();
    let scenario = Scenario::parse("s", SCENARIO).unwrap();
    let link = r#"title = "One link"
        [[connection]]
        download_bytes = 100_000
        [link]"#;
    for (name, settings) in [
        ("A", "rate_mbps = 10\ndelay_ms = 10\nqueue_ms = 40"),
        ("B", "rate_mbps = 2\ndelay_ms = 50\nqueue_ms = 200"),
    ] {
        let one = Scenario::parse("link", &format!("{link}\n{settings}\n")).unwrap();
        assert_eq!(seconds(&scenario.with_only(name).unwrap()), seconds(&one), "{name}");
    }
}

#[test]
fn hops_are_what_the_paths_have_in_common() {
    let seconds = |text: &str| {
        let scenario = Scenario::parse("s", text).unwrap().with_only("B").unwrap();
        scenario.with_settings(["path.B.schedule=[]"]).unwrap().run(None, 1).unwrap().completion_s.unwrap()
    };
    let hop = "[[hop]]\nlink = { rate_mbps = 1, delay_ms = 5 }\n";
    let (alone, behind) = (seconds(SCENARIO), seconds(&format!("{SCENARIO}{hop}{hop}")));
    // Half the rate, and 20 ms more in each of at least three round trips.
    assert!(behind > alone + 0.3, "{alone} and {behind}");
}

#[test]
fn packets_take_the_link_of_their_address_and_the_answers_go_the_same_way() {
    let text = SCENARIO.replace("download_bytes", "path = \"A\"\ndownload_bytes")
        + "[[connection]]\npath = \"B\"\ndownload_bytes = 100_000\nstreams = 3\n";
    let settings = ["path.B.schedule=[]", "endpoints.multipath=false"];
    let scenario = Scenario::parse("s", &text).unwrap().with_settings(settings).unwrap();
    let figures = scenario.run(None, 1).unwrap();
    let names: Vec<&str> = figures.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
    let [a, b] = [0, 1].map(|path: usize| figures.paths[path].down.bytes_sent);
    // Headers, acknowledgements and handshakes come to a tenth at most, and a probe may be repeated.
    assert!((100_000..115_000).contains(&a) && (300_000..330_000).contains(&b), "{a} and {b}");
    assert_eq!(figures.down.bytes_sent, a + b);
    assert!(figures.paths[1].down.utilisation.unwrap() > 0.5, "the slow path is the bottleneck");
    let ups: u64 = figures.paths.iter().map(|path| path.up.packets_sent).sum();
    assert_eq!(figures.up.packets_sent, ups);
}

#[test]
fn a_server_may_have_an_address_for_each_path() {
    let text = SCENARIO.replace("name = \"B\"", "name = \"B\"\nclient = \"10.9.0.1\"\nserver = \"10.9.0.2\"");
    let scenario = Scenario::parse("s", &text).unwrap();
    let settings = ["connection.0.path=B", "path.B.schedule=[]", "endpoints.multipath=false"];
    let scenario = scenario.with_settings(settings).unwrap();
    let figures = scenario.run(None, 1).unwrap();
    assert_eq!((figures.bytes, figures.paths[0].up.packets_sent), (100_100, 0));
}

#[test]
fn a_connection_begins_on_a_path_that_there_is() {
    let text = SCENARIO.replace("download_bytes", "path = \"C\"\ndownload_bytes");
    assert_eq!(complaint(&text), "file.toml:11: [[connection]]: there is no path C");
}
