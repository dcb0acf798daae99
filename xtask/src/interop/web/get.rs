//! What `fulmar get` is asked to fetch, and whether it is right.

use std::fs;

use serde_json::Value;

use super::site::{LARGE, SMALL};
use super::{Case, Peer, Scene, site};
use crate::Result;
use crate::interop::files;
use crate::process::{Finished, Process};

/// The exit codes that the program has for what the server refuses and for what takes too long, and the version it names.
const REFUSED: i32 = 22;
const TOO_LATE: i32 = 28;
const HTTP3: &str = "HTTP/3.0";

/// Plays a case.
pub(super) fn run(case: Case, scene: &Scene<'_>) -> Result<()> {
    let client = Client { scene };
    match case {
        Case::Files => client.files(),
        Case::Head => client.head(),
        Case::Ranges => client.ranges(),
        Case::Conditions => client.conditions(),
        Case::Parallel => client.parallel(),
        Case::Post => client.post(),
        Case::Resume => client.resume(),
        Case::Page | Case::Compressed => Err("the program has nothing to do in this case".into()),
    }
}

struct Client<'a> {
    scene: &'a Scene<'a>,
}

impl Client<'_> {
    fn files(&self) -> Result<()> {
        let names = site::names();
        let got = self.get_all(&[], &names)?;
        check_all(&got, &names, 200)?;
        let missing = self.get(&["-o", "-"], &["nothing".to_owned()])?;
        expect("the exit code for what is not there", exit_code(&missing), REFUSED)
    }

    fn head(&self) -> Result<()> {
        for (name, bytes) in site::SIZES {
            let got = self.get(&["-I"], &[name.to_owned()])?;
            must_succeed(&got)?;
            let status = got.stdout.lines().next().unwrap_or_default().to_owned();
            expect("the first line", status, format!("{HTTP3} 200 OK"))?;
            let len = got.stdout.lines().find_map(|line| line.strip_prefix("content-length: "));
            // A length of 0 may be left out (RFC 9110 §8.6).
            expect("the length", len.unwrap_or("0").to_owned(), bytes.to_string())?;
        }
        Ok(())
    }

    fn ranges(&self) -> Result<()> {
        let whole = fs::read(self.scene.stage.www.join(LARGE))?;
        let len = whole.len();
        let cases = [
            ("0-0".to_owned(), 0..1),
            ("100-1999".to_owned(), 100..2000),
            ("1000000-".to_owned(), 1_000_000..len),
            ("-500".to_owned(), len - 500..len),
        ];
        for (range, place) in cases {
            let field = format!("Range: bytes={range}");
            let got = self.get(&["--json", "-H", &field, "-o", &self.out()], &[LARGE.to_owned()])?;
            must_succeed(&got)?;
            check_all(&got, &[LARGE.to_owned()], 206)?;
            let arrived = fs::read(self.scene.out().join(LARGE))?;
            if arrived != whole[place] {
                return Err(format!("the part {range} differs").into());
            }
        }
        let behind = format!("Range: bytes={len}-");
        let got = self.get(&["-H", &behind, "-o", "-"], &[LARGE.to_owned()])?;
        expect("the exit code for what lies behind the end", exit_code(&got), REFUSED)
    }

    fn conditions(&self) -> Result<()> {
        let head = self.get(&["-I"], &[SMALL.to_owned()])?;
        let field = |name: &str| {
            let found = head.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.ok_or_else(|| format!("the server sends no {name}"))
        };
        let tag = field("etag")?;
        let current =
            [format!("If-None-Match: {tag}"), format!("If-Modified-Since: {}", field("last-modified")?)];
        for condition in current {
            let got = self.get(&["-I", "-H", &condition], &[SMALL.to_owned()])?;
            let status = got.stdout.lines().next().unwrap_or_default().to_owned();
            expect(&format!("the first line with {condition}"), status, format!("{HTTP3} 304 Not Modified"))?;
        }
        let other = self.get_all(&["-H", "If-None-Match: \"another\""], &[SMALL.to_owned()])?;
        check_all(&other, &[SMALL.to_owned()], 200)?;
        let refused = self.get(&["-H", "If-Match: \"another\"", "-o", "-"], &[SMALL.to_owned()])?;
        expect("the exit code of a condition that does not hold", exit_code(&refused), REFUSED)
    }

    fn parallel(&self) -> Result<()> {
        let names: Vec<String> = site::many().chain([LARGE.to_owned()]).collect();
        let got = self.get_all(&["--parallel", &names.len().to_string()], &names)?;
        check_all(&got, &names, 200)?;
        let report = got.report().ok_or("there is no summary")?;
        expect("the number of connections", report["connections"].as_array().map(Vec::len), Some(1))
    }

    /// By POST and by PUT.
    fn post(&self) -> Result<()> {
        let file = self.scene.stage.www.join(LARGE);
        let content = format!("@{}", file.display());
        let uploads = [["--data-binary", &content], ["-T", &file.to_string_lossy()]];
        for upload in uploads {
            if self.scene.pair.server != Peer::Caddy {
                let refused = self.get(&[&upload[..], &["-o", "-"]].concat(), &[SMALL.to_owned()])?;
                expect("the exit code of what the server refuses", exit_code(&refused), REFUSED)?;
                if !refused.says("405") {
                    return Err(format!("it does not say why: {}", refused.complaint()).into());
                }
                continue;
            }
            let echo = ["echo".to_owned()];
            let got = self.get(&[&upload[..], &["--json", "-o", &self.out()]].concat(), &echo)?;
            must_succeed(&got)?;
            check_all(&got, &echo, 200)?;
            if fs::read(self.scene.out().join("echo"))? != fs::read(&file)? {
                return Err("what came back is not what was sent".into());
            }
        }
        Ok(())
    }

    fn resume(&self) -> Result<()> {
        let names = [LARGE.to_owned()];
        let slowly = ["-C", "-", "--limit-rate", "1MB", "--max-time", "2s", "-o", &self.out()];
        let cut = self.get(&slowly, &names)?;
        expect("the exit code of what takes too long", exit_code(&cut), TOO_LATE)?;
        let held = fs::metadata(self.scene.out().join(format!("{LARGE}.part")))
            .map_err(|error| format!("nothing is kept of it: {error}"))?
            .len();
        let got = self.get_all(&["-C", "-"], &names)?;
        check_all(&got, &names, 206)?;
        expect("where it goes on", objects(&got)[0]["resumed_at"].as_u64(), Some(held))
    }

    /// Fetches files to where they are compared with those of the server.
    fn get_all(&self, options: &[&str], names: &[String]) -> Result<Finished> {
        let got = self.get(&[options, &["--json", "-o", &self.out()]].concat(), names)?;
        must_succeed(&got)?;
        files::compare(&self.scene.stage.www, &self.scene.out(), names)?;
        Ok(got)
    }

    fn get(&self, options: &[&str], names: &[String]) -> Result<Finished> {
        let mut command = self.scene.stage.programs.get();
        command.arg("--ca").arg(&self.scene.stage.certificates.authority).arg("--http3-only").args(options);
        command.args(names.iter().map(|name| format!("{}{name}", self.scene.url)));
        self.scene.finish(Process::start(command, &self.scene.dir, "client")?)
    }

    fn out(&self) -> String {
        self.scene.out().to_string_lossy().into_owned()
    }
}

/// Whether the program tells of all files that they came as they should.
fn check_all(got: &Finished, names: &[String], status: u64) -> Result<()> {
    let files = objects(got);
    expect("the number of files", files.len(), names.len())?;
    for file in files {
        expect("the version", file["version"].as_str(), Some(HTTP3))?;
        expect("the status", file["status"].as_u64(), Some(status))?;
    }
    Ok(())
}

/// What the program tells of each file.
fn objects(got: &Finished) -> Vec<Value> {
    let objects = got.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects.filter(|object| object["kind"] == "file").collect()
}

fn must_succeed(got: &Finished) -> Result<()> {
    match got.status.success() {
        true => Ok(()),
        false => Err(format!("the client failed: {}", got.complaint()).into()),
    }
}

fn exit_code(got: &Finished) -> i32 {
    got.status.code().unwrap_or(-1)
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<()> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} is {found:?} instead of {wanted:?}").into()),
    }
}
