use super::*;

fn sweep(from: f64, to: f64) -> Result<Sweep, ScenarioError> {
    let link = Scenario::parse("sweep", &LINK.replace("10_000_000", "30_000")).unwrap();
    Sweep::new("mine", &link, RTT, (from, to), 1.05)
}

/// A curve whose times are those of `time` at each value and seed.
fn curve(time: impl Fn(f64, u64) -> Option<f64>) -> (Curve, usize) {
    let mut curve = sweep(10.0, 100.0).unwrap().curve(ControllerName::Bbr);
    let mut runs = 0;
    loop {
        let tasks = curve.next_tasks(3);
        if tasks.is_empty() {
            return (curve, runs);
        }
        runs += tasks.len();
        let times: Vec<_> = tasks.iter().map(|task| time(curve.points[task.point].x, task.seed)).collect();
        curve.add(&tasks, &times);
    }
}

#[test]
fn of_an_even_number_of_times_the_median_is_the_mean_of_the_two_in_the_middle() {
    let time = |times: &[Option<f64>]| {
        let mut curve = sweep(10.0, 10.0).unwrap().curve(ControllerName::Bbr);
        curve.add(&curve.next_tasks(times.len() as u32), times);
        curve.points[0].completion_s
    };
    assert_eq!(time(&[Some(3.0), Some(1.0)]), Some(2.0));
    assert_eq!(time(&[Some(9.0), Some(1.0), Some(3.0), Some(2.0)]), Some(2.5));
    assert_eq!(time(&[Some(9.0), Some(1.0), Some(3.0)]), Some(3.0));
    assert_eq!(time(&[Some(1.0), None]), None);
}

#[test]
fn a_threshold_is_a_step_and_a_slope_is_none() {
    let (smooth, runs) = curve(|x, _| Some(x));
    assert_eq!((smooth.steps.len(), runs), (0, 3 * smooth.points.len()));
    let (with_cliff, _) = curve(|x, _| Some(if x < 50.0 { 4.0 } else { 1.0 }));
    let [step] = with_cliff.steps[..] else { panic!("{:?}", with_cliff.steps) };
    assert!(with_cliff.points[step].x < 50.0 && with_cliff.points[step + 1].x >= 50.0);
    assert_eq!(with_cliff.points[step].seeds, SEEDS_SURE as usize);
    assert_eq!((with_cliff.largest_step, with_cliff.row().verdict), (Some(3.0), Verdict::Missed));
}

#[test]
fn chance_is_no_step() {
    // Of the first three seeds of one point most are slow, of all of them few.
    let (lucky, runs) = curve(|x, seed| Some(if (50.0..52.0).contains(&x) && seed <= 2 { 2.0 } else { 1.0 }));
    assert_eq!(lucky.row().verdict, Verdict::Met, "{:?}", lucky.steps);
    // The same with a difference that is not large, and of the first fifteen.
    let (doubtful, _) =
        curve(|x, seed| Some(if (50.0..52.0).contains(&x) && seed <= 10 { 1.2 } else { 1.0 }));
    assert_eq!(doubtful.row().verdict, Verdict::Met, "{:?}", doubtful.steps);
    assert!(runs > 3 * lucky.points.len());
    assert_eq!(lucky.row().verdict, Verdict::Met, "{:?}", lucky.steps);
}

#[test]
fn where_runs_begin_to_go_wrong_is_a_step() {
    let (broken, _) = curve(|x, _| (x < 50.0).then_some(1.0));
    assert_eq!((broken.steps.len(), broken.largest_step), (1, None));
}

#[test]
fn settings_follow_the_value() {
    let filled = |setting, x| filled(setting, x, |value| value);
    assert_eq!(filled("link.delay_ms={x*0.5}", 30.0).unwrap(), "link.delay_ms=15");
    assert_eq!(filled("a={ b = {x}, c = {x*2} }", 3.0).unwrap(), "a={ b = 3, c = 6 }");
    assert!(filled("a={xy}", 3.0).is_err() && filled("a={x", 3.0).is_err());
    let sweep = sweep(20.0, 40.0).unwrap();
    let time = |point| {
        let task = SweepTask { point, seed: 1 };
        sweep.run(ControllerName::Cubic, task).unwrap().unwrap()
    };
    assert!(time(14) > 1.5 * time(0), "{} {}", time(0), time(14));
}

#[test]
fn a_sweep_needs_a_setting_with_the_value() {
    let link = Scenario::parse("sweep", LINK).unwrap();
    let error = Sweep::new("mine", &link, ["link.delay_ms=5"], (1.0, 2.0), 1.05).unwrap_err();
    assert!(error.to_string().starts_with("mine: no setting has an `{x}`"), "{error}");
}

#[test]
fn the_value_is_a_whole_number_where_no_other_makes_sense() {
    let link = Scenario::parse("sweep", LINK).unwrap();
    let datagrams =
        "connection.0.datagrams={ from = \"client\", count = {x}, bytes = 100, interval_ms = {x*0.1} }";
    for (setting, at_10_5) in
        [("connection.0.streams={x}", "connection.0.streams=11"), ("link.delay_ms={x}", "link.delay_ms=10.5")]
    {
        assert_eq!(fitting(&link, setting, 10.5).unwrap(), at_10_5);
    }
    assert_eq!(Sweep::new("mine", &link, [datagrams], (10.0, 12.0), 1.05).unwrap().points.len(), 4);
    let wrong = Sweep::new("mine", &link, ["link.delay_ms=-{x}.5"], (10.0, 12.0), 1.05);
    assert!(wrong.is_err());
}

#[test]
fn a_sweep_without_any_time_meets_nothing() {
    let (curve, _) = curve(|_, _| None);
    assert!(curve.is_without_times() && curve.largest_step.is_none());
    let row = curve.row();
    assert_eq!((row.verdict, row.note.as_deref()), (Verdict::Missed, Some("no run came to its end")));
}

#[test]
fn a_range_that_makes_no_sense_is_refused() {
    for (from, to) in [(0.0, 1.0), (2.0, 1.0), (1.0, f64::INFINITY), (1e-300, 1e300)] {
        assert!(sweep(from, to).is_err(), "{from} {to}");
    }
}

#[test]
fn the_fixed_sweeps_make_sense() {
    let sweeps = Sweep::fixed().unwrap();
    assert_eq!(sweeps.len(), 5);
    for sweep in sweeps {
        assert!((70..120).contains(&sweep.points.len()), "{}: {}", sweep.name, sweep.points.len());
    }
}

#[test]
fn bursts_lose_the_share_that_their_point_tells() {
    let sweeps = Sweep::fixed().unwrap();
    let bursts = sweeps.iter().find(|sweep| sweep.name() == "sweep/burst-loss").unwrap();
    let (x, scenario) = bursts.points.last().unwrap();
    assert!((0.095..=0.1).contains(x), "{x}");
    let (_, down) = scenario.lab(ControllerName::Bbr, 1).map(|lab| (lab.up, lab.down)).unwrap();
    // Bursts of 1 to 7, and between two of them nine packets for each that is lost.
    let Loss::Burst { probability, length } = down.loss else { panic!("{:?}", down.loss) };
    let lost = f64::from(length.start() + length.end()) / 2.0;
    let between = (1.0 - probability) / probability;
    assert!((lost / (lost + between) / x - 1.0).abs() < 1e-9, "{probability} for {x}");
}
