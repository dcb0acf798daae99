//! `fulmar lab report`.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use fulmar_plot::{Results, report_page};

use super::args::LabReportArgs;
use crate::failure::Failure;
use crate::report::write_results;

/// The name that stands for standard input, and for standard output.
const STDIN: &str = "-";
const STDOUT: &str = "-";

pub(super) fn run(args: &LabReportArgs) -> Result<(), Failure> {
    let name = args.results.display().to_string();
    let text = read(&args.results).map_err(Failure::io(format!("cannot read {name}")))?;
    let results = Results::parse(&text).map_err(|error| Failure::Usage(format!("{name}, {error}")))?;
    let title = match args.results.file_name() {
        Some(file) if name != STDIN => format!("Results of {}", file.to_string_lossy()),
        _ => "Results".to_owned(),
    };
    let page = report_page(&title, &results);
    if args.out.as_os_str() == STDOUT {
        return write_results(&mut io::stdout().lock(), &page).map(|_| ());
    }
    let action = format!("cannot write {}", args.out.display());
    fs::write(&args.out, page).map_err(Failure::io(action))
}

fn read(path: &Path) -> io::Result<String> {
    if path.as_os_str() != STDIN {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map(|_| text)
}
