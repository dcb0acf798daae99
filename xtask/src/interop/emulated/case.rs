//! The cases of the public runner, with their parameters.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use fulmar_sim::Loss;

use super::super::files;
use super::super::network::{Blackhole, Conditions, Direction, Rebinding};

/// How long a client may take, if a case says nothing else.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_LONG: Duration = Duration::from_secs(300);
/// How many connections the cases with many make.
pub(super) const CONNECTIONS: usize = 50;
/// How many files with how long names the 0-RTT case asks for.
pub(super) const EARLY_FILES: usize = 40;

/// How many small files come by HTTP/3.
const HTTP3_FILES: usize = 300;

/// Named as in the public runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Case {
    Handshake,
    Transfer,
    Longrtt,
    Chacha20,
    Multiplexing,
    Retry,
    Resumption,
    Zerortt,
    Blackhole,
    Keyupdate,
    Ecn,
    Amplificationlimit,
    Handshakeloss,
    Transferloss,
    Handshakecorruption,
    Transfercorruption,
    Ipv6,
    V2,
    RebindPort,
    RebindAddr,
    Connectionmigration,
    Http3,
    Goodput,
    Crosstraffic,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// What a case asks of client, server and network.
pub(super) struct Script {
    /// The name that the endpoints are given.
    pub(super) testcase: &'static str,
    pub(super) files: Vec<String>,
    /// By which name the client addresses the server.
    pub(super) host: &'static str,
    pub(super) conditions: Conditions,
    /// Whether the server shows a chain of nine certificates.
    pub(super) long_chain: bool,
    pub(super) patience: Duration,
    /// Whether a TCP connection competes.
    pub(super) competes: bool,
}

impl Case {
    /// The cases that together take no more than a few seconds.
    pub(crate) const QUICK: [Self; 7] = [
        Self::Handshake,
        Self::Retry,
        Self::Multiplexing,
        Self::Ipv6,
        Self::Keyupdate,
        Self::V2,
        Self::Http3,
    ];

    /// Whether the result is a figure rather than a verdict.
    pub(crate) fn is_measurement(self) -> bool {
        matches!(self, Self::Goodput | Self::Crosstraffic)
    }

    pub(super) fn script(self) -> Script {
        let plain = Script {
            testcase: "transfer",
            files: names(&["1k"]),
            host: "server4",
            conditions: Conditions::default(),
            long_chain: false,
            patience: PATIENCE,
            competes: false,
        };
        match self {
            Self::Handshake => Script { testcase: "handshake", ..plain },
            Self::Transfer => Script { files: names(&["2m", "3m", "5m"]), ..plain },
            Self::Longrtt => {
                let conditions = Conditions { delay: Duration::from_millis(750), ..Conditions::default() };
                Script { testcase: "handshake", conditions, ..plain }
            }
            Self::Chacha20 => Script { testcase: "chacha20", files: names(&["3m"]), ..plain },
            Self::Multiplexing => Script { files: files::small_names().collect(), ..plain },
            Self::Retry => Script { testcase: "retry", files: names(&["10k"]), ..plain },
            Self::Resumption => Script { testcase: "resumption", files: names(&["5k", "10k"]), ..plain },
            Self::Zerortt => {
                Script { testcase: "zerortt", files: files::long_names(EARLY_FILES).collect(), ..plain }
            }
            Self::Blackhole => {
                let hole = Blackhole { from: Duration::from_secs(5), until: Duration::from_secs(7) };
                let conditions = Conditions { blackhole: Some(hole), ..Conditions::default() };
                Script { files: names(&["10m"]), conditions, ..plain }
            }
            Self::Keyupdate => Script { testcase: "keyupdate", files: names(&["3m"]), ..plain },
            Self::Ecn => Script { testcase: "ecn", files: names(&["100k"]), ..plain },
            Self::Amplificationlimit => {
                let conditions = Conditions::losing_from_client(2..=7);
                Script { files: names(&["5k"]), conditions, long_chain: true, ..plain }
            }
            Self::Handshakeloss => many_connections(Direction { loss: drops(0.3), corruption: 0.0 }, plain),
            Self::Handshakecorruption => {
                many_connections(Direction { loss: Loss::None, corruption: 0.3 }, plain)
            }
            Self::Transferloss => {
                let conditions = Conditions::both_ways(Direction { loss: drops(0.02), corruption: 0.0 });
                Script { files: names(&["2m"]), conditions, ..plain }
            }
            Self::Transfercorruption => {
                let conditions = Conditions::both_ways(Direction { loss: Loss::None, corruption: 0.02 });
                Script { files: names(&["2m"]), conditions, ..plain }
            }
            Self::Ipv6 => Script { files: names(&["5k", "10k"]), host: "server6", ..plain },
            Self::V2 => Script { testcase: "v2", ..plain },
            Self::RebindPort => rebinding(false, plain),
            Self::RebindAddr => rebinding(true, plain),
            Self::Connectionmigration => {
                Script { testcase: "connectionmigration", files: names(&["2m"]), host: "server46", ..plain }
            }
            Self::Http3 => {
                // So many that the tables of QPACK are used, and one that takes a while.
                let files = files::small_names().take(HTTP3_FILES).chain(["2m".to_owned()]).collect();
                Script { testcase: "http3", files, ..plain }
            }
            Self::Goodput => Script { files: names(&["10m"]), ..plain },
            Self::Crosstraffic => {
                Script { files: names(&["25m"]), patience: Duration::from_secs(180), competes: true, ..plain }
            }
        }
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().copied().map(str::to_owned).collect()
}

/// Independent losses, but never more than three in a row.
fn drops(probability: f64) -> Loss {
    Loss::Capped { probability, run_max: 3 }
}

fn many_connections(direction: Direction, plain: Script) -> Script {
    Script {
        testcase: "multiconnect",
        files: files::connection_names(CONNECTIONS).collect(),
        conditions: Conditions::both_ways(direction),
        patience: PATIENCE_LONG,
        ..plain
    }
}

fn rebinding(address: bool, plain: Script) -> Script {
    let rebinding = Rebinding { first: Duration::from_secs(1), every: Duration::from_secs(5), address };
    let conditions = Conditions { rebinding: Some(rebinding), ..Conditions::default() };
    Script { files: names(&["10m"]), conditions, ..plain }
}
