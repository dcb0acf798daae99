//! The command line, the same for every stack (the program over quic-go has it, too).

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// One end of a benchmark over sockets. `cargo xtask bench` starts two of them, pins them, and reads the figures.
#[derive(Debug, Parser)]
#[command(name = "bench-stack")]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) role: Role,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Serves every workload until it is killed; says where it listens.
    Server(ServerOptions),
    /// Runs one workload against a server and prints its figures as a line of JSON.
    Client(ClientOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ServerOptions {
    #[command(flatten)]
    pub(crate) transport: Transport,
    /// The server's private key (PEM).
    #[arg(long)]
    pub(crate) key: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ClientOptions {
    pub(crate) server: SocketAddr,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    pub(crate) load: Load,
    /// The process of the server, whose CPU time and memory are read.
    #[arg(long)]
    pub(crate) server_pid: u32,
}

/// What both ends set alike.
#[derive(Debug, Clone, Args)]
pub(crate) struct Transport {
    #[arg(long, value_enum)]
    pub(crate) stack: StackName,
    /// The server's certificate (PEM); the client trusts exactly it.
    #[arg(long)]
    pub(crate) cert: PathBuf,
    /// The private key again, set from the server's options.
    #[arg(skip)]
    pub(crate) key: PathBuf,
    /// Congestion controller; default: that of the stack.
    #[arg(long, value_enum)]
    pub(crate) controller: Option<Controller>,
    #[arg(long, value_enum, default_value = "aes128")]
    pub(crate) cipher: Cipher,
    /// Bytes of UDP payload in a full packet.
    #[arg(long, default_value_t = 1_452)]
    pub(crate) payload: u16,
    #[arg(long, value_enum, default_value = "current")]
    pub(crate) runtime: RuntimeName,
    /// How many workers serve the endpoint's socket.
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: u32,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Load {
    #[arg(long, value_enum)]
    pub(crate) workload: Workload,
    /// Bytes of a transfer, an answer, a frame or a datagram.
    #[arg(long, default_value_t = 1_024)]
    pub(crate) size: u64,
    /// Streams among which a transfer is divided, or that carry frames.
    #[arg(long, default_value_t = 1)]
    pub(crate) streams: u64,
    #[arg(long, default_value_t = 1)]
    pub(crate) connections: u64,
    /// Requests under way on each connection, or handshakes under way.
    #[arg(long, default_value_t = 1)]
    pub(crate) concurrent: u64,
    /// How many requests or handshakes are made in all.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) count: u64,
    /// How long frames or datagrams flow.
    #[arg(long, default_value_t = 2_000)]
    pub(crate) milliseconds: u64,
    #[arg(long, value_enum, default_value = "full")]
    pub(crate) handshake: Handshake,
    /// Measures memory of connections on which frames flow, instead of idle ones.
    #[arg(long)]
    pub(crate) active: bool,
    /// Runs the transfers in spawned tasks instead of the program's main future.
    #[arg(long)]
    pub(crate) in_tasks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StackName {
    Fulmar,
    Quinn,
    S2n,
    Tcp,
    /// Sealed packets without a protocol.
    Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Controller {
    Newreno,
    Cubic,
    Bbr,
    Prague,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cipher {
    Aes128,
    Chacha20,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuntimeName {
    /// One thread of tokio.
    Current,
    /// tokio's threads, all on the core of the process.
    Multi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    Download,
    Upload,
    Requests,
    Frames,
    Handshakes,
    Datagrams,
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Handshake {
    /// Connect and close.
    Full,
    /// Connect, one empty answer, close: what the two below are compared with.
    Answered,
    /// The same with a ticket of an earlier connection.
    Resumed,
    /// The same with the question in the first flight, and a second question after it.
    #[value(name = "0rtt")]
    Early,
}
