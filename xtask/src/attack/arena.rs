//! Where a row is played: the server as a process of its own, the client of good faith, and the attacker.
//!
//! The server has a core for itself where there are two. The attacker is another machine in truth, so it must not take the
//! processor from the client of good faith, with which it shares the other core: it runs when that one waits. What slows the
//! requests down is then the work of the server, and what the kernel does in its name. The server has the priority of any other
//! program. As root, the client of good faith goes before everything else while latencies are measured, so that they are not
//! those of its own waiting for a core.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fulmar_base::Rng;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use super::client::Profile;
use super::honest::{self, ANSWER_BYTES};
use super::rows::{LARGE_FILE, Row, SMALL_FILE, Service, Target};
use super::{Attacker, Outcome};
use crate::Result;
use crate::interop::certs::Certificates;
use crate::process::{Process, can_pin, command_on};

const SERVER_CORE: usize = 0;
const CLIENT_CORE: usize = 1;
/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// The attacker as root, before what else the machine does, but behind the real-time priority of the client of good faith.
const ATTACKER_NICE: i32 = -15;
/// The attacker while nothing is measured.
const UNMEASURED_NICE: i32 = 10;
/// Whatever the first requests leave behind in the server is no growth.
const WARM_UP: Duration = Duration::from_millis(500);
/// Bytes of the file of which nobody sees the end. It has holes and takes no room.
const LARGE_BYTES: u64 = 1 << 40;
/// How long an attacker sleeps between its blows.
const BREATH: Duration = Duration::from_millis(1);
/// An attacker that could not keep its pace for longer than this does not catch up.
const DELAY_MAX: Duration = Duration::from_millis(10);
/// The keys of tokens and tickets.
const KEYS: &str = "5b1d6e1f4f0e3a8c9d2b7a6958473625141302f1e0dfcebdac9b8a7968574635\n";

/// How thoroughly is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// How often quiet and attack take turns.
    pub(super) rounds: u32,
    /// How long requests are made in each.
    pub(super) duration: Duration,
    /// Blows per second, where the row's own rate is not wanted.
    pub(super) rate: Option<u32>,
    pub(super) is_quick: bool,
    /// Whether there are rounds in quiet to compare with.
    pub(super) compares: bool,
}

/// What all rows need.
pub(super) struct Arena {
    fulmar: PathBuf,
    dir: PathBuf,
    certificates: Certificates,
    effort: Effort,
    is_pinned: bool,
}

impl Arena {
    /// Prepares files and certificates in `dir`, and keeps this process off the core of the servers.
    pub(super) fn prepare(fulmar: PathBuf, dir: PathBuf, effort: Effort) -> Result<Self> {
        let certificates = Certificates::create(&dir.join("certs"))?;
        let site = dir.join("site");
        fs::create_dir_all(&site)?;
        fs::write(site.join(SMALL_FILE), vec![b'x'; ANSWER_BYTES as usize])?;
        File::create(site.join(LARGE_FILE))?.set_len(LARGE_BYTES)?;
        fs::write(dir.join("keys"), KEYS)?;
        let is_pinned = can_pin();
        if is_pinned {
            let mut cores = CpuSet::new();
            cores.set(CLIENT_CORE);
            sched_setaffinity(None, &cores)?;
        } else {
            eprintln!("without taskset and two cores, the latencies are those of the scheduler");
        }
        Ok(Self { fulmar, dir, certificates, effort, is_pinned })
    }

    /// Plays a row.
    pub(super) fn play(&self, row: Row) -> Result<Outcome> {
        let service = row.service();
        let (server, address) = self.start(service)?;
        let profile = Profile::new(&self.certificates.authority, service.protocol())?;
        let target = Target { address, profile: &profile, log: &self.dir.join("server.out") };
        let mut round = Round { profile: &profile, address, service, rng: Rng::from_u64(1) };
        let mut attacker = row.attacker(&target)?;
        round.requests(WARM_UP)?;
        let before = memory(&server, "VmRSS")?;
        // From here on the peak is counted anew (proc_pid_clear_refs(5)).
        fs::write(format!("/proc/{}/clear_refs", server.id()), "5")?;

        hurry(true);
        let mut outcome = Outcome { unit: row.unit(), ..Outcome::default() };
        let rate = self.effort.rate.or(row.rate());
        for _ in 0..self.effort.rounds {
            let idle = processor_time(&server)?;
            if self.effort.compares {
                outcome.quiet_p99_us.push(round.requests(self.effort.duration)?);
            }
            let quiet = processor_time(&server)?;
            let duration = self.effort.duration;
            let (p99, count) =
                self.attack(&mut *attacker, Pace::Measured(rate), |_| round.requests(duration))?;
            outcome.attacked_p99_us.push(p99?);
            outcome.count += count;
            outcome.cpu_quiet += quiet.saturating_sub(idle);
            outcome.cpu_attacked += processor_time(&server)?.saturating_sub(quiet);
        }
        hurry(false);
        outcome.measured = outcome.count;
        outcome.count += self.complete(&mut *attacker, &mut round, row, outcome.count)?;
        outcome.complaints.extend(attacker.finish()?);
        outcome.remark = attacker.remark();
        outcome.growth = memory(&server, "VmHWM")?.saturating_sub(before);
        if server.says("panicked")? {
            outcome.complaints.push("something panicked in the server".to_owned());
        }
        Ok(outcome)
    }

