//! `cargo xtask pictures`: draws the pictures of `docs/` anew.
//!
//! Each is the top of the page that `fulmar lab run --plot` writes, or `fulmar lab report` of a campaign, as Chromium shows it
//! without a window. The runs are in virtual time, so the curves are the same on every machine. What they came to stands in a
//! list beside the pictures, so that `--check` can tell without a browser which pictures are stale; of a campaign it repeats some.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::{Result, programs};

/// Where the pictures are, seen from the root of the repository.
const PLACE: &str = "docs/pictures";
/// What the runs of the pictures came to, a line for each.
const LIST: &str = "runs.txt";
const WIDTH: u32 = 1100;
/// The figures of the runs and their first chart.
const FIRST_CHART: u32 = 815;
/// The first three charts: the third is the round-trip time.
const THREE_CHARTS: u32 = 1518;

/// The box plots of a campaign with a dozen groups.
const BOX_PLOTS: u32 = 700;
/// The part of a campaign's runs whose results stand in the list.
const LISTED: &str = "1/25";

/// A picture, and the part of its page that it shows.
struct Picture {
    name: &'static str,
    height: u32,
    of: Subject,
}

/// What a picture is drawn of.
#[derive(Clone, Copy)]
enum Subject {
    /// Runs that are drawn over each other: of a scenario with controllers, and with a setting changed if `compare` says so.
    Runs { scenario: &'static str, controllers: &'static str, compare: Option<&'static str> },
    /// The distributions of a campaign, by its file.
    Campaign(&'static str),
}

impl Picture {
    const fn new(name: &'static str, scenario: &'static str, controllers: &'static str) -> Self {
        Self { name, height: FIRST_CHART, of: Subject::Runs { scenario, controllers, compare: None } }
    }

    const fn of_campaign(name: &'static str, file: &'static str) -> Self {
        Self { name, height: BOX_PLOTS, of: Subject::Campaign(file) }
    }

    /// The same once more with a setting changed.
    const fn against(self, setting: &'static str) -> Self {
        let of = match self.of {
            Subject::Runs { scenario, controllers, .. } => {
                Subject::Runs { scenario, controllers, compare: Some(setting) }
            }
            campaign @ Subject::Campaign(_) => campaign,
        };
        Self { of, ..self }
    }

    const fn high(self, height: u32) -> Self {
        Self { height, ..self }
    }

    /// The arguments of the program that tells what its runs come to, an object for each.
    fn arguments(&self) -> Vec<String> {
        let arguments: Vec<&str> = match self.of {
            Subject::Runs { scenario, controllers, compare } => {
                let own = ["lab", "run", scenario, "--json", "--controller", controllers];
                own.into_iter()
                    .chain(compare.into_iter().flat_map(|setting| ["--compare", setting]))
                    .collect()
            }
            Subject::Campaign(file) => {
                return vec![
                    "lab".to_owned(),
                    "grid".to_owned(),
                    at_root(file),
                    "--shard".to_owned(),
                    LISTED.to_owned(),
                ];
            }
        };
        arguments.into_iter().map(str::to_owned).collect()
    }

    /// Writes the page. Returns what its runs came to.
    fn write(&self, fulmar: &Path, page: &Path) -> Result<String> {
        let page_name = page.to_string_lossy().into_owned();
        let runs = match self.of {
            Subject::Runs { .. } => [self.arguments(), vec!["--plot".to_owned(), page_name]].concat(),
            Subject::Campaign(file) => {
                let results = page.with_extension("jsonl");
                // What is there would be kept.
                let _ = std::fs::remove_file(&results);
                let results = results.to_string_lossy();
                run_lab(fulmar, ["lab", "grid", &at_root(file), "-o", &results])?;
                run_lab(fulmar, ["lab", "report", &results, "-o", &page_name])?;
                self.arguments()
            }
        };
        run_lab(fulmar, runs)
    }
}

/// A file of the repository, wherever the task is run.
fn at_root(file: &str) -> String {
    programs::repository().join(file).to_string_lossy().into_owned()
}

/// Runs the program, and returns what it printed.
fn run_lab(fulmar: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
    let output = Command::new(fulmar).args(arguments).output()?;
    succeeds("the lab", &output)?;
    Ok(String::from_utf8(output.stdout)?)
}

const CLASSIC_TIMERS: &str = "endpoints.timers=classic";

const PICTURES: &[Picture] = &[
    Picture::new("timers", "recovery/suspended-path", "cubic").against(CLASSIC_TIMERS),
    Picture::new("suspension", "wifi/suspension-hard", "cubic").against(CLASSIC_TIMERS),
    Picture::new("loss-recovery", "recovery/heavy-loss", "bbr").against(CLASSIC_TIMERS),
    Picture::new("mtu-discovery", "recovery/mtu-drop", "newreno").against(CLASSIC_TIMERS),
    Picture::new("acknowledgements", "congestion/asymmetric-10", "bbr")
        .against("endpoints.ack_frequency=false"),
    Picture::new("careful-resume", "satellite/second-connection", "newreno").against("seeded=false"),
    Picture::new("ecn-l4s", "congestion/l4s", "prague,newreno").high(THREE_CHARTS),
    Picture::new("congestion-control", "satellite/loss", "cubic,bbr"),
    Picture::new("slow-start", "satellite/geo-start", "prague,newreno"),
    Picture::new("pacing", "congestion/application-limited", "newreno"),
    Picture::new("flow-control", "satellite/basic", "bbr")
        .against("endpoints.stream_receive_window_max=1048576"),
    Picture::of_campaign("erasure-correction", "scenarios/fec-experiment.toml"),
];

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these pictures.
    names: Vec<String>,
    /// Draw nothing, and fail if the runs of a picture came to something else than when it was drawn.
    #[arg(long)]
    check: bool,
    /// Use this program `fulmar` instead of building one.
    #[arg(long)]
    fulmar: Option<PathBuf>,
    /// The browser.
    #[arg(long, default_value = "chromium")]
    browser: PathBuf,
}

/// Draws the chosen pictures.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(name) =
        options.names.iter().find(|name| PICTURES.iter().all(|picture| picture.name != **name))
    {
        return Err(format!("there is no picture {name}").into());
    }
    let fulmar = options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?;
    let place = programs::repository().canonicalize()?.join(PLACE);
    std::fs::create_dir_all(&place)?;
    let page = programs::scratch_dir("pictures")?.join("page.html");
    let list = place.join(LIST);
    let mut lines = List::parse(&std::fs::read_to_string(&list).unwrap_or_default());
    let mut stale = 0;
    let is_wanted = |picture: &&Picture| {
        options.names.is_empty() || options.names.iter().any(|name| name == picture.name)
    };
    for picture in PICTURES.iter().filter(is_wanted) {
        let file = place.join(picture.name).with_extension("png");
        let told = told(&match options.check {
            true => run_lab(&fulmar, picture.arguments())?,
            false => picture.write(&fulmar, &page)?,
        })?;
        if options.check {
            let drawn = lines.of(picture.name);
            if drawn != told {
                eprintln!(
                    "{} was drawn of\n  {}\nand now is\n  {}",
                    picture.name,
                    drawn.join("\n  "),
                    told.join("\n  ")
                );
                stale += 1;
            }
            continue;
        }
        draw(&options.browser, &page, picture.height, &file)?;
        lines.set(picture.name, told);
        std::fs::write(&list, lines.text())?;
        println!("{}", file.display());
    }
    match stale {
        0 => Ok(()),
        stale => Err(format!("{stale} stale pictures: run `cargo xtask pictures`").into()),
    }
}

