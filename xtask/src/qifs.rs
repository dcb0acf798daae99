//! `cargo xtask qifs`: QPACK against its public corpus, and against the decoder of another implementation.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, programs, python};

/// Where the corpus comes from, and which state of it.
const CORPUS: &str = "https://github.com/qpackers/qifs";
const COMMIT: &str = "da52cd9";

/// What each list is encoded for: table sizes, limits of blocked streams, and whether sections are acknowledged.
const CAPACITIES: [&str; 4] = ["0", "256", "512", "4096"];
const BLOCKED: [&str; 2] = ["0", "100"];
const ACKNOWLEDGED: [&str; 2] = ["0", "1"];

/// Options of the task.
///
/// Decodes all files of the corpus, prints the sizes of our encodings beside those of the best encoder of the corpus, and
/// lets pylsqpack decode ours, in an environment of its own. The corpus is cloned to `target/qifs` if it is not given.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The directory of the corpus.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Leave pylsqpack out.
    #[arg(long)]
    no_pylsqpack: bool,
}

/// Runs the checks, of which the first that fails ends the task.
pub(crate) fn run(options: &Options) -> Result<()> {
    let corpus = match &options.corpus {
        Some(dir) => dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?,
        None => cloned_corpus()?,
    };
    let mut tests = Command::new(env!("CARGO"));
    tests.args(["test", "--release", "--package", "fulmar-qpack", "--test", "corpus", "--", "--ignored"]);
    tests.args(["--nocapture", "--test-threads", "1"]).env("QIFS", &corpus);
    succeed(tests.current_dir(programs::repository()), "the tests of the corpus")?;
    if options.no_pylsqpack { Ok(()) } else { check_with_pylsqpack(&corpus) }
}

fn cloned_corpus() -> Result<PathBuf> {
    let dir = programs::repository().canonicalize()?.join("target/qifs");
    if !dir.exists() {
        succeed(Command::new("git").args(["clone", "--quiet", CORPUS]).arg(&dir), "git clone")?;
    }
    succeed(Command::new("git").arg("-C").arg(&dir).args(["checkout", "--quiet", COMMIT]), "git checkout")?;
    Ok(dir)
}

/// Encodes each list in all modes, and lets pylsqpack decode them.
fn check_with_pylsqpack(corpus: &Path) -> Result<()> {
    let scratch = programs::scratch_dir("pylsqpack")?;
    let python =
        python::environment(&scratch.join("venv"), "pylsqpack", "python", &["-c", "import pylsqpack"])?;
    let script = programs::repository().join("interop/pylsqpack/decode.py");
    let encoder = build_encoder()?;
    let mut count = 0;
    for entry in fs::read_dir(corpus.join("qifs"))? {
        let lists = entry?.path();
        for (capacity, blocked, acknowledged) in modes() {
            let encoded = scratch.join("encoded.out");
            let mut encode = Command::new(&encoder);
            encode.arg(&lists).args([capacity, blocked, acknowledged]).stdout(File::create(&encoded)?);
            succeed(&mut encode, "the encoder")?;
            // What was encoded as if the encoder stream came late may come late, too.
            let orders: &[&[&str]] = if acknowledged == "0" { &[&[], &["late"]] } else { &[&[]] };
            for order in orders {
                let mut decode = Command::new(&python);
                decode.arg(&script).arg(&lists).arg(&encoded).args([capacity, blocked]).args(*order);
                let what = format!("{} {capacity} {blocked} {acknowledged}", lists.display());
                succeed(&mut decode, &what)?;
                count += 1;
            }
        }
    }
    println!("pylsqpack decodes {count} files to their inputs");
    Ok(())
}

fn modes() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    CAPACITIES.into_iter().flat_map(|capacity| {
        BLOCKED
            .into_iter()
            .flat_map(move |blocked| ACKNOWLEDGED.map(|acknowledged| (capacity, blocked, acknowledged)))
    })
}

/// Builds the program that encodes lists, and gives its path.
fn build_encoder() -> Result<PathBuf> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--package", "fulmar-qpack", "--example", "qif"]);
    succeed(build.current_dir(programs::repository()), "the build of the encoder")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    Ok(target.unwrap_or_else(|| programs::repository().join("target")).join("release/examples/qif"))
}

fn succeed(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().map_err(|error| format!("{what}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed").into()) }
}
