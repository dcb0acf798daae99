use std::sync::Once;

use fulmar_proto::Instant;
use fulmar_proto::congestion::{AckEvent, CongestionEvent, Controller, Sent};

use super::*;
use crate::scenario::{Grid, Scenario};

/// A window that nothing changes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fixed {
    window: u64,
}

impl Default for Fixed {
    fn default() -> Self {
        Self { window: 50_000 }
    }
}

impl ControllerFactory for Fixed {
    fn build(&self, _now: Instant, _max_datagram_size: u16) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _now: Instant, _sent: &Sent) {}
    fn on_ack(&mut self, _now: Instant, _ack: &AckEvent<'_>) {}
    fn on_congestion(&mut self, _now: Instant, _event: &CongestionEvent) {}
    fn on_mtu(&mut self, _max_datagram_size: u16) {}
    fn window(&self) -> u64 {
        self.window
    }
    fn state(&self) -> &'static str {
        "steady"
    }
    fn name(&self) -> &'static str {
        "fixed"
    }
}

const FIXED: OwnController = OwnController {
    name: "fixed",
    about: "a window that nothing changes",
    configure: |parameters| Ok(Arc::new(parameters.read::<Fixed>()?)),
};

const SCENARIO: &str = r#"title = "A download"
[link]
rate_mbps = 100
delay_ms = 50
[[connection]]
download_bytes = 2_000_000
"#;

fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| FIXED.register().unwrap());
}

#[test]
fn a_controller_of_ones_own_runs_by_its_name_with_its_parameters() {
    registered();
    let own = "fixed".parse::<ControllerName>().unwrap();
    assert!(ControllerName::all().contains(&own));
    let figures = |parameters: &str| {
        let scenario = Scenario::parse("s", &format!("{SCENARIO}{parameters}")).unwrap();
        scenario.run(Some(own), 1).unwrap()
    };
    let (small, large) = (figures(""), figures("[controllers.fixed]\nwindow = 200_000\n"));
    assert_eq!(
        (small.controller.as_str(), small.server.cwnd_max, large.server.cwnd_max),
        ("fixed", 50_000, 200_000)
    );
    // A window in each round trip of 100 ms.
    let (slow, fast) = (small.completion_s.unwrap(), large.completion_s.unwrap());
    assert!((4.2..5.0).contains(&slow) && (1.0..1.6).contains(&fast), "{slow} {fast}");
}

#[test]
fn a_controller_of_ones_own_may_stand_wherever_a_name_may() {
    registered();
    let head = format!("controller = \"fixed\"\n{SCENARIO}");
    let scenario = Scenario::parse(
        "s",
        &format!("{head}controller = \"cubic\"\n[[goal]]\ncontroller = \"fixed\"\ngoal = 9\n"),
    );
    assert_eq!(scenario.unwrap().default_controller(), Some(ControllerName::Own("fixed")));
    let grid = Grid::parse("g", "scenario = \"s\"\ncontrollers = [\"fixed\", \"bbr\"]\nseeds = 2\n").unwrap();
    assert_eq!(grid.points()[0].id(), "controller=fixed seed=1");
}

#[test]
fn a_controller_of_ones_own_is_known_as_such_wherever_it_stands() {
    registered();
    let own = ControllerName::Own("fixed");
    let scenario = Scenario::parse("s", SCENARIO).unwrap();
    assert!(scenario.has_own_controller(Some(own)));
    assert!(!scenario.has_own_controller(None) && !scenario.has_own_controller(Some(ControllerName::Cubic)));
    for setting in ["controller=fixed", "connection.0.controller=fixed"] {
        let changed = scenario.with_settings([setting]).unwrap();
        assert!(changed.has_own_controller(None), "{setting}");
    }
}

#[test]
fn parameters_change_a_controller_of_the_stack() {
    let scenario = SCENARIO.replace("2_000_000", "12_000");
    let time = |parameters: &str| {
        let scenario = Scenario::parse("s", &format!("{scenario}{parameters}")).unwrap();
        scenario.run(Some(ControllerName::Newreno), 1).unwrap().completion_s.unwrap()
    };
    let (plain, small) = (time(""), time("[controllers.newreno]\ninitial_window = 3_000\n"));
    // The answer does not go in one round trip of 100 ms any more.
    assert!(small > plain + 0.09, "{plain} {small}");
}

#[test]
fn what_is_no_parameter_or_no_controller_is_refused_with_its_place() {
    registered();
    let complaint =
        |more: &str| Scenario::parse("f.toml", &format!("{SCENARIO}{more}")).unwrap_err().to_string();
    let unknown = complaint("[controllers.cubic]\nwindow = 3\n");
    assert!(unknown.starts_with("f.toml:7: [controllers.cubic]: unknown field `window`"), "{unknown}");
    let own = complaint("[controllers.fixed]\nwindow = -1\n");
    assert!(own.starts_with("f.toml:7: [controllers.fixed]: invalid value"), "{own}");
    let nobody = complaint("[controllers.nobody]\n");
    assert!(nobody.contains("there is no controller `nobody`, only bbr, cubic,"), "{nobody}");
    let error =
        Scenario::parse("s", SCENARIO).unwrap().run(Some(ControllerName::Own("nobody")), 1).unwrap_err();
    assert_eq!(error.to_string(), "s: this program does not have the controller nobody");
}

#[test]
fn a_name_belongs_to_one_controller() {
    registered();
    for (name, expected) in [
        ("fixed", "there is a controller `fixed` already"),
        ("cubic", "there is a controller `cubic` already"),
        ("My own", "`My own` is no name of a controller: a-z, 0-9 and - are allowed"),
    ] {
        assert_eq!(OwnController { name, ..FIXED }.register().unwrap_err(), expected);
    }
}
