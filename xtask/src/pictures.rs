//! `cargo xtask pictures`: draws the pictures of `docs/` anew.
//!
//! Each is the top of the page that `fulmar lab run --plot` writes, as Chromium shows it without a window. The runs are in virtual
//! time, so the curves are the same on every machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, programs};

/// Where the pictures are, seen from the root of the repository.
const PLACE: &str = "docs/pictures";
const WIDTH: u32 = 1100;
/// The figures of the runs and their first chart.
const FIRST_CHART: u32 = 785;
/// The first three charts: the third is the round-trip time.
const THREE_CHARTS: u32 = 1455;

/// The pictures: a name, the height, and what is run for it.
const PICTURES: &[(&str, u32, &[&str])] = &[
    (
        "timers",
        FIRST_CHART,
        &["recovery/suspended-path", "--controller", "cubic", "--compare", "endpoints.timers=classic"],
    ),
    (
        "suspension",
        FIRST_CHART,
        &["wifi/suspension-hard", "--controller", "cubic", "--compare", "endpoints.timers=classic"],
    ),
    (
        "loss-recovery",
        FIRST_CHART,
        &["recovery/heavy-loss", "--controller", "bbr", "--compare", "endpoints.timers=classic"],
    ),
    (
        "mtu-discovery",
        FIRST_CHART,
        &["recovery/mtu-drop", "--controller", "newreno", "--compare", "endpoints.timers=classic"],
    ),
    (
        "acknowledgements",
        FIRST_CHART,
        &["congestion/asymmetric-10", "--controller", "bbr", "--compare", "endpoints.ack_frequency=false"],
    ),
    (
        "careful-resume",
        FIRST_CHART,
        &["satellite/second-connection", "--controller", "newreno", "--compare", "seeded=false"],
    ),
    ("ecn-l4s", THREE_CHARTS, &["congestion/l4s", "--controller", "prague,newreno"]),
    ("congestion-control", FIRST_CHART, &["satellite/loss", "--controller", "cubic,bbr"]),
];

/// Options of the task.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these pictures.
    names: Vec<String>,
    /// Use this program `fulmar` instead of building one.
    #[arg(long)]
    fulmar: Option<PathBuf>,
    /// The browser.
    #[arg(long, default_value = "chromium")]
    browser: PathBuf,
}

/// Draws the chosen pictures.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(name) = options.names.iter().find(|name| PICTURES.iter().all(|(known, ..)| known != name)) {
        return Err(format!("there is no picture {name}").into());
    }
    let fulmar = options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?;
    let place = programs::repository().canonicalize()?.join(PLACE);
    std::fs::create_dir_all(&place)?;
    let page = programs::scratch_dir("pictures")?.join("page.html");
    for (name, height, arguments) in PICTURES {
        if options.names.is_empty() || options.names.iter().any(|chosen| chosen == name) {
            let picture = place.join(name).with_extension("png");
            let runs = || {
                Command::new(&fulmar).args(["lab", "run"]).args(*arguments).arg("--plot").arg(&page).output()
            };
            succeeds("the lab", &runs()?)?;
            draw(&options.browser, &page, *height, &picture)?;
            println!("{}", picture.display());
        }
    }
    Ok(())
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
