//! `in-process fulmar|quinn`: a gigabyte through a core, both ends on one processor core; prints figures as a line of JSON.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use fulmar_benches::{QuinnPair, Setup};

const WARM_UP: u64 = 50_000_000;
const BYTES: u64 = 1_000_000_000;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let seconds = match name.as_str() {
        "fulmar" => {
            let mut pair = Setup::default().connect();
            measure(|bytes| pair.upload(bytes))
        }
        "quinn" => {
            let mut pair = QuinnPair::new();
            measure(|bytes| pair.upload(bytes))
        }
        _ => {
            eprintln!("usage: in-process fulmar|quinn");
            return ExitCode::from(2);
        }
    };
    println!(r#"{{"seconds":{seconds},"amount":{BYTES},"client_cpu_s":{seconds},"server_cpu_s":0.0}}"#);
    ExitCode::SUCCESS
}

fn measure(mut upload: impl FnMut(u64)) -> f64 {
    upload(WARM_UP);
    let start = Instant::now();
    upload(BYTES);
    start.elapsed().as_secs_f64()
}
