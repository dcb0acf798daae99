//! Where a campaign writes, and what it finds there.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fulmar_lab::scenario::{ControllerName, Figures, Point, Scenario};
use serde::Serialize;
use serde_json::Value;

use self::kept::{Kept, read_kept, sorted};
use super::args::GridFormat;
use super::pool::InOrder;
use super::print::VERSION;
use crate::failure::Failure;
use crate::part::PartFile;
use crate::report::write_results;

mod kept;

/// The results of a campaign, on their way to a file or to standard output.
pub(super) struct Results {
    place: String,
    to: Box<dyn Write>,
    order: Order,
    format: GridFormat,
    /// The runs whose results were there before.
    known: BTreeSet<String>,
    /// Those of them that failed.
    failed: BTreeSet<String>,
    /// What else tells a run from one of another time.
    stamp: Stamp,
    /// The first line of a CSV file, as long as it is not written.
    header: Option<String>,
    dropped: usize,
}

/// How results come into the order of the campaign's settings, which is the same on every machine, whichever run ends first.
enum Order {
    /// What is in a file can be put in order in the end, so that a campaign that is interrupted has lost nothing.
    Afterwards(PathBuf),
    /// A stream cannot: a result waits until all before it were written.
    Beforehand(InOrder<GridLine>),
}

/// The scenario of a campaign and the version that runs it: results of others are none of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Stamp {
    scenario: String,
    scenario_sha256: String,
    /// The build of the program, where it runs controllers that are not part of the stack: the version does not tell those apart.
    program: Option<String>,
}

/// A run of a campaign.
#[derive(Debug)]
pub(super) struct GridRun {
    /// Its settings and its seed.
    pub(super) point: Point,
    /// The controller that it has with those settings.
    controller: Option<ControllerName>,
    has_own_controller: bool,
}

impl GridRun {
    /// The run of a point; `scenario` has its settings.
    pub(super) fn new(point: Point, scenario: &Scenario) -> Self {
        let controller = scenario.controller_or_default(point.controller).ok();
        let has_own_controller = scenario.has_own_controller(point.controller);
        Self { point, controller, has_own_controller }
    }

    /// The names of its settings, in the order of their columns.
    pub(super) fn setting_names(&self) -> Vec<String> {
        let settings: serde_json::Map<String, Value> =
            self.point.settings.iter().map(|(name, _)| (name.clone(), Value::Null)).collect();
        settings.keys().cloned().collect()
    }

    /// Whether it depends on a controller that is not part of the stack.
    pub(super) fn has_own_controller(&self) -> bool {
        self.has_own_controller
    }
}

/// A run of a campaign and what came out of it.
#[derive(Debug, Serialize)]
pub(super) struct GridLine {
    id: String,
    scenario_sha256: String,
    version: &'static str,
    settings: serde_json::Map<String, Value>,
    #[serde(flatten)]
    figures: Option<Figures>,
    #[serde(flatten)]
    failed: Option<FailedRun>,
    error: Option<String>,
}

/// What tells a run without figures from others; figures have it themselves.
#[derive(Debug, Serialize)]
struct FailedRun {
    scenario: String,
    controller: Option<ControllerName>,
    seed: u64,
}

impl GridLine {
    pub(super) fn new(run: &GridRun, stamp: &Stamp, result: Result<Figures, String>) -> Self {
        let point = &run.point;
        let value = |value: &_| serde_json::to_value(value).unwrap_or(Value::Null);
        let settings = point.settings.iter().map(|(key, setting)| (key.clone(), value(setting))).collect();
        let (figures, error) = match result {
            Ok(figures) => (Some(figures), None),
            Err(error) => (None, Some(error)),
        };
        let failed = figures.is_none().then(|| FailedRun {
            scenario: stamp.scenario.clone(),
            controller: run.controller,
            seed: point.seed,
        });
        let scenario_sha256 = stamp.scenario_sha256.clone();
        Self { id: stamp.id(run), scenario_sha256, version: VERSION, settings, figures, failed, error }
    }
}

/// So much of a hash is in the name of a run.
const HASH_DIGITS: usize = 16;
/// What comes before the build of the program in the name of a run.
const PROGRAM: &str = " program=";

