use super::*;

const GRID: &str = r#"
scenario = "congestion/four-in-sequence"
controllers = ["cubic", "newreno"]
seeds = 3
first_seed = 10
[set]
"link.delay_ms" = [5, 50]
"link.rate_mbps" = [1.5]
"#;

#[test]
fn a_campaign_is_every_combination_with_every_seed() {
    let points = Grid::parse("grid", GRID).unwrap().points();
    assert_eq!(points.len(), 2 * 2 * 3);
    let ids: Vec<String> = points.iter().map(Point::id).collect();
    assert_eq!(ids[0], "link.delay_ms=5 link.rate_mbps=1.5 controller=cubic seed=10");
    assert_eq!(ids[11], "link.delay_ms=50 link.rate_mbps=1.5 controller=newreno seed=12");
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), ids.len());
}

#[test]
fn settings_that_belong_together_change_together() {
    let text = "scenario = \"x\"\nseeds = 1\n[set]\n\"link.delay_ms\" = [5, 50]\n\
                [[way]]\na = 1\nb = 2\n[[way]]\na = 3\nb = 4\n";
    let ids: Vec<String> = Grid::parse("grid", text).unwrap().points().iter().map(Point::id).collect();
    let run = |settings: &str| format!("{settings} controller=default seed=1");
    let expected = [
        "a=1 b=2 link.delay_ms=5",
        "a=1 b=2 link.delay_ms=50",
        "a=3 b=4 link.delay_ms=5",
        "a=3 b=4 link.delay_ms=50",
    ];
    assert_eq!(ids, expected.map(run));
}

#[test]
fn a_campaign_without_settings_has_only_seeds() {
    let points = Grid::parse("grid", "scenario = \"x\"\nseeds = 2").unwrap().points();
    assert_eq!(
        points.iter().map(Point::id).collect::<Vec<_>>(),
        ["controller=default seed=1", "controller=default seed=2"]
    );
}

#[test]
fn nonsense_is_refused_with_its_place() {
    for (text, complaint) in [
        ("scenario = \"x\"\nseeds = 0", "grid:2: seeds: at least 1 is needed"),
        (
            "scenario = \"x\"\nseeds = 1\n[set]\n\"link.mtu\" = []",
            "grid:4: [set] \"link.mtu\": a setting needs at least one value",
        ),
        (
            "scenario = \"x\"\nseeds = 4000000000\n[set]\na = [1, 2, 3]",
            "grid: a campaign has at most 10000000 runs",
        ),
        (
            "scenario = \"x\"\nseeds = 1\n[[way]]\na = 1\n[[way]]\nb = 1",
            "grid: each [[way]] needs the settings of the first one, and one has b",
        ),
    ] {
        assert_eq!(Grid::parse("grid", text).unwrap_err().to_string(), complaint);
    }
}
