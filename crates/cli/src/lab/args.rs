//! The command line of `fulmar lab`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use fulmar_lab::scenario::ControllerName;

pub(crate) const LAB_EXAMPLES: &str = "\
Examples:
  fulmar lab list
  fulmar lab show satellite/basic > mine.toml
  fulmar lab run satellite/basic --controller cubic --json
  fulmar lab run my.toml --set up.delay_ms=100 --set link.rate_mbps=50 --runs 20
  fulmar lab run satellite/basic --controller cubic,bbr --plot out.html
  fulmar lab check satellite
  fulmar lab grid campaign.toml -o results.jsonl --shard 1/4
  fulmar lab explore --links 300 --controller bbr,cubic --out explored/
  fulmar lab sweep satellite/loss --set 'link.delay_ms={x*0.5}' --from 5 --to 600 --controller cubic
  fulmar lab trace cellular.down --duration-s 120 >> mine.toml
  fulmar lab report results.jsonl -o report.html

A scenario is a TOML file: a link, two ends, a workload and goals (see scenarios/README.md). A run has the whole
stack at both ends, with real TLS and real packets, in virtual time; the same seed gives the same packets.";

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Name all scenarios that are part of the program
    List,
    /// Print the file of a scenario, to begin one of your own with
    Show(LabShowArgs),
    /// Run scenarios and print their figures
    Run(LabRunArgs),
    /// Run scenarios against their goals; exit status 1 if one is missed
    Check(LabCheckArgs),
    /// Run a scenario with every combination of some settings, controllers and seeds
    Grid(LabGridArgs),
    /// Draw random links from a space, and tell how far from the ideal transfers over them are
    Explore(LabExploreArgs),
    /// Run a scenario at many values of a setting, and tell where its time leaps
    Sweep(LabSweepArgs),
    /// Print the schedule of a link that Mahimahi has recorded, to be put at the end of a scenario file
    Trace(LabTraceArgs),
    /// Make a page of the results of many runs: box plots, distributions, tables
    Report(LabReportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabShowArgs {
    /// Names of scenarios, or files
    #[arg(value_name = "NAME|FILE.toml", required = true)]
    pub(crate) scenarios: Vec<String>,

    /// Change a setting, named by its path in the file: `up.delay_ms=100`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Sections (S, D, W, R, C, F or their names), names of scenarios, or files
    #[arg(value_name = "SECTION|NAME|FILE.toml", required = true)]
    pub(crate) scenarios: Vec<String>,

    /// The congestion controller of both ends; with several, a run with each. Default: the scenario's, or that of the
    /// default configuration
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = controllers())]
    pub(crate) controller: Vec<ControllerName>,

    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Runs with this seed and those that follow it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) runs: u64,

    /// Change a setting, named by its path in the file: `up.delay_ms=100`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Write what a side sent and received to this file, with the TLS secrets, for Wireshark. For one run only
    #[arg(long, value_name = "FILE.pcapng", conflicts_with_all = ["plot", "compare"])]
    pub(crate) pcap: Option<PathBuf>,

    /// The side whose packets are written
    #[arg(long, value_name = "SIDE", default_value = "client", requires = "pcap")]
    pub(crate) pcap_at: SideArg,

    /// Run everything with this setting, too, to compare: `endpoints.timers=classic`. Several are one change
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) compare: Vec<String>,

    /// Write a page with charts of the runs, which opens in a browser without a network
    #[arg(long, value_name = "FILE.html")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideArg {
    /// The client
    Client,
    /// The server
    Server,
}

