//! One end of a benchmark over sockets: the same workloads, windows, ciphers and checks for Fulmar and for what it is compared with.
#![forbid(unsafe_code)]

mod client;
mod digest;
mod failure;
mod limit;
mod limits;
mod options;
mod process;
mod protocol;
mod server;
mod stack;
mod tls;

use std::process::ExitCode;

use clap::Parser;

use crate::client::Figures;
use crate::failure::Result;
use crate::options::{ClientOptions, Options, Role, RuntimeName, StackName, Transport};
use crate::stack::Stack;
use crate::stack::fulmar::Fulmar;
use crate::stack::quinn::Quinn;
use crate::stack::s2n::S2n;
use crate::stack::tcp::Tcp;

/// Threads of the runtime that has several: what is compared is their cost, as they share a core.
const THREADS: usize = 2;

fn main() -> ExitCode {
    let result = match Options::parse().role {
        Role::Server(options) => {
            let key = options.key;
            serve(Transport { key, ..options.transport })
        }
        Role::Client(options) => ask(&options).and_then(|figures| {
            println!("{}", serde_json::to_string(&figures).map_err(std::io::Error::from)?);
            Ok(())
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn runtime(name: RuntimeName) -> Result<tokio::runtime::Runtime> {
    let mut builder = match name {
        RuntimeName::Current => tokio::runtime::Builder::new_current_thread(),
        RuntimeName::Multi => tokio::runtime::Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(THREADS).enable_all().build()?)
}

fn serve(transport: Transport) -> Result<()> {
    let runtime = runtime(transport.runtime)?;
    match transport.stack {
        StackName::Fulmar => runtime.block_on(server::serve::<Fulmar>(transport)),
        StackName::Quinn => runtime.block_on(server::serve::<Quinn>(transport)),
        StackName::S2n => runtime.block_on(server::serve::<S2n>(transport)),
        StackName::Tcp => runtime.block_on(server::serve::<Tcp>(transport)),
        StackName::Limit => limit::serve(&transport),
    }
}

fn ask(options: &ClientOptions) -> Result<Figures> {
    let transport = &options.transport;
    let runtime = runtime(transport.runtime)?;
    let figures = match transport.stack {
        StackName::Fulmar => runtime.block_on(run::<Fulmar>(options)),
        StackName::Quinn => runtime.block_on(run::<Quinn>(options)),
        StackName::S2n => runtime.block_on(run::<S2n>(options)),
        StackName::Tcp => runtime.block_on(run::<Tcp>(options)),
        StackName::Limit => limit::ask(options),
    };
    runtime.shutdown_background();
    figures
}

async fn run<S: Stack>(options: &ClientOptions) -> Result<Figures> {
    client::run::<S>(options).await
}