impl Stamp {
    /// That of a campaign; `program_sha256` is the build of the program, where the campaign depends on it.
    pub(super) fn of(scenario: &Scenario, program_sha256: Option<&str>) -> Self {
        let program = program_sha256.map(|hash| hash.get(..HASH_DIGITS).unwrap_or_default().to_owned());
        Self { scenario: scenario.name().to_owned(), scenario_sha256: scenario.sha256(), program }
    }

    /// The end of the names of all runs, but for the build of the program.
    fn end(&self) -> String {
        let hash = self.scenario_sha256.get(..HASH_DIGITS).unwrap_or_default();
        format!(" scenario={hash} version={VERSION}")
    }

    fn id(&self, run: &GridRun) -> String {
        let id = run.point.id() + &self.end();
        match &self.program {
            Some(program) if run.has_own_controller => id + PROGRAM + program,
            _ => id,
        }
    }

    /// Whether a run with this name has the scenario, the version and, as far as this campaign knows it, the program of now.
    fn is_of_now(&self, id: &str) -> bool {
        let end = self.end();
        match id.rsplit_once(PROGRAM).filter(|(id, _)| id.ends_with(&end)) {
            Some((_, program)) => self.program.as_ref().is_none_or(|own| own == program),
            None => id.ends_with(&end),
        }
    }
}

impl Results {
    /// Standard output. `settings` are the names of those that a campaign has lists of.
    pub(super) fn to_stdout(format: GridFormat, stamp: Stamp, settings: &[String]) -> Self {
        let (place, to) = ("standard output".to_owned(), Box::new(io::stdout()));
        let order = Order::Beforehand(InOrder::default());
        let (known, failed) = Default::default();
        let header = Some(csv_header(settings));
        Self { place, to, order, format, known, failed, stamp, header, dropped: 0 }
    }

    /// A file. What an interrupted campaign left in it stays, but for a line that was not finished, and for results of
    /// another text of the scenario, another version or another build of a controller of one's own. A file that holds anything
    /// else, or results with other columns, is refused and stays as it is.
    pub(super) fn to_file(
        path: &PathBuf,
        format: GridFormat,
        stamp: Stamp,
        settings: &[String],
    ) -> Result<Self, Failure> {
        let place = path.display().to_string();
        let cannot_open = || Failure::io(format!("cannot open the results {place}"));
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open().map_err(cannot_open())?;
        let header = csv_header(settings);
        let is_of_now = |id: &str| stamp.is_of_now(id);
        let kept = read_kept(&file, format, &header, is_of_now).map_err(cannot_open())?;
        if let Some((number, what)) = kept.refused {
            let what = format!("{what}: the file stays as it is, choose another one");
            return Err(Failure::Usage(format!("{place}, line {number}, {what}")));
        }
        let Kept { known, failed, text, dropped, is_beginning, .. } = kept;
        if !is_beginning {
            PartFile::replace(path, &text)?;
            file = open().map_err(cannot_open())?;
        }
        // A line that was not finished goes.
        file.set_len(text.len() as u64).map_err(cannot_open())?;
        file.seek(SeekFrom::End(0)).map_err(cannot_open())?;
        let (to, order) = (Box::new(file), Order::Afterwards(path.clone()));
        let header = Some(header).filter(|_| text.is_empty());
        Ok(Self { place, to, order, format, known, failed, stamp, header, dropped })
    }

    /// How many results were dropped because they are of another scenario, version or program.
    pub(super) fn dropped(&self) -> usize {
        self.dropped
    }

    /// The form that a file's name asks for.
    pub(super) fn format_of(path: Option<&Path>) -> GridFormat {
        match path.and_then(Path::extension) {
            Some(extension) if extension.eq_ignore_ascii_case("csv") => GridFormat::Csv,
            _ => GridFormat::Jsonl,
        }
    }

    /// Whether the result of a run is there already.
    pub(super) fn has(&self, run: &GridRun) -> bool {
        self.known.contains(&self.stamp.id(run))
    }

    /// Whether that says that the run failed.
    pub(super) fn has_failed(&self, run: &GridRun) -> bool {
        self.failed.contains(&self.stamp.id(run))
    }

    /// Takes the result of the run with this number among those of now. Returns whether more are wanted: whoever read standard output may
    /// have gone.
    pub(super) fn take(&mut self, number: usize, line: GridLine) -> Result<bool, Failure> {
        match &mut self.order {
            Order::Afterwards(_) => self.add(&line),
            Order::Beforehand(waiting) => {
                let due = waiting.take(number, line);
                due.iter().try_fold(true, |wanted, line| Ok(wanted && self.add(line)?))
            }
        }
    }

