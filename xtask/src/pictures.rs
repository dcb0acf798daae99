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

/// A picture: the runs that are drawn over each other, of a scenario with controllers, and with a setting changed if `compare` says so.
struct Picture {
    name: &'static str,
    height: u32,
    scenario: &'static str,
    controllers: &'static str,
    compare: Option<&'static str>,
}

impl Picture {
    const fn new(name: &'static str, scenario: &'static str, controllers: &'static str) -> Self {
        Self { name, height: FIRST_CHART, scenario, controllers, compare: None }
    }

    /// The same once more with a setting changed.
    const fn against(self, setting: &'static str) -> Self {
        Self { compare: Some(setting), ..self }
    }

    const fn high(self, height: u32) -> Self {
        Self { height, ..self }
    }

    /// The arguments of the program that writes the page.
    fn arguments(&self) -> Vec<&'static str> {
        let mut arguments = vec!["lab", "run", self.scenario, "--controller", self.controllers];
        if let Some(setting) = self.compare {
            arguments.extend(["--compare", setting]);
        }
        arguments
    }
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
    if let Some(name) =
        options.names.iter().find(|name| PICTURES.iter().all(|picture| picture.name != **name))
    {
        return Err(format!("there is no picture {name}").into());
    }
    let fulmar = options.fulmar.clone().map_or_else(programs::build_fulmar, Ok)?;
    let place = programs::repository().canonicalize()?.join(PLACE);
    std::fs::create_dir_all(&place)?;
    let page = programs::scratch_dir("pictures")?.join("page.html");
    let is_wanted = |picture: &&Picture| {
        options.names.is_empty() || options.names.iter().any(|name| name == picture.name)
    };
    for picture in PICTURES.iter().filter(is_wanted) {
        let file = place.join(picture.name).with_extension("png");
        let runs = Command::new(&fulmar).args(picture.arguments()).arg("--plot").arg(&page).output()?;
        succeeds("the lab", &runs)?;
        draw(&options.browser, &page, picture.height, &file)?;
        println!("{}", file.display());
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
