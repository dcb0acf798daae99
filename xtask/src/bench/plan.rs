//! What is measured: the cases, and which stacks take part in them.

use clap::ValueEnum;

use super::http3;
use super::results::Figures;

/// All stacks.
pub(crate) const STACKS: [Stack; 10] = [
    Stack::Limit,
    Stack::Fulmar,
    Stack::Quinn,
    Stack::S2n,
    Stack::QuicGo,
    Stack::Tcp,
    Stack::Http2,
    Stack::Nginx,
    Stack::Caddy,
    Stack::H3Quinn,
];
/// Those that move bytes over streams, in the order in which they take turns.
pub(crate) const STREAM_STACKS: [Stack; 6] =
    [Stack::Limit, Stack::Fulmar, Stack::Quinn, Stack::S2n, Stack::QuicGo, Stack::Tcp];
/// Those that serve files over HTTP, in the order in which they take turns.
pub(crate) const HTTP_STACKS: [Stack; 6] =
    [Stack::Fulmar, Stack::Http2, Stack::Nginx, Stack::Caddy, Stack::QuicGo, Stack::H3Quinn];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Stack {
    /// Sealed packets without a protocol.
    Limit,
    Fulmar,
    Quinn,
    S2n,
    QuicGo,
    /// TLS over TCP.
    Tcp,
    /// Fulmar's files over HTTP/2, on the TCP port.
    #[value(name = "fulmar-h2")]
    Http2,
    Nginx,
    Caddy,
    /// The crates `h3` and `quinn`.
    H3Quinn,
}

impl Stack {
    /// The name in tables and on command lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Fulmar => "fulmar",
            Self::Quinn => "quinn",
            Self::S2n => "s2n",
            Self::QuicGo => "quic-go",
            Self::Tcp => "tcp",
            Self::Http2 => "fulmar-h2",
            Self::Nginx => "nginx",
            Self::Caddy => "caddy",
            Self::H3Quinn => "h3-quinn",
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Quick,
    Whole,
}

/// In what a case is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes: Gbit/s, and CPU in seconds per gigabyte.
    Bulk,
    /// Something counted: how many in a second, and CPU in microseconds for each.
    Rate,
    /// A load that is given: CPU in microseconds for each.
    Cost,
    /// Kilobytes of the server for each connection.
    Memory,
}

impl Unit {
    /// The main figure of a run.
    pub(crate) fn of(self, figures: &Figures) -> f64 {
        match self {
            Self::Bulk => figures.amount * 8e-9 / figures.seconds,
            Self::Rate => figures.amount / figures.seconds,
            Self::Cost => figures.server_micros().unwrap_or(f64::NAN) + figures.client_micros(),
            Self::Memory => figures.server_bytes.unwrap_or(f64::NAN) / 1_024.0,
        }
    }

    pub(crate) fn show(self, figure: f64) -> String {
        match self {
            Self::Bulk => format!("{figure:.2} Gbit/s"),
            Self::Rate => format!("{figure:.0}/s"),
            Self::Cost => format!("{figure:.2} us"),
            Self::Memory => format!("{figure:.1} KB"),
        }
    }
}

/// One line of the tables.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) group: &'static str,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) runs: u32,
    pub(crate) stacks: Vec<Stack>,
    /// Options of both ends.
    pub(crate) transport: Vec<String>,
    /// Options of the client.
    pub(crate) load: Vec<String>,
    /// The bytes of each body, where files are served over HTTP.
    pub(crate) body_bytes: Option<u64>,
}

impl Case {
    pub(crate) fn new(group: &'static str, name: &str, unit: Unit, runs: u32, load: &str) -> Self {
        let name = if name.is_empty() { group.to_owned() } else { format!("{group}-{name}") };
        let stacks = STREAM_STACKS.to_vec();
        Self { group, name, unit, runs, stacks, transport: Vec::new(), load: words(load), body_bytes: None }
    }

    fn with(mut self, transport: &str) -> Self {
        self.transport.extend(words(transport));
        self
    }

