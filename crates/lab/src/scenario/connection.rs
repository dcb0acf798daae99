//! The workload of a scenario file: `[[connection]]`.

use std::time::Duration;

use fulmar_proto::TransportConfig;
use serde::Deserialize;

use super::ControllerName;
use super::endpoints::EndpointSpec;
use super::values::{Count, Millis, Seconds};
use crate::lab::Churn;
use crate::{MediaStream, Workload};

/// Bytes of a request for a download, if the file does not say.
const REQUEST_BYTES: u64 = 100;

/// What a packet has beside an unreliable datagram: the first byte, a connection ID of 8 bytes, a packet number of 4 and the tag of
/// the cipher; type and length of the frame.
const DATAGRAM_OVERHEAD: u16 = 1 + 8 + 4 + 16 + 3;

/// A connection, or several ones one after another, and what is done with it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectionSpec {
    /// Bytes that the client sends on each stream.
    upload_bytes: Option<u64>,
    /// Bytes that the server sends back on each stream.
    pub(crate) download_bytes: Option<u64>,
    #[serde(default = "one")]
    streams: Count,
    #[serde(default)]
    order: Order,
    pub(crate) datagrams: Option<DatagramSpec>,
    /// Streams of frames at a steady pace.
    #[serde(default)]
    media: Vec<MediaSpec>,
    /// When the connection starts.
    #[serde(default)]
    pub(crate) start_s: Seconds,
    /// The client closes it so long after its handshake, whatever is under way.
    pub(crate) stop_after_s: Option<Seconds>,
    /// How many such connections there are, one after another.
    #[serde(default = "one")]
    pub(crate) repeat: Count,
    /// The client's controller, if it is not the run's.
    pub(crate) controller: Option<ControllerName>,
    /// What its client has otherwise than the others.
    #[serde(default)]
    pub(crate) client: EndpointSpec,
    /// The name of the path that it begins on; without it, or where this path is left out, the first one.
    pub(crate) path: Option<String>,
    /// Whether it may have several paths, where the scenario has; without it, the client's configuration says so.
    pub(crate) multipath: Option<bool>,
    /// Paths that the client opens and abandons meanwhile.
    churn: Option<ChurnSpec>,
    /// Whether completion does not wait for it.
    #[serde(default)]
    pub(crate) background: bool,
}

/// Unreliable datagrams at a steady pace.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatagramSpec {
    pub(crate) from: Sender,
    pub(crate) count: Count,
    pub(crate) bytes: u16,
    interval_ms: Millis,
    /// After this time a datagram is of no use; the share of those that came in time is a figure of the run.
    pub(crate) deadline_ms: Option<Millis>,
}

/// Paths that are opened and abandoned, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChurnSpec {
    paths: Count,
    /// How long each is open.
    each_ms: Millis,
}

