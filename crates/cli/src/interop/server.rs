//! The server of a test case.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};

use fulmar::{AddressValidation, RetryPolicy};

use super::args::InteropServerArgs;
use super::case::Case;
use crate::authority::ListenAddr;
use crate::failure::Failure;
use crate::net::{self, Listen, Transport};
use crate::qlog;
use crate::report::Output;
use crate::serve::{Directory, PROTOCOLS, Serving, serve_until_interrupted};
use crate::signal::ServerSignals;
use crate::tls::Identity;

/// The port of the runner's servers.
const PORT: u16 = 443;
/// Somewhere in the Internet, to ask the system for the way there. Nothing is sent.
const ELSEWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

pub(super) fn run(args: &InteropServerArgs, output: Output) -> Result<(), Failure> {
    let case = Case::named(&args.testcase)?;
    let root = Directory::open(&args.www, true)?;
    let identity = Identity::from_files(&args.cert, &args.key)?;
    let logs = qlog::from_environment()?;
    let transport = Transport::default().with_logs(logs.clone());
    let retry = if case.retry { RetryPolicy::Always } else { RetryPolicy::default() };
    let validation = AddressValidation { retry, ..AddressValidation::default() };
    let runtime = net::runtime()?;
    let result = runtime.block_on(async {
        let listen = Listen {
            addr: args.listen.map_or(ListenAddr::All(PORT), ListenAddr::One),
            identity: &identity,
            protocols: &PROTOCOLS,
            transport: &transport,
            reset_key: None,
            validation,
            sealed_tickets: None,
            early_data: true,
            workers: Vec::new(),
        };
        let (endpoint, listening) = listen.bind()?;
        if case.migration {
            let (v4, v6) = preferred(args)?;
            endpoint.set_server_config(Some(listen.config()?.with_preferred_address(v4, v6)));
        }
        output.print(&listening, || listening.text());
        // The runner stops a server when its test is over, and waits for it.
        let serving = Serving::bare(root);
        serve_until_interrupted(&endpoint, serving, ServerSignals::listen()?, output, || Ok(())).await
    });
    runtime.shutdown_background();
    qlog::finish(logs, output);
    result
}

/// Where clients shall move to. Without a word that is the machine's own IPv6 address: a client that came over IPv4
/// moves, as the runner gives it both.
fn preferred(args: &InteropServerArgs) -> Result<(Option<SocketAddrV4>, Option<SocketAddrV6>), Failure> {
    let (mut v4, mut v6) = (None, None);
    for address in &args.preferred {
        match address {
            SocketAddr::V4(address) => v4 = Some(*address),
            SocketAddr::V6(address) => v6 = Some(*address),
        }
    }
    if args.preferred.is_empty() {
        let port = args.listen.map_or(PORT, |address| address.port());
        let own = own_ipv6().map_err(Failure::io("this machine has no IPv6 address to move clients to"))?;
        v6 = Some(SocketAddrV6::new(own, port, 0, 0));
    }
    Ok((v4, v6))
}

fn own_ipv6() -> std::io::Result<Ipv6Addr> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    socket.connect((ELSEWHERE, PORT))?;
    match socket.local_addr()? {
        SocketAddr::V6(address) => Ok(*address.ip()),
        SocketAddr::V4(_) => Err(std::io::ErrorKind::AddrNotAvailable.into()),
    }
}
