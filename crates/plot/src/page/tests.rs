use fulmar_base::Instant;
use serde_json::Value;

use super::*;
use crate::timeline::SentFrameInfo;

fn page(title: &str) -> Page {
    let mut lane = Lane { name: "client".to_owned(), ..Lane::default() };
    for number in 0..100u64 {
        let at = Instant::from_millis(10 * number);
        let frame = SentFrameInfo::Stream { id: 0, offset: number * 1_000, len: 1_000 };
        lane.timeline.packet_sent(at, ((2, 0), number), 1_040, true, &[frame]);
        lane.timeline.window(at, 12_000 + number);
        lane.timeline.rtt(at, 20_000_000);
        lane.timeline.phase(at, if number < 50 { "slow start" } else { "steady </script> <!--" });
    }
    let facts = vec![("completion".to_owned(), "1 s".to_owned())];
    let event =
        Event { start: Instant::from_millis(200), end: Instant::from_millis(450), what: "a stop".to_owned() };
    let run = Run {
        name: title.to_owned(),
        facts,
        lanes: vec![lane],
        events: vec![event],
        scenario: "title = \"x\"".to_owned(),
        settings: vec!["link.delay_ms=3".to_owned()],
    };
    Page { title: title.to_owned(), subtitle: String::new(), runs: vec![run] }
}

fn data(html: &str) -> Value {
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + html[start..].find("</script>").unwrap();
    serde_json::from_str(&html[start..end]).unwrap()
}

#[test]
fn a_page_needs_nothing_from_elsewhere() {
    let html = page("a run").html();
    for reference in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!html.contains(reference), "{reference}");
    }
    assert!(html.contains("default-src 'none'"), "and the browser sees to it");
    assert!(html.contains("MIT License"), "the library comes with its licence");
}

#[test]
fn the_data_are_json_with_differences() {
    let data = data(&page("a run").html());
    let lane = &data["runs"][0]["lanes"][0];
    assert_eq!(lane["bytes"], 100_000);
    let sent = lane["series"].as_array().unwrap().iter().find(|series| series["key"] == "sent").unwrap();
    assert_eq!(sent["t"][1], 10_000);
    assert_eq!(sent["v"], Value::from(vec![1_000; 100]));
    assert_eq!(lane["phases"][1][0], 500_000);
    let run = &data["runs"][0];
    assert_eq!(run["events"], serde_json::json!([[200_000, 450_000, "a stop"]]));
    assert_eq!(
        (run["scenario"].as_str(), run["settings"][0].as_str()),
        (Some("title = \"x\""), Some("link.delay_ms=3"))
    );
}

#[test]
fn no_text_ends_the_script_that_it_stands_in() {
    let name = "</script><script>alert(1)</script>";
    let html = page(name).html();
    assert!(!html.contains("alert(1)</script>"));
    assert!(html.contains("<title>&lt;/script&gt;"));
    assert_eq!(data(&html)["runs"][0]["name"], name);
}

#[test]
fn long_runs_make_no_large_pages() {
    let mut long = page("a long run");
    for number in 100..300_000u64 {
        let at = Instant::from_micros(10_000 * number);
        let lane = &mut long.runs[0].lanes[0].timeline;
        lane.window(at, number * 7 % 100_000);
        lane.rtt(at, number * 31 % 1_000_000_000);
        lane.pacing_rate(at, number * 17 % 1_000_000);
    }
    let html = long.html();
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
    let data = data(&html);
    let series = data["runs"][0]["lanes"][0]["series"].as_array().unwrap();
    let window = series.iter().find(|series| series["key"] == "window").unwrap();
    let mut value = 0;
    let mut largest = 0;
    for difference in window["v"].as_array().unwrap() {
        value += difference.as_i64().unwrap();
        largest = largest.max(value);
    }
    assert_eq!(largest, 99_999, "the peak is still there");
}