/// What each run came to, as far as a picture shows it: a line for each object of `fulmar lab run --json`.
fn told(objects: &str) -> Result<Vec<String>> {
    let told = |line: &str| -> Result<String> {
        let run: Value = serde_json::from_str(line)?;
        let count =
            |name: &str| ["client", "server"].iter().filter_map(|side| run[side][name].as_u64()).sum::<u64>();
        let settings = run["settings"].as_object().into_iter().flatten();
        let settings: String = settings
            .map(|(key, value)| {
                format!(" {key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect();
        Ok(format!(
            "{}{settings}: {:.2} s, {} packets lost, {} probe timeouts",
            run["controller"].as_str().unwrap_or_default(),
            run["completion_s"].as_f64().ok_or("a run has no time")?,
            count("packets_lost"),
            count("pto_count"),
        ))
    };
    objects.lines().map(told).collect()
}

/// The lines of the list, by picture.
#[derive(Debug, Default, PartialEq, Eq)]
struct List(BTreeMap<String, Vec<String>>);

impl List {
    fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for (name, line) in text.lines().filter_map(|line| line.split_once(" | ")) {
            list.0.entry(name.to_owned()).or_default().push(line.to_owned());
        }
        list
    }

    fn of(&self, name: &str) -> Vec<String> {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn set(&mut self, name: &str, lines: Vec<String>) {
        self.0.insert(name.to_owned(), lines);
    }

    fn text(&self) -> String {
        let lines = self.0.iter().flat_map(|(name, lines)| lines.iter().map(move |line| (name, line)));
        lines.map(|(name, line)| format!("{name} | {line}\n")).collect()
    }
}

fn draw(browser: &Path, page: &Path, height: u32, picture: &Path) -> Result<()> {
    let output = Command::new(browser)
        // Without a sandbox, since it only opens a page that was made here, and may be run by root.
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--window-size={WIDTH},{height}"))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", browser.display()))?;
    succeeds("the browser", &output)
}

fn succeeds(who: &str, output: &std::process::Output) -> Result<()> {
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{who} failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_tells_what_a_picture_was_drawn_of() {
        let object = r#"{"controller":"bbr","completion_s":1.236,"settings":{"a.b":"2"},"client":{"packets_lost":1,"pto_count":0},"server":{"packets_lost":2,"pto_count":4}}"#;
        let lines = told(&format!("{object}\n")).expect("a run");
        assert_eq!(lines, ["bbr a.b=2: 1.24 s, 3 packets lost, 4 probe timeouts"]);
        let mut list = List::default();
        list.set("timers", lines.clone());
        list.set("pacing", vec!["x".to_owned()]);
        let again = List::parse(&list.text());
        assert_eq!((again.of("timers"), again.of("nothing"), &again), (lines, Vec::new(), &list));
    }
}
