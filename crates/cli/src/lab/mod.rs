//! `fulmar lab`: scenarios in a simulated network.
//!
//! | file | owns |
//! |---|---|
//! | `args` | the command line |
//! | `load` | scenarios by name and from files |
//! | `list`, `show`, `run`, `check`, `grid`, `report` | one command each |
//! | `explore` | random links |
//! | `sweep` | a scenario at many values of a setting |
//! | `trace` | recorded links as schedules |
//! | `plot` | the page of runs |
//! | `capture` | a run as a file for Wireshark |
//! | `results` | where a campaign writes, and what it finds there |
//! | `program` | which build of the program this is |
//! | `print` | what is printed |
//! | `pool` | runs on all cores |

pub(crate) mod args;
mod capture;
mod check;
mod explore;
mod grid;
mod list;
mod load;
mod plot;
mod pool;
mod print;
mod program;
mod report;
mod results;
mod run;
mod show;
mod sweep;
mod trace;

use crate::failure::Failure;
use crate::report::Output;

use self::args::LabCommand;

/// Runs a command of the lab.
pub(crate) fn run(command: LabCommand, output: Output) -> Result<(), Failure> {
    match command {
        LabCommand::List => list::run(output),
        LabCommand::Show(args) => show::run(&args, output),
        LabCommand::Run(args) => match &args.pcap {
            Some(path) => capture::run(&args, path, output),
            None => run::run(&args, output),
        },
        LabCommand::Check(args) => check::run(&args, output),
        LabCommand::Grid(args) => grid::run(&args, output),
        LabCommand::Explore(args) => explore::run(&args, output),
        LabCommand::Sweep(args) => sweep::run(&args, output),
        LabCommand::Trace(args) => trace::run(&args, output),
        LabCommand::Report(args) => report::run(&args),
    }
}
