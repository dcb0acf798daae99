//! Fulmar and quinn-proto at the two ends of a simulated link, in virtual time.
//!
//! Both stacks are cores without I/O, so that either can be either end: the same link, the same seed, the same
//! download. What differs is the stack. [`run`] lets one download happen and says how long it took.
//!
//! | file | owns |
//! |---|---|
//! | `network` | the link, the clock and the loop; the trait [`End`] |
//! | `application` | a download: request, answer, and the check of each byte |
//! | `seat` | what an end has besides its stack |
//! | `fulmar`, `quinn` | an end of each stack |

mod application;
mod fulmar;
mod network;
mod quinn;
mod seat;

pub use network::{End, Failure, Outcome};
pub use seat::Seated;

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_sim::LinkConfig;
use serde::Serialize;

/// The application protocol.
const ALPN: &[u8] = b"lab-peers";
const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 1_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 443);

/// A stack with a congestion controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stack {
    /// Fulmar with BBR.
    FulmarBbr,
    /// Fulmar with CUBIC.
    FulmarCubic,
    /// quinn-proto with BBR.
    QuinnBbr,
    /// quinn-proto with CUBIC.
    QuinnCubic,
}

/// A download.
#[derive(Debug, Clone)]
pub struct Download {
    /// What the client runs.
    pub client: Stack,
    /// What the server runs.
    pub server: Stack,
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
    /// How much.
    pub bytes: u64,
    /// When the client goes over to another socket, in ascending order.
    pub moves: Vec<Duration>,
    /// Decides everything that is left to chance.
    pub seed: u64,
}

impl Stack {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::FulmarBbr, Self::FulmarCubic, Self::QuinnBbr, Self::QuinnCubic];

    fn end(self, client: Option<u64>, seed: u64) -> Box<dyn End> {
        match self {
            Self::FulmarBbr | Self::FulmarCubic => {
                Box::new(fulmar::FulmarEnd::new(self == Self::FulmarBbr, client, seed))
            }
            Self::QuinnBbr | Self::QuinnCubic => {
                Box::new(quinn::QuinnEnd::new(self == Self::QuinnBbr, client, seed))
            }
        }
    }
}

/// Lets a download happen.
///
/// # Errors
/// An end lost its connection, got a wrong byte, or was not done within an hour.
pub fn run(download: &Download) -> Result<Outcome, Failure> {
    fulmar_lab::crypto::seed(download.seed);
    let mut client = download.client.end(Some(download.bytes), download.seed);
    let mut server = download.server.end(None, download.seed + 1);
    let links = (download.up.clone(), download.down.clone());
    network::run(&mut *client, &mut *server, links, &download.moves, download.seed)
}

fn client_address() -> SocketAddr {
    CLIENT.into()
}

fn server_address() -> SocketAddr {
    SERVER.into()
}
