//! `fulmar lab explore`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use fulmar_lab::explore::{ClassSummary, DrawnLink, Exploration, Outcome, Space, summaries};
use fulmar_lab::scenario::ControllerName;
use fulmar_plot::{Parameter, PointGroup, Scatter, ScatterPoint};
use serde::Serialize;

use super::args::LabExploreArgs;
use super::pool;
use super::print::print;
use crate::failure::Failure;
use crate::progress::Bars;
use crate::report::Output;

/// A link with what became of it, as `--json` prints it.
#[derive(Debug, Serialize)]
struct LinkLine<'a> {
    #[serde(flatten)]
    link: &'a DrawnLink,
    /// One for each controller.
    outcomes: &'a [Outcome],
}

/// The last object of `--json`.
#[derive(Debug, Serialize)]
struct SummaryLine<'a> {
    seed: u64,
    links: usize,
    summary: &'a [ClassSummary],
}

pub(super) fn run(args: &LabExploreArgs, output: Output) -> Result<(), Failure> {
    let space = space(args.space.as_deref())?;
    let exploration = Exploration::new(&space, args.seed, args.links, args.controller.clone())
        .with_settings(args.set.clone());
    if let Some(dir) = &args.out {
        fs::create_dir_all(dir).map_err(Failure::io(format!("cannot make {}", dir.display())))?;
    }
    let outcomes = run_all(&exploration, args.jobs, output)?;
    let all = summaries(&exploration, &outcomes);
    tell(args, &exploration, &outcomes, &all, output)?;
    if let Some(dir) = &args.out {
        write_all(dir, args, &exploration, &outcomes, &all)?;
    }
    match outcomes.iter().filter(|outcome| outcome.error.is_some()).count() {
        0 => Ok(()),
        failed => Err(Failure::RunsFailed(failed)),
    }
}

fn space(path: Option<&Path>) -> Result<Space, Failure> {
    let Some(path) = path else { return Ok(Space::default()) };
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(Failure::io(format!("cannot read {name}")))?;
    Ok(Space::parse(&name, &text)?)
}

/// The outcomes of all runs, in their order.
pub(super) fn run_all(
    exploration: &Exploration,
    jobs: Option<usize>,
    output: Output,
) -> Result<Vec<Outcome>, Failure> {
    let bars = Bars::new(output.wants_bars());
    let bar = bars.with_count(exploration.tasks() as u64);
    let mut results: Vec<Option<_>> = (0..exploration.tasks()).map(|_| None).collect();
    pool::for_each_on(
        jobs,
        exploration.tasks(),
        |number| exploration.run(number),
        |number, result| {
            let outcome = result.unwrap_or_else(|panicked| Ok(exploration.panicked(number, &panicked.0)));
            results[number] = Some(outcome);
            bar.inc(1);
            true
        },
    );
    bars.clear();
    let outcomes = results.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
    for (number, outcome) in outcomes.iter().enumerate() {
        if let Some(error) = &outcome.error {
            let (link, controller) = exploration.task(number);
            let _ = writeln!(io::stderr(), "fulmar: link {} with {controller}: {error}", link.number);
        }
    }
    Ok(outcomes)
}

fn tell(
    args: &LabExploreArgs,
    exploration: &Exploration,
    outcomes: &[Outcome],
    all: &[ClassSummary],
    output: Output,
) -> Result<(), Failure> {
    if output.is_json() {
        let per_link = outcomes.chunks(exploration.controllers().len().max(1));
        for (link, outcomes) in exploration.links().iter().zip(per_link) {
            print(output, &LinkLine { link, outcomes }, String::new)?;
        }
    }
    let summary = SummaryLine { seed: args.seed, links: exploration.links().len(), summary: all };
    print(output, &summary, || {
        let mut lines = vec![format!(
            "{} links of seed {}: the time by the ideal (two round trips, and the bytes at the full rate)",
            summary.links, args.seed
        )];
        lines.push(line("controller", "class", &HEAD.map(str::to_owned)));
        lines.extend(
            all.iter().map(|summary| line(summary.controller.as_str(), summary.class, &cells(summary))),
        );
        for &controller in exploration.controllers() {
            lines.push(format!("\nThe worst links with {controller}:"));
            let worst = worst(outcomes, controller, args.worst);
            lines.extend(worst.iter().map(|&number| worst_line(exploration, outcomes, number)));
        }
        lines.join("\n")
    })
}

const HEAD: [&str; 8] = ["links", "median", "90 %", "95 %", "99 %", "worst", "given up", "failed"];

fn cells(summary: &ClassSummary) -> [String; HEAD.len()] {
    let ClassSummary { links, median, p90, p95, p99, worst, given_up, failed, .. } = summary;
    let ratio = |ratio: &Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    let count = |count: &usize| count.to_string();
    [
        count(links),
        ratio(median),
        ratio(p90),
        ratio(p95),
        ratio(p99),
        ratio(worst),
        count(given_up),
        count(failed),
    ]
}

