//! `fulmar qlog`, and the qlog files that `serve` and `get` write.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | the command line, `fulmar qlog view` |
//! | `dir` | a directory of files, written by a thread of its own |

mod dir;

use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use flate2::read::MultiGzDecoder;
use fulmar_qlog::Flavor;

use crate::failure::Failure;
use crate::report::{Output, write_results};

pub(crate) use self::dir::{LOG_ENTRIES, QlogDir};

/// The variable that names the directory where no option does: the QUIC interop runner sets it.
const DIRECTORY_VARIABLE: &str = "QLOGDIR";

/// The largest file that is read: as a tree of values it takes several times as much memory.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// How a file begins that gzip has compressed (RFC 1952 §2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

#[derive(Debug, Subcommand)]
pub(crate) enum QlogCommand {
    /// Make a page of charts out of qlog files, of any stack: qlog 0.3 and the drafts after it, JSON or JSON-SEQ
    View(QlogViewArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QlogViewArgs {
    /// The files; several are drawn over each other
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The page, or `-` for standard output
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) out: PathBuf,
}

/// Which logs of connections are written, and where to.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logs and figures")]
pub(crate) struct QlogArgs {
    /// Write a qlog file of each connection into this directory. Default: the environment's QLOGDIR, if set
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,

    /// Remember what connections do, and write it down (as qlog and as CSV) if one ends badly
    #[arg(long, value_name = "DIR", conflicts_with = "qlog")]
    pub(crate) qlog_on_error: Option<PathBuf>,

    /// The names of events in qlog files
    #[arg(long, value_name = "NAMES", default_value = "qvis")]
    pub(crate) qlog_names: QlogNames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum QlogNames {
    /// Those that qvis and other tools know, with the keys that they look for
    Qvis,
    /// Those of the drafts, to the letter
    Draft,
}

impl QlogArgs {
    /// Starts what writes the files, if any are wanted.
    pub(crate) fn start(&self) -> Result<Option<Arc<QlogDir>>, Failure> {
        let flavor = match self.qlog_names {
            QlogNames::Qvis => Flavor::Qvis,
            QlogNames::Draft => Flavor::Draft,
        };
        let (dir, only_bad) = match (&self.qlog, &self.qlog_on_error) {
            (Some(dir), _) => (Some(dir.clone()), false),
            (None, Some(dir)) => (Some(dir.clone()), true),
            (None, None) => (directory_of_environment(), false),
        };
        dir.map(|dir| QlogDir::start(dir, flavor, only_bad).map(Arc::new)).transpose()
    }
}

fn directory_of_environment() -> Option<PathBuf> {
    env::var_os(DIRECTORY_VARIABLE).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// Starts what writes the files, if the environment names a directory.
pub(crate) fn from_environment() -> Result<Option<Arc<QlogDir>>, Failure> {
    let start = |dir| QlogDir::start(dir, Flavor::default(), false).map(Arc::new);
    directory_of_environment().map(start).transpose()
}

/// Waits until the files are written, and tells if something is missing in them.
pub(crate) fn finish(logs: Option<Arc<QlogDir>>, output: Output) {
    let missing = logs.map_or(0, |logs| logs.finish());
    if missing > 0 {
        output.note(&format!(
            "{missing} events are missing in the qlog files: they came faster than they were written"
        ));
    }
}

/// Runs a command.
pub(crate) fn run(command: &QlogCommand, output: Output) -> Result<(), Failure> {
    let QlogCommand::View(args) = command;
    let is_for_stdout = args.out.as_os_str() == "-";
    if is_for_stdout && output.is_json() {
        return Err(Failure::Usage("--json and the page cannot both go to standard output".to_owned()));
    }
    let mut files = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        let bytes = read(path)?;
        let traces = fulmar_qlog::read(&bytes).map_err(|error| Failure::Usage(format!("{name}, {error}")))?;
        let short = path.file_name().map_or(name, |name| name.to_string_lossy().into_owned());
        files.push((short, traces));
    }
    let title = match files.as_slice() {
        [(name, _)] => name.clone(),
        several => format!("{} qlog files", several.len()),
    };
    let page = fulmar_qlog::page(&title, files).html();
    if is_for_stdout {
        return write_results(&mut io::stdout().lock(), &page).map(|_| ());
    }
    fs::write(&args.out, page).map_err(Failure::io(format!("cannot write {}", args.out.display())))
}

/// A file, which may be compressed by gzip.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let cannot = || Failure::io(format!("cannot read {name}"));
    let mut file = fs::File::open(path).map_err(cannot())?;
    let mut bytes = Vec::new();
    (&mut file).take(GZIP_MAGIC.len() as u64).read_to_end(&mut bytes).map_err(cannot())?;
    let is_compressed = bytes == GZIP_MAGIC;
    let rest = io::Cursor::new(std::mem::take(&mut bytes)).chain(file);
    let whole: Box<dyn Read> =
        if is_compressed { Box::new(MultiGzDecoder::new(rest)) } else { Box::new(rest) };
    // A small file may unpack to a large one.
    whole.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cannot())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::Usage(format!("{name} is larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
