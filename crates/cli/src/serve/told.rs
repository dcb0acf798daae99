//! What is told of requests over HTTP: lines of the log, figures, and that one is under way.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::uri::PathAndQuery;
use http::{Method, StatusCode, Version, request};
use tracing::info;

use super::access_log::{AccessLog, Request};
use super::figures::Figures;
use super::files::SourceError;
use super::transfers::{Transfers, UnderWay};

/// Where it is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tale {
    pub(super) log: Option<Arc<AccessLog>>,
    pub(super) figures: Arc<Figures>,
    pub(super) transfers: Transfers,
}

/// What was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    remote: SocketAddr,
    protocol: &'static str,
    method: Method,
    target: Option<PathAndQuery>,
}

impl Asked {
    pub(super) fn of(remote: SocketAddr, request: &request::Parts) -> Self {
        let target = request.uri.path_and_query().cloned();
        let protocol = match request.version {
            Version::HTTP_3 => "HTTP/3.0",
            Version::HTTP_2 => "HTTP/2.0",
            Version::HTTP_10 => "HTTP/1.0",
            _ => "HTTP/1.1",
        };
        Self { remote, protocol, method: request.method.clone(), target }
    }

    /// A request of which nothing could be read.
    pub(super) fn unread(remote: SocketAddr, protocol: &'static str) -> Self {
        let method = Method::from_bytes(b"-").unwrap_or_default();
        Self { remote, protocol, method, target: None }
    }
}

impl Asked {
    fn target(&self) -> &str {
        self.target.as_ref().map_or("", PathAndQuery::as_str)
    }
}

/// A request that is being answered. When this is dropped, it is told.
pub(crate) struct Told {
    tale: Tale,
    asked: Asked,
    start: Instant,
    status: u16,
    bytes: u64,
    _under_way: UnderWay,
}

impl Tale {
    pub(super) fn begin(&self, asked: Asked) -> Told {
        Told {
            tale: self.clone(),
            asked,
            start: Instant::now(),
            status: CLIENT_GONE,
            bytes: 0,
            _under_way: self.transfers.begin(),
        }
    }
}

/// What stands for a client that has gone before there was a response, as other servers have it.
const CLIENT_GONE: u16 = 499;

impl Told {
    /// Who asks.
    pub(super) fn remote(&self) -> SocketAddr {
        self.asked.remote
    }

    /// Whether there is to be no body.
    pub(super) fn is_head(&self) -> bool {
        self.asked.method == Method::HEAD
    }

    pub(super) fn status(&mut self, status: StatusCode) {
        self.status = status.as_u16();
    }

    /// So many bytes of the body were taken.
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// The body ends too early.
    pub(super) fn failed(&mut self, error: &SourceError) {
        info!(remote = %self.asked.remote, path = self.asked.target(), "response not finished: {error}");
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let asked = &self.asked;
        self.tale.figures.count(asked.protocol, self.status, self.bytes);
        let Some(log) = &self.tale.log else { return };
        log.add(Request {
            kind: "request",
            time: SystemTime::now(),
            remote: asked.remote,
            protocol: asked.protocol,
            method: asked.method.clone(),
            path: asked.target(),
            status: self.status,
            bytes: self.bytes,
            duration_s: self.start.elapsed().as_secs_f64(),
        });
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("asked", &self.asked).finish_non_exhaustive()
    }
}
