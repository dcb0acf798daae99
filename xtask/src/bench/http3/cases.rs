//! The rows of `cargo xtask bench http3`.

use super::GROUP;
use crate::bench::plan::{Case, Extent, HTTP_STACKS, Stack, Unit};

/// The file that is served for a body of so many bytes.
pub(super) fn file_name(body_bytes: u64) -> String {
    format!("{body_bytes}.bin")
}

/// How much load there is.
struct Sizes {
    runs: u32,
    seconds: u32,
    download: u64,
}

/// Bodies of all sizes by the load generator, and one long download by our own client, over HTTP/3 and over a bare stream.
pub(crate) fn cases(extent: Extent) -> Vec<Case> {
    let Sizes { runs, seconds, download } = match extent {
        Extent::Quick => Sizes { runs: 2, seconds: 1, download: 250_000_000 },
        Extent::Whole => Sizes { runs: 5, seconds: 3, download: 1_000_000_000 },
    };
    let mut cases = Vec::new();
    for (name, body_bytes, connections, parallel) in
        [("13b", 13, 32, 32), ("1kb", 1_024, 1, 100), ("20kb", 20_480, 8, 16), ("128kb", 131_072, 8, 8)]
    {
        let load = format!("shb -c {connections} -p {parallel} -z {seconds}s");
        cases.push(case(name, Unit::Rate, runs, &load, body_bytes, &HTTP_STACKS));
    }
    // With a condition that always holds: a server that lets requests share what it has found out about a file looks at it for each of these.
    let load = format!("shb -c 1 -p 100 -z {seconds}s -H If-Match:*");
    cases.push(case("each-1kb", Unit::Rate, runs, &load, 1_024, &HTTP_STACKS));
    cases.push(case("1gb", Unit::Bulk, runs, "shb -c 1 -p 1 -n 1", download, &HTTP_STACKS));
    cases.push(case("get", Unit::Bulk, runs, "get --http3-only", download, &[Stack::Fulmar]));
    cases.push(case("raw", Unit::Bulk, runs, "get --hq", download, &[Stack::Fulmar]));
    cases
}

fn case(name: &str, unit: Unit, runs: u32, load: &str, body_bytes: u64, stacks: &[Stack]) -> Case {
    let mut case = Case::new(GROUP, name, unit, runs, load);
    case.body_bytes = Some(body_bytes);
    case.stacks = stacks.to_vec();
    case
}