    fn only(mut self, stacks: &[Stack]) -> Self {
        self.stacks = stacks.to_vec();
        self
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// All cases. The quick ones are the same with less of everything.
pub(crate) fn cases(extent: Extent) -> Vec<Case> {
    let sizes = Sizes::of(extent);
    let mut cases = bulk(&sizes);
    cases.extend(small(&sizes));
    cases.extend(variants(&sizes));
    cases.extend(http3::cases(extent));
    cases
}

struct Sizes {
    runs: u32,
    /// Runs of cases that take long.
    few: u32,
    /// Runs of cases that are about the spread.
    many: u32,
    bulk: u64,
    long: u64,
    requests: u64,
    handshakes: u64,
    connections: u64,
    milliseconds: u64,
}

impl Sizes {
    fn of(extent: Extent) -> Self {
        match extent {
            Extent::Quick => Self {
                runs: 2,
                few: 1,
                many: 2,
                bulk: 250_000_000,
                long: 500_000_000,
                requests: 20_000,
                handshakes: 500,
                connections: 500,
                milliseconds: 500,
            },
            Extent::Whole => Self {
                runs: 5,
                few: 2,
                many: 16,
                bulk: 1_000_000_000,
                long: 10_000_000_000,
                requests: 200_000,
                handshakes: 4_000,
                connections: 10_000,
                milliseconds: 2_000,
            },
        }
    }
}

fn bulk(sizes: &Sizes) -> Vec<Case> {
    let (bulk, long) = (sizes.bulk, sizes.long);
    let mut cases = Vec::new();
    for direction in ["download", "upload"] {
        let load = |size: u64, more: &str| format!("--workload {direction} --size {size} {more}");
        let group = if direction == "download" { "download" } else { "upload" };
        cases.push(Case::new(group, "", Unit::Bulk, sizes.runs, &load(bulk, "")));
        let streams = load(bulk, "--streams 100");
        cases.push(Case::new("streams", direction, Unit::Bulk, sizes.runs, &streams));
        cases.push(Case::new("long", direction, Unit::Bulk, sizes.few, &load(long, "")));
        let jumbo = Case::new("jumbo", direction, Unit::Bulk, sizes.runs, &load(bulk, ""));
        cases.push(jumbo.with("--payload 8952"));
        let chacha = Case::new("chacha", direction, Unit::Bulk, sizes.runs, &load(bulk, ""));
        cases.push(chacha.with("--cipher chacha20"));
    }
    cases
}

fn small(sizes: &Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    let Sizes { runs, few, requests, handshakes, connections, milliseconds, .. } = *sizes;
    let one = format!("--workload requests --count {}", requests / 10);
    cases.push(Case::new("latency", "", Unit::Rate, runs, &one));
    for (name, shape) in [
        ("100", "--concurrent 100"),
        ("16x1", "--connections 16"),
        ("16x100", "--connections 16 --concurrent 100"),
    ] {
        let load = format!("--workload requests --count {requests} {shape}");
        cases.push(Case::new("requests", name, Unit::Rate, runs, &load));
    }
    let frames = format!("--workload frames --streams 4000 --size 200 --milliseconds {milliseconds}");
    cases.push(Case::new("frames", "", Unit::Cost, runs, &frames));
    for (name, shape) in [
        ("sequential", "--handshake full"),
        ("parallel", "--handshake full --concurrent 16"),
        ("answered", "--handshake answered --concurrent 4"),
        ("resumed", "--handshake resumed --concurrent 4"),
        ("0rtt", "--handshake 0rtt --concurrent 4"),
    ] {
        let load = format!("--workload handshakes --count {handshakes} {shape}");
        cases.push(Case::new("handshakes", name, Unit::Rate, runs, &load));
    }
    let datagrams = format!("--workload datagrams --size 1200 --milliseconds {milliseconds}");
    cases.push(Case::new("datagrams", "", Unit::Rate, runs, &datagrams));
    let idle = format!("--workload memory --connections {connections}");
    cases.push(Case::new("memory", "idle", Unit::Memory, few, &idle));
    cases.push(Case::new("memory", "active", Unit::Memory, few, &format!("{idle} --active")));
    cases
}

fn variants(sizes: &Sizes) -> Vec<Case> {
    use Stack::{Fulmar, Quinn, S2n};
    let download = format!("--workload download --size {}", sizes.bulk);
    let mut cases = Vec::new();
    for controller in ["newreno", "cubic", "bbr", "prague"] {
        // The spread of Fulmar's controllers is a goal; the others show what theirs cost.
        let case = Case::new("controllers", controller, Unit::Bulk, sizes.many, &download);
        cases.push(case.with(&format!("--controller {controller}")).only(&[Fulmar]));
    }
    for controller in ["newreno", "cubic", "bbr"] {
        let name = format!("others-{controller}");
        let case = Case::new("controllers", &name, Unit::Bulk, sizes.few, &download);
        cases.push(case.with(&format!("--controller {controller}")).only(&[Quinn, S2n]));
    }
    for (direction, size) in [("download", sizes.bulk), ("upload", sizes.bulk)] {
        for runtime in ["current", "multi"] {
            for (reader, option) in [("main", ""), ("tasks", "--in-tasks")] {
                let load = format!("--workload {direction} --size {size} {option}");
                let name = format!("{direction}-{runtime}-{reader}");
                let case = Case::new("runtimes", &name, Unit::Bulk, sizes.runs.min(3), &load);
                cases.push(case.with(&format!("--runtime {runtime}")).only(&[
                    Stack::Limit,
                    Fulmar,
                    Quinn,
                    S2n,
                ]));
            }
        }
    }
    // Two workers share the server's core: what they gain with two cores is not seen here, but what they cost.
    for (name, shape) in [("requests", "--connections 16 --concurrent 100"), ("latency", "--connections 16")]
    {
        let load = format!("--workload requests --count {} {shape}", sizes.requests);
        let case = Case::new("workers", &format!("{name}-2"), Unit::Rate, sizes.runs.min(3), &load);
        cases.push(case.with("--runtime multi --workers 2").only(&[Fulmar]));
    }
    // The harness of its own takes both cores' programs in turn and says for which core it ran.
    cases.push(Case::new("in-process", "", Unit::Bulk, sizes.runs, "").only(&[Fulmar, Quinn]));
    cases
}
