//! Runs the program and looks at what it did.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a command may take. The tests run side by side on few cores, so this is generous.
const TIME_MAX: Duration = Duration::from_secs(60);

/// The program, with the environment of the tests kept out of it.
pub(crate) fn fulmar(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulmar"));
    command
        .args(arguments)
        .env_remove("SSLKEYLOGFILE")
        .env_remove("QLOGDIR")
        .env_remove("RUST_LOG")
        .env_remove("https_proxy")
        .env_remove("HTTPS_PROXY")
        .env_remove("all_proxy")
        .env_remove("ALL_PROXY")
        .env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"))
        .stdin(Stdio::null());
    command
}

/// `get` by HTTP/0.9 of one URL to a directory, without progress and without a look at the certificate.
pub(crate) fn get_hq(out: &Path, url: &str) -> Command {
    fulmar(&["get", "--hq", "-q", "--insecure", "-o", out.to_str().expect("a path"), url])
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Finished {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let start = Instant::now();
    let output = wait(child);
    Finished { output, took: start.elapsed() }
}

/// Waits for the end of a process, and kills it when it takes too long.
fn wait(child: Child) -> Output {
    let id = child.id();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if is_done.recv_timeout(TIME_MAX) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            signal(id, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().expect("the program ends");
    drop(done);
    guard.join().expect("the guard ends");
    output
}

fn signal(id: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(id.try_into().expect("a process id")).expect("a process id");
    let _ = rustix::process::kill_process(pid, signal);
}

/// Interrupts a command as a user would.
pub(crate) fn interrupt(child: &Child) {
    signal(child.id(), rustix::process::Signal::INT);
}

/// The command, so that a hangup reaches it although the tests may run where it is ignored, as under `nohup`.
#[cfg(target_os = "linux")]
pub(crate) fn heeding_hangups(command: &Command) -> Command {
    let mut heeding = Command::new("env");
    heeding.arg("--default-signal=HUP").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => heeding.env(name, value),
            None => heeding.env_remove(name),
        };
    }
    heeding.stdin(Stdio::null());
    heeding
}

/// Tells a command that its terminal was closed.
pub(crate) fn hang_up(child: &Child) {
    signal(child.id(), rustix::process::Signal::HUP);
}

/// A command that has ended.
pub(crate) struct Finished {
    output: Output,
    pub(crate) took: Duration,
}

impl Finished {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).expect("text")
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).expect("text")
    }

    /// Its exit code.
    pub(crate) fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// The objects on standard output, which must hold nothing else.
    pub(crate) fn objects(&self) -> Vec<Value> {
        self.stdout().lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Demands success and silence on standard error.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        let (code, stderr) = (self.output.status.code(), self.stderr());
        assert!(code == Some(0) && stderr.is_empty(), "exit {code:?}, {stderr}");
        self
    }

    /// Demands exit code `code` and one sentence on standard error that contains all of `words`.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, words: &[&str]) -> Self {
        let stderr = self.stderr();
        assert_eq!(self.output.status.code(), Some(code), "{stderr}");
        assert!(
            stderr.starts_with("fulmar: ") && stderr.lines().count() == 1,
            "no single sentence: {stderr}"
        );
        for word in words {
            assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
        }
        self
    }
}

/// A server that is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    pub(crate) fingerprint: String,
}

impl Server {
    /// `fulmar serve` for the files in `dir`.
    pub(crate) fn serve(dir: &Path, arguments: &[&str]) -> Self {
        let mut command = fulmar(&["serve", dir.to_str().expect("a path"), "--json"]);
        command.args(arguments);
        Self::start(command)
    }

    /// `fulmar perf server`.
    pub(crate) fn perf() -> Self {
        Self::start(fulmar(&["perf", "server", "--json"]))
    }

    pub(crate) fn start(mut command: Command) -> Self {
        if !command.get_args().any(|argument| argument == "--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let listening: Value = serde_json::from_str(&line).expect("an object");
        let text = |key: &str| listening[key].as_str().expect(key).to_owned();
        let address = text("listening").parse().expect("an address");
        Self { child, stdout, address, fingerprint: text("fingerprint") }
    }

    /// The URL of a file, with the server's name.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// The next object it prints.
    pub(crate) fn next_object(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("an object")
    }

    /// Ends it without a farewell, as a crash would.
    pub(crate) fn crash(mut self) -> SocketAddr {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
        self.address
    }

    /// Ends it as a user would, and tells its exit code.
    pub(crate) fn interrupt(self) -> Option<i32> {
        self.ask_to_stop();
        self.ended()
    }

    /// The number of the process.
    #[cfg(target_os = "linux")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells it to stop.
    pub(crate) fn ask_to_stop(&self) {
        interrupt(&self.child);
    }

    /// Tells it that a terminal was closed, or that it is to look again.
    pub(crate) fn hang_up(&self) {
        hang_up(&self.child);
    }

    /// Waits for its end, and tells its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        self.child.wait().expect("ended").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A runtime for clients that are part of a test.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Content that differs from place to place.
pub(crate) fn content(size: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..size).map(|_| byte()).collect()
}
