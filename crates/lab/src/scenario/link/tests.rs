use super::*;
use crate::scenario::{ControllerName, Scenario};

#[test]
fn a_schedule_that_sets_one_bound_of_the_queue_keeps_the_other() {
    let head = "title = \"x\"\n[link]\nrate_mbps = 50\ndelay_ms = 20\nqueue_bytes = 30_000\n[[connection]]\nupload_bytes = 5_000_000\n";
    let longer = "[[schedule]]\nat_s = 0\nset = { queue_ms = 500 }\n";
    let scenario = Scenario::parse("s", &format!("{head}{longer}")).unwrap();
    let figures = scenario.run(Some(ControllerName::Cubic), 1).unwrap();
    assert!((20_000..=30_000).contains(&figures.up.queue_bytes_max), "{:?}", figures.up);
}

#[test]
fn changes_of_the_queue_count_in_the_order_of_their_times() {
    let head = "title = \"x\"\n[link]\nqueue_ms = 5\n[[connection]]\nupload_bytes = 1\n";
    let entry = |at_s: u32, set: &str| format!("[[schedule]]\nat_s = {at_s}\nset = {{ {set} }}\n");
    let entries =
        [entry(3, "queue_ms = 7"), entry(1, "queue_bytes = 9"), entry(2, "queue_bytes = 8, queue_ms = 6")];
    let (up, down) = Scenario::parse("s", &format!("{head}{}", entries.concat())).unwrap().link().build(1);
    assert_eq!(up.schedule, down.schedule);
    let of = |scheduled: &Scheduled| match &scheduled.change {
        Change::Queue(limit) => (limit.bytes, limit.time.map(|time| time.as_millis())),
        other => panic!("{other:?}"),
    };
    let limits: Vec<_> = up.schedule.iter().map(of).collect();
    assert_eq!(limits, [(Some(9), Some(5)), (Some(8), Some(6)), (Some(8), Some(7))]);
}

#[test]
fn a_wifi_of_which_each_packet_stops_is_the_worst() {
    let link = |mean_ms: f64| {
        let jitter = format!("jitter = {{ wifi = {{ mean_ms = {mean_ms} }} }}");
        Scenario::parse("s", &format!("title = \"x\"\n[link]\n{jitter}\n[[connection]]\nupload_bytes = 1\n"))
    };
    assert!(link(85.0).is_ok());
    let told = link(200.0).unwrap_err().to_string();
    assert!(told.contains("the jitter of a Wi-Fi has a mean of 85 ms at most, not 200"), "{told}");
}
