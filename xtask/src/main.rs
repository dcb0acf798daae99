//! Tasks of the Fulmar repository, run as `cargo xtask NAME`.
//!
//! Each task is a file with an `Options` and a `run`; a new one is a line in `mod`, in [`Task`] and in `main`.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tasks drive real programs over real sockets in real time; the core is not here"
)]

mod attack;
mod bench;
mod coverage;
mod determinism;
mod figures;
mod interop;
mod layers;
mod mutants;
mod pictures;
mod platforms;
mod process;
mod programs;
mod python;
mod qifs;
mod relay;
mod sockets;
mod swarm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An error of a task, to be shown as one sentence.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(name = "xtask", about = "Tasks of the Fulmar repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Talk to other QUIC stacks over real sockets and print a table of the results.
    Interop(interop::Options),
    /// Measure Fulmar beside other stacks, or count its instructions.
    Bench(bench::Options),
    /// Show which lines no test runs.
    Coverage(coverage::Options),
    /// Find changes of the core that no test sees.
    Mutants(mutants::Options),
    /// Check that the same seed gives the same packets in every process and every build.
    Determinism(determinism::Options),
    /// Join real sockets by a link in user space.
    Relay(relay::Options),
    /// Measure downloads over real sockets through such a link.
    Sockets(sockets::Options),
    /// Play the rows of an attack battery against a server while a client of good faith is served.
    Attack(attack::Options),
    /// Compute the figures of the documents anew, or check them.
    Figures(figures::Options),
    /// Draw the pictures of the documents anew.
    Pictures(pictures::Options),
    /// Check that everything compiles for other systems.
    Platforms(platforms::Options),
    /// Check QPACK against its public corpus and another decoder.
    Qifs(qifs::Options),
    /// Run random scenarios in the lab.
    Swarm(swarm::Options),
    /// One end of a TCP connection that competes in an interop case.
    #[command(hide = true)]
    Load(interop::LoadOptions),
    /// Check which crate may use which, where unsafe code is forbidden, and that ARCHITECTURE.md names files that are there.
    Layers,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Interop(options) => interop::run(&options),
        Task::Attack(options) => attack::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Coverage(options) => coverage::run(&options),
        Task::Mutants(options) => mutants::run(&options),
        Task::Determinism(options) => determinism::run(&options),
        Task::Figures(options) => figures::run(&options),
        Task::Pictures(options) => pictures::run(&options),
        Task::Platforms(options) => platforms::run(&options),
        Task::Qifs(options) => qifs::run(&options),
        Task::Relay(options) => relay::run(&options),
        Task::Sockets(options) => sockets::run(&options),
        Task::Swarm(options) => swarm::run(&options),
        Task::Load(options) => interop::run_load(&options),
        Task::Layers => layers::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
