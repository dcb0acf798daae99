//! The program `fulmar` with one more congestion controller: an additive increase and a multiplicative decrease, of which a
//! scenario chooses both.
//!
//! ```sh
//! cargo run --release -p own-controller -- lab run satellite/loss --controller aimd,cubic
//! cargo run --release -p own-controller -- lab run examples/own-controller/link.toml --plot out.html
//! cargo run --release -p own-controller -- lab grid examples/own-controller/campaign.toml -o results.jsonl
//! cargo run --release -p own-controller -- lab report results.jsonl -o report.html
//! ```

#![forbid(unsafe_code)]

mod aimd;

use std::process::ExitCode;
use std::sync::Arc;

use fulmar_cli::OwnController;

fn main() -> ExitCode {
    fulmar_cli::program([OwnController {
        name: "aimd",
        about: "additive increase, multiplicative decrease",
        configure: |parameters| Ok(Arc::new(parameters.read::<aimd::Config>()?)),
    }])
}