fn line(controller: &str, class: &str, cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>8}")).collect();
    format!("{controller:10}  {class:20}  {}", cells.join("  "))
}

/// The numbers of the runs of a controller with the largest ratios, the worst first.
fn worst(outcomes: &[Outcome], controller: ControllerName, count: usize) -> Vec<usize> {
    let mut own: Vec<usize> =
        (0..outcomes.len()).filter(|&number| outcomes[number].controller == controller).collect();
    own.sort_by(|&a, &b| outcomes[b].ratio_or_infinite().total_cmp(&outcomes[a].ratio_or_infinite()));
    own.truncate(count);
    own
}

fn worst_line(exploration: &Exploration, outcomes: &[Outcome], number: usize) -> String {
    let (link, _) = exploration.task(number);
    format!("  {}  link {}: {}", told(&outcomes[number]), link.number, link.title())
}

/// The ratio of a run in words.
fn told(outcome: &Outcome) -> String {
    match outcome.ratio {
        None => "failed".to_owned(),
        Some(ratio) if outcome.given_up => format!("over {ratio:.0} x (given up)"),
        Some(ratio) => format!("{ratio:.2} x"),
    }
}

/// The page, the objects of all links, and the worst links as scenario files.
fn write_all(
    dir: &Path,
    args: &LabExploreArgs,
    exploration: &Exploration,
    outcomes: &[Outcome],
    all: &[ClassSummary],
) -> Result<(), Failure> {
    let write = |name: &str, text: String| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(Failure::io(format!("cannot write {}", path.display())))
    };
    write("explore.html", page(args, exploration, outcomes, all).html())?;
    let space = args.space.iter().map(|space| format!(" --space {}", space.display()));
    let options: String = space.chain(args.set.iter().map(|setting| format!(" --set '{setting}'"))).collect();
    for &controller in exploration.controllers() {
        for (place, &number) in worst(outcomes, controller, args.worst).iter().enumerate() {
            let (link, _) = exploration.task(number);
            let name = format!("worst-{controller}-{}.toml", place + 1);
            let comment = format!(
                "# {} with {controller} (ideal {:.3} s): link {} of `fulmar lab explore --seed {}{options}`.\n\
                 # Repeat it with `fulmar lab run {name} --controller {controller} --seed {}`.\n",
                told(&outcomes[number]),
                link.ideal_s,
                link.number,
                args.seed,
                link.seed,
            );
            write(&name, comment + exploration.scenario(link)?.text())?;
        }
    }
    Ok(())
}

/// Something that links differ in: its name, whether its axis is logarithmic, and its value.
type LinkParameter = (&'static str, bool, fn(&DrawnLink) -> f64);

const PARAMETERS: [LinkParameter; 9] = [
    ("Rate (Mbit/s)", true, |link| link.rate_mbps),
    ("Round-trip time (ms)", true, |link| link.rtt_ms),
    ("Queue (BDP)", true, |link| link.queue_bdp),
    ("Bytes", true, |link| link.bytes as f64),
    ("Loss (%)", false, |link| link.loss_share * 100.0),
    ("Mean length of bursts (packets)", false, |link| link.burst_packets),
    ("Jitter (ms)", false, |link| link.jitter_ms),
    ("Rate of the way back / rate of the data", true, |link| link.return_rate_mbps / link.rate_mbps),
    ("Product of rate and round-trip time (kB)", true, |link| link.rate_mbps * link.rtt_ms / 8.0),
];

fn page(
    args: &LabExploreArgs,
    exploration: &Exploration,
    outcomes: &[Outcome],
    all: &[ClassSummary],
) -> Scatter {
    let group = |&controller: &ControllerName| {
        let own = outcomes.iter().enumerate().filter(|(_, outcome)| outcome.controller == controller);
        let points = own.filter_map(|(number, outcome)| {
            let (link, _) = exploration.task(number);
            let at = PARAMETERS.iter().map(|(_, _, value)| value(link)).collect();
            Some(ScatterPoint {
                name: format!("link {}: {}", link.number, link.title()),
                value: outcome.ratio?,
                at,
            })
        });
        PointGroup { name: controller.to_string(), points: points.collect() }
    };
    let parameter =
        |&(name, logarithmic, _): &LinkParameter| Parameter { name: name.to_owned(), logarithmic };
    let row = |summary: &ClassSummary| {
        let first = [format!("{}: {}", summary.controller, summary.class)];
        first.into_iter().chain(cells(summary)).collect()
    };
    Scatter {
        title: format!("{} random links of seed {}", exploration.links().len(), args.seed),
        subtitle: "The time of each transfer by the ideal: two round trips, and the bytes at the full rate"
            .to_owned(),
        figure: "ratio to the ideal".to_owned(),
        parameters: PARAMETERS.iter().map(parameter).collect(),
        groups: exploration.controllers().iter().map(group).collect(),
        table_head: ["class"].into_iter().chain(HEAD).map(str::to_owned).collect(),
        table: all.iter().map(row).collect(),
    }
}
