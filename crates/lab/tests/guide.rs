//! The examples of `docs/lab.md` work.

use fulmar_lab::explore::Space;
use fulmar_lab::scenario::{Grid, Scenario};

const GUIDE: &str = include_str!("../../../docs/lab.md");

/// The TOML files that the guide shows.
fn files() -> Vec<&'static str> {
    let blocks = GUIDE.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().expect("a block ends")).collect()
}

#[test]
fn the_scenario_and_the_campaign_of_the_guide_run() {
    let [ship, campaign, _] = files()[..] else {
        panic!("the guide shows a scenario, a campaign and a space")
    };
    let scenario = Scenario::parse("ship.toml", ship).unwrap_or_else(|error| panic!("{error}"));
    let figures = scenario.run(None, 1).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(figures.bytes, 20_000_100);
    assert!(figures.metrics.contains_key("datagrams_in_time"), "{:?}", figures.metrics);
    let points = Grid::parse("campaign.toml", campaign).unwrap_or_else(|error| panic!("{error}")).points();
    assert_eq!(points.len(), 2 * 2 * 3 * 50);
    for point in &points[..50] {
        let assignments = point.assignments();
        scenario
            .with_settings(assignments.iter().map(String::as_str))
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn the_space_of_the_guide_is_the_default() {
    let space = Space::parse("lte.toml", files()[2]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(space, Space::default());
}