    /// Does the rest of a row as fast as can be. Requests have to be answered then as well, however long that takes.
    fn complete(
        &self,
        attacker: &mut dyn Attacker,
        round: &mut Round<'_>,
        row: Row,
        done: u64,
    ) -> Result<u64> {
        let missing = row.total(self.effort.is_quick).saturating_sub(done);
        if missing == 0 {
            return Ok(0);
        }
        let (result, count) = self.attack(attacker, Pace::Rest, |progress| {
            while progress.count() < missing && !progress.is_over() {
                round.requests(WARM_UP)?;
            }
            Ok(())
        })?;
        result.map(|()| count)
    }

    /// Lets the attacker loose while something else is done.
    fn attack<T>(
        &self,
        attacker: &mut dyn Attacker,
        pace: Pace,
        meanwhile: impl FnOnce(&Progress) -> Result<T>,
    ) -> Result<(Result<T>, u64)> {
        let progress = Progress::default();
        let (result, attack) = std::thread::scope(|scope| {
            let attack = scope.spawn(|| {
                step_back(matches!(pace, Pace::Measured(_)));
                let result = fight(attacker, pace, &progress);
                progress.stop.store(true, Ordering::Relaxed);
                result
            });
            let result = meanwhile(&progress);
            progress.stop.store(true, Ordering::Relaxed);
            (result, attack.join())
        });
        attack
            .map_err(|_| "the attacker panicked")?
            .map_err(|error| format!("the attacker failed: {error}"))?;
        Ok((result, progress.count()))
    }

    fn start(&self, service: Service) -> Result<(Process, SocketAddr)> {
        let mut command = command_on(&self.fulmar, self.is_pinned.then_some(SERVER_CORE));
        match service {
            Service::Perf => command.args(["perf", "server"]),
            Service::Files(options) => command.args(["serve", "site"]).args(options),
        };
        let identity = &self.certificates.short;
        command
            .args(["--listen", "127.0.0.1:0", "--cert"])
            .arg(&identity.chain)
            .arg("--key")
            .arg(&identity.key);
        // Words in colour are hard to find.
        command.env("NO_COLOR", "1").current_dir(&self.dir);
        let mut server = Process::start(command, &self.dir, "server")?;
        let address = server.listening(PATIENCE)?.parse()?;
        Ok((server, address))
    }
}

/// Who asks whom for what.
struct Round<'a> {
    profile: &'a Profile,
    address: SocketAddr,
    service: Service,
    rng: Rng,
}

impl Round<'_> {
    fn requests(&mut self, duration: Duration) -> Result<f64> {
        let request = self.service.small_request();
        let latencies = honest::requests(self.profile, self.address, &request, duration, &mut self.rng)?;
        Ok(latencies.p99_us())
    }
}

/// How fast an attacker strikes.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// So many times in a second, or as often as one core can, while latencies are measured.
    Measured(Option<u32>),
    /// As often as can be, while nothing is measured.
    Rest,
}

/// How far an attack is.
#[derive(Default)]
struct Progress {
    stop: AtomicBool,
    count: AtomicU64,
}

impl Progress {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Strikes until it is stopped.
fn fight(attacker: &mut dyn Attacker, pace: Pace, progress: &Progress) -> Result<()> {
    let rate = if let Pace::Measured(rate) = pace { rate } else { None };
    let interval = rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate);
    let mut due = Instant::now();
    while !progress.is_over() {
        let now = Instant::now();
        due = due.max(now.checked_sub(DELAY_MAX).unwrap_or(now));
        if due <= now && attacker.strike()? {
            progress.count.fetch_add(1, Ordering::Relaxed);
            due += interval;
        } else {
            std::thread::sleep(BREATH);
        }
        attacker.tend()?;
    }
    Ok(())
}

/// Lets this thread run only when the client of good faith does not want the processor: behind its real-time priority, where
/// there is one, and else when nobody wants it. What is not measured has to come to an end while the machine is busy, too.
fn step_back(is_measured: bool) {
    let thread = gettid().as_raw_nonzero().to_string();
    let (policy, nice) = match (is_measured, is_root()) {
        (true, true) => ("--other", ATTACKER_NICE),
        (true, false) => ("--idle", 0),
        (false, _) => ("--other", UNMEASURED_NICE),
    };
    chrt(&[policy, "--pid", "0"], &thread);
    // Where it is not allowed, the thread stays as it is.
    let _ = rustix::process::setpriority_process(None, nice);
}

/// Puts the client of good faith, which is this thread, before everything else, or no more.
fn hurry(is_urgent: bool) {
    if is_root() {
        let policy = if is_urgent { ["--rr", "1"] } else { ["--other", "0"] };
        chrt(&[policy[0], "--pid", policy[1]], &gettid().as_raw_nonzero().to_string());
    }
}

/// Changes how a thread is scheduled. Without the program `chrt`, it stays as it is.
fn chrt(options: &[&str], id: &str) {
    let mut command = Command::new("chrt");
    command.args(options).arg(id).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.status();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// How much processor time a process has used.
fn processor_time(process: &Process) -> Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{}/stat", process.id()))
        .map_err(|error| format!("the server is gone: {error}"))?;
    // The name, in brackets, may have spaces; the 14th and 15th fields are the times in user and in kernel mode.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second())?)
}

/// A line of `/proc/PID/status` that is a number of KiB, in bytes.
fn memory(process: &Process, what: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{}/status", process.id()))
        .map_err(|error| format!("the server is gone: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or("the system does not tell the memory of a process")? << 10)
}