    /// The last run has ended: what is in a file stands in the order of `runs` from now on, behind the results of other runs.
    pub(super) fn finish(self, runs: &[GridRun]) -> Result<(), Failure> {
        let Self { place, to, order, format, stamp, .. } = self;
        let Order::Afterwards(path) = order else { return Ok(()) };
        drop(to);
        let ranks = runs.iter().map(|run| stamp.id(run)).zip(0..).collect();
        let found = fs::read(&path).map_err(Failure::io(format!("cannot read {place}")))?;
        let sorted = sorted(&found, format, &ranks);
        if sorted == found { Ok(()) } else { PartFile::replace(&path, &sorted) }
    }

    fn add(&mut self, line: &GridLine) -> Result<bool, Failure> {
        let text = match self.format {
            GridFormat::Jsonl => {
                serde_json::to_string(line).map(|json| json + "\n").map_err(io::Error::other)
            }
            GridFormat::Csv => self.csv(line),
        };
        let cannot_write = || Failure::io(format!("cannot write to {}", self.place));
        let text = text.map_err(cannot_write())?;
        match self.order {
            Order::Beforehand(_) => write_results(&mut *self.to, &text),
            Order::Afterwards(_) => {
                let written = self.to.write_all(text.as_bytes()).and_then(|()| self.to.flush());
                written.map(|()| true).map_err(cannot_write())
            }
        }
    }

    fn csv(&mut self, line: &GridLine) -> io::Result<String> {
        // All lines have the same columns, those without figures too.
        let value = serde_json::to_value(line).map_err(io::Error::other)?;
        let figure =
            |name: &&str| value.pointer(&format!("/{}", name.replace('.', "/"))).unwrap_or(&Value::Null);
        let settings = line.settings.values();
        let fields = [&value["id"]].into_iter().chain(settings).chain(COLUMNS.iter().map(figure));
        let fields = csv_line(fields.map(|value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }));
        Ok(self.header.take().unwrap_or_default() + &fields)
    }
}

/// The columns of a CSV line behind the settings; those of a side by their path.
const COLUMNS: &[&str] = &[
    "scenario",
    "controller",
    "seed",
    "completion_s",
    "bytes",
    "client.packets_sent",
    "client.packets_lost",
    "client.packets_spurious",
    "client.bytes_sent",
    "client.ack_bytes",
    "client.acks_sent",
    "client.pto_count",
    "client.rtt_min_ms",
    "client.rtt_max_ms",
    "client.rtt_p50_ms",
    "client.rtt_p90_ms",
    "client.rtt_p99_ms",
    "client.cwnd_max",
    "client.connections_accepted",
    "server.packets_sent",
    "server.packets_lost",
    "server.packets_spurious",
    "server.bytes_sent",
    "server.ack_bytes",
    "server.acks_sent",
    "server.pto_count",
    "server.rtt_min_ms",
    "server.rtt_max_ms",
    "server.rtt_p50_ms",
    "server.rtt_p90_ms",
    "server.rtt_p99_ms",
    "server.cwnd_max",
    "server.connections_accepted",
    "up.packets_dropped",
    "up.packets_marked",
    "up.queue_delay_p50_ms",
    "up.queue_delay_p99_ms",
    "up.load",
    "up.utilisation",
    "down.packets_dropped",
    "down.packets_marked",
    "down.queue_delay_p50_ms",
    "down.queue_delay_p99_ms",
    "down.load",
    "down.utilisation",
    "metrics.goodput_mbps",
    "scenario_sha256",
    "version",
    "trace_sha256",
    "error",
];

/// The first line of a CSV file.
fn csv_header(settings: &[String]) -> String {
    let columns = ["id"].into_iter().chain(settings.iter().map(String::as_str));
    csv_line(columns.chain(COLUMNS.iter().copied()).map(str::to_owned))
}

/// Fields with commas or quotes are quoted (RFC 4180). Line ends, which the message of a panic has, are spaces: a result is a line, by
/// which it is found and put in order.
fn csv_line(fields: impl Iterator<Item = String>) -> String {
    let one_line = fields.map(|field| field.replace(['\n', '\r'], " "));
    let quoted = one_line.map(|field| match field.contains([',', '"']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests;
