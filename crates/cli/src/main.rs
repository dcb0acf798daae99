//! The program `fulmar`, see `fulmar_cli`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fulmar_cli::program([])
}
