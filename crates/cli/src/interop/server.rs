//! The server of a test case.

use fulmar::{AddressValidation, RetryPolicy};

use super::args::InteropServerArgs;
use super::case::Case;
use crate::args::IdentityArgs;
use crate::failure::Failure;
use crate::hq;
use crate::net::{self, Listen, Transport};
use crate::qlog;
use crate::report::Output;
use crate::serve::{serve_until_interrupted, served_directory};
use crate::tls::Identity;

/// The port of the runner's servers.
const PORT: u16 = 443;

pub(super) fn run(args: &InteropServerArgs, output: Output) -> Result<(), Failure> {
    let case = Case::named(&args.testcase)?;
    let root = served_directory(&args.www)?;
    let identity = IdentityArgs { cert: Some(args.cert.clone()), key: Some(args.key.clone()) };
    let identity = Identity::from_args(&identity)?;
    let logs = qlog::from_environment()?;
    let transport = Transport::default().with_logs(logs.clone());
    let retry = if case.retry { RetryPolicy::Always } else { RetryPolicy::default() };
    let validation = AddressValidation { retry, ..AddressValidation::default() };
    let runtime = net::runtime()?;
    let result = runtime.block_on(async {
        let listen = Listen {
            addr: args.listen,
            default_port: PORT,
            identity: &identity,
            protocol: hq::PROTOCOL,
            transport: &transport,
            reset_key: None,
            validation,
            sealed_tickets: None,
            early_data: true,
        };
        let (endpoint, listening) = listen.bind()?;
        output.print(&listening, || listening.text());
        serve_until_interrupted(&endpoint, root, || Ok(())).await
    });
    runtime.shutdown_background();
    qlog::finish(logs, output);
    result
}