impl From<SideArg> for fulmar_lab::Side {
    fn from(argument: SideArg) -> Self {
        match argument {
            SideArg::Client => Self::Client,
            SideArg::Server => Self::Server,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct LabTraceArgs {
    /// The trace: a line for each packet of 1,500 bytes that the link lets through, its time in milliseconds
    #[arg(value_name = "FILE")]
    pub(crate) trace: PathBuf,

    /// The direction of the link that has these rates
    #[arg(long, value_name = "DIRECTION", default_value = "down")]
    pub(crate) direction: DirectionArg,

    /// The rate is the mean over steps of this length
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) step_ms: u64,

    /// How long the schedule is; a shorter trace begins again
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    pub(crate) duration_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionArg {
    /// From the client
    Up,
    /// To the client
    Down,
    /// Both directions
    Both,
}

impl DirectionArg {
    /// As scenario files write it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct LabReportArgs {
    /// What `fulmar lab grid` has written (JSON lines or CSV), or `fulmar lab run --json`; `-`: standard input
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,

    /// The page; `-` is standard output
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct LabCheckArgs {
    /// A section (S, D, W, R, C, M, F or its name), a scenario, a file, `explore` (a fixed set of 300 random links) or
    /// `sweep` (the fixed sweeps). Without any: all that are part of the program but F, whose comparisons take up to
    /// 1,000 runs each (see --seeds)
    #[arg(value_name = "SECTION|NAME|FILE.toml")]
    pub(crate) what: Vec<String>,

    /// Check the goals of this controller only
    #[arg(long, value_name = "NAME", value_parser = controllers())]
    pub(crate) controller: Option<ControllerName>,

    /// Judge each row over so many seeds. Default: what a scenario says, else 20, or 1,000 for comparisons (F)
    #[arg(long, alias = "runs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,

    /// Leave scenarios that move no more bytes than this with the number of seeds that they say: most of the time of a check goes
    /// into a few that move much
    #[arg(long, value_name = "BYTES", requires = "seeds")]
    pub(crate) small_bytes: Option<u64>,

    /// Fail only if a goal is missed that is not in this list; rows are judged over as many seeds as it says
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) expected: Option<PathBuf>,

    /// Write the list of the goals that are missed
    #[arg(long, value_name = "FILE.toml", conflicts_with = "expected")]
    pub(crate) write_expected: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LabGridArgs {
    /// The campaign: `scenario`, `controllers`, `seeds` and a table `[set]` of lists of values
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Where results are appended; what is in it already is not run again, results of another text of the scenario, of another version or
    /// of another build of a controller of your own go, and a file of anything else is refused. Default: JSON lines to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// The form of the results. Default: that of the file's name, else JSON lines
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<GridFormat>,

    /// Do every n-th run only, from the i-th on: 1/4, 2/4, 3/4 and 4/4 are the whole
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub(crate) shard: Shard,
}

#[derive(Debug, Args)]
pub(crate) struct LabSweepArgs {
    /// The scenario. Without one, the fixed sweeps: the round-trip time without and with loss, loss one by one and in
    /// bursts, the queue
    #[arg(value_name = "NAME|FILE.toml")]
    pub(crate) scenario: Option<String>,

    /// The setting that changes, named by its path in the file: `{x}` stands for the value, `{x*0.5}` for a multiple
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// The first value
    #[arg(long, value_name = "X")]
    pub(crate) from: Option<f64>,

    /// The last value
    #[arg(long, value_name = "X")]
    pub(crate) to: Option<f64>,

    /// From each value to the next one
    #[arg(long, value_name = "FACTOR", default_value_t = 1.05)]
    pub(crate) ratio: f64,

    /// The congestion controllers of both ends, a curve with each
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "bbr,cubic", value_parser = controllers())]
    pub(crate) controller: Vec<ControllerName>,

    /// A point is the median over so many seeds; those at a step over 15
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) seeds: u32,

    /// Write the curves as pages into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LabExploreArgs {
    /// How many links; the first ones of a seed are the same however many there are
    #[arg(long, value_name = "N", default_value_t = 140, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) links: u64,

    /// What the links are drawn with
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The congestion controllers of both ends
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "bbr,cubic", value_parser = controllers())]
    pub(crate) controller: Vec<ControllerName>,

    /// The space that links are drawn from, as docs/lab.md describes it. Default: rates of 1 to 1,000 Mbit/s, round-trip
    /// times of 2 to 1,200 ms, queues of 0.15 to 3 BDP, loss of up to 8 %, jitter, slow return paths, 30 kB to 30 MB down
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) space: Option<PathBuf>,

    /// Change a setting of all links, named by its path in their files: `endpoints.fec=tail`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Write `explore.html`, a page of scatter plots, and the worst links as `worst-*.toml`, ready to be run
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// So many of the worst links of each controller are told
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) worst: usize,

    /// Runs at the same time. Default: one on each core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
    pub(crate) jobs: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GridFormat {
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values with a header
    Csv,
}

/// The controllers of the stack, and those that the program was given.
fn controllers() -> impl TypedValueParser<Value = ControllerName> {
    let values = ControllerName::all().into_iter();
    let values = values.map(|name| PossibleValue::new(name.as_str()).help(name.about()));
    PossibleValuesParser::new(values).try_map(|name| name.parse())
}

/// A part of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Counted from 0.
    index: usize,
    count: usize,
}

impl Shard {
    /// Whether the run with this number, counted from 0, belongs to the part.
    pub(crate) fn contains(self, number: usize) -> bool {
        number % self.count == self.index
    }
}

impl FromStr for Shard {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index: index - 1, count }),
            _ => Err(format!("`{text}` is no part: write for example 2/4")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_of_a_campaign_are_the_whole() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for number in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.contains(number)).count(), 1, "{number}");
        }
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