/// A stream of frames, as of audio or video.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct MediaSpec {
    from: Sender,
    frames: Count,
    interval_ms: Millis,
    bytes: Count,
    /// A larger frame, again and again.
    key: Option<KeyFrameSpec>,
    #[serde(default)]
    priority: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFrameSpec {
    every: Count,
    bytes: Count,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sender {
    Client,
    Server,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Sequence,
    Parallel,
}

fn one() -> Count {
    Count(1)
}

impl ConnectionSpec {
    /// What the client does.
    pub(crate) fn client_workload(&self) -> Workload {
        let (size, bidirectional) = match (self.upload_bytes, self.download_bytes) {
            (upload, Some(_)) => (upload.unwrap_or(REQUEST_BYTES), 1.0),
            (Some(upload), None) => (upload, 0.0),
            (None, None) => (0, 0.0),
        };
        let has_streams = self.upload_bytes.is_some() || self.download_bytes.is_some();
        let workload = Workload {
            streams: if has_streams { self.streams.0 } else { 0 },
            in_sequence: self.order == Order::Sequence,
            bidirectional,
            size: size..=size,
            churn: self.churn.map(|churn| Churn { paths: churn.paths.0, each: churn.each_ms.0 }),
            ..Workload::default()
        };
        self.with_extras(workload, Sender::Client)
    }

    /// What the server does.
    pub(crate) fn server_workload(&self) -> Workload {
        let reply = self.download_bytes.unwrap_or(0);
        self.with_extras(Workload::replies(reply), Sender::Server)
    }

    /// Whether the server has something to send on it: replies, unreliable datagrams or frames.
    pub(crate) fn asks_server(&self) -> bool {
        let datagrams = self.datagrams.is_some_and(|datagrams| datagrams.from == Sender::Server);
        let media = self.media.iter().any(|media| media.from == Sender::Server);
        self.download_bytes.is_some() || datagrams || media
    }

    /// Whether one side sends frames of audio or video on it.
    pub(crate) fn has_media(&self) -> bool {
        !self.media.is_empty()
    }

    /// Bytes of streams that both sides send, on all repetitions.
    pub(crate) fn bytes(&self) -> u64 {
        let (client, server) = (self.client_workload(), self.server_workload());
        let streams =
            u64::from(client.streams).saturating_mul(client.size.end().saturating_add(*server.reply.end()));
        let media = client.media.iter().chain(&server.media).map(MediaStream::total_bytes).sum();
        streams.saturating_add(media).saturating_mul(u64::from(self.repeat.0))
    }

    /// The workload with what this side sends beside the streams of requests.
    fn with_extras(&self, workload: Workload, side: Sender) -> Workload {
        let media = self.media.iter().filter(|media| media.from == side).map(MediaSpec::model).collect();
        let workload = Workload { media, times_reads: self.has_media(), ..workload };
        match self.datagrams {
            Some(datagrams) if datagrams.from == side => Workload {
                datagrams: datagrams.count.0,
                datagram_size: u64::from(datagrams.bytes)..=u64::from(datagrams.bytes),
                datagram_interval: Some(datagrams.interval_ms.0),
                ..workload
            },
            _ => workload,
        }
    }

    /// The client's configuration, where that of the other connections is `config`.
    pub(crate) fn client_config(&self, mut config: TransportConfig) -> TransportConfig {
        self.client.apply(&mut config);
        config
    }

    /// After which time a datagram is of no use.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.datagrams?.deadline_ms.map(|deadline| deadline.0)
    }

    /// Why its unreliable datagrams cannot travel between these ends, if so.
    pub(crate) fn datagram_problem(
        &self,
        client: &TransportConfig,
        server: &TransportConfig,
    ) -> Option<String> {
        let DatagramSpec { from, bytes, .. } = self.datagrams?;
        let sender = if from == Sender::Client { client } else { server };
        let mtu = if sender.mtu_discovery { sender.mtu_max } else { sender.initial_mtu };
        let most = mtu.saturating_sub(DATAGRAM_OVERHEAD);
        let problem =
            || format!("a datagram of {bytes} bytes never fits a packet, which has room for {most}");
        (bytes > most).then(problem)
    }

    /// What makes no sense about this connection, seen alone.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let idle = self.upload_bytes.is_none() && self.download_bytes.is_none();
        if idle && self.datagrams.is_none() && self.media.is_empty() {
            return Some("a connection needs `upload_bytes`, `download_bytes`, `datagrams` or `media`");
        }
        let short = self.datagrams.is_some_and(|datagrams| datagrams.bytes < 8);
        short.then_some("a datagram has at least 8 bytes, which hold its number")
    }
}

impl MediaSpec {
    fn model(&self) -> MediaStream {
        MediaStream {
            interval: self.interval_ms.0,
            frames: self.frames.0,
            bytes: u64::from(self.bytes.0),
            key_every: self.key.map(|key| key.every.0),
            key_bytes: self.key.map_or(0, |key| u64::from(key.bytes.0)),
            priority: self.priority,
        }
    }
}
