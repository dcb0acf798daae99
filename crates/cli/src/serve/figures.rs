//! Figures of HTTP, for Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// The versions, as the log of requests names them.
const PROTOCOLS: [&str; 5] = ["HTTP/0.9", "HTTP/1.0", "HTTP/1.1", "HTTP/2.0", "HTTP/3.0"];
/// The first digits of statuses.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    versions: [Version; PROTOCOLS.len()],
}

#[derive(Debug, Default)]
struct Version {
    requests: [AtomicU64; CLASSES.len()],
    bytes: AtomicU64,
}

impl Figures {
    /// A request of a version is over.
    pub(super) fn count(&self, protocol: &str, status: u16, bytes: u64) {
        let Some(version) = PROTOCOLS.iter().position(|name| *name == protocol) else { return };
        let class = usize::from(status / 100).saturating_sub(1).min(CLASSES.len() - 1);
        self.versions[version].requests[class].fetch_add(1, Ordering::Relaxed);
        self.versions[version].bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// In the text format, version 0.0.4. A series begins with its first request.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(
            "# HELP fulmar_http_requests_total Requests that are over, by version and status.\n\
             # TYPE fulmar_http_requests_total counter\n",
        );
        let versions = || PROTOCOLS.iter().zip(&self.versions);
        for (name, version) in versions() {
            for (class, count) in CLASSES.iter().zip(&version.requests) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let _ = writeln!(
                        text,
                        "fulmar_http_requests_total{{version=\"{name}\",status=\"{class}\"}} {count}"
                    );
                }
            }
        }
        text.push_str(
            "# HELP fulmar_http_body_bytes_total Bytes of the bodies of responses.\n\
             # TYPE fulmar_http_body_bytes_total counter\n",
        );
        for (name, version) in versions() {
            let bytes = version.bytes.load(Ordering::Relaxed);
            if bytes > 0 {
                let _ = writeln!(text, "fulmar_http_body_bytes_total{{version=\"{name}\"}} {bytes}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_version_and_status() {
        let figures = Figures::default();
        figures.count("HTTP/3.0", 200, 5);
        figures.count("HTTP/3.0", 206, 6);
        figures.count("HTTP/1.1", 404, 0);
        let text = figures.text();
        for line in [
            "fulmar_http_requests_total{version=\"HTTP/3.0\",status=\"2xx\"} 2\n",
            "fulmar_http_requests_total{version=\"HTTP/1.1\",status=\"4xx\"} 1\n",
            "fulmar_http_body_bytes_total{version=\"HTTP/3.0\"} 11\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert!(!text.contains("HTTP/2.0"), "{text}");
    }
}
