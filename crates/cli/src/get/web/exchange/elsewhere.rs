//! The rest of a body of which nothing more comes, over another connection.
//!
//! A router may come to drop what it has let through, or forget a connection whose server does not follow its client to another port. A
//! connection that is silent ends after half a minute, and one over which acknowledgements come never does.

use std::time::Duration;

use fulmar_h3::Body;
use http::{Method, Response, StatusCode};
use tokio::time::sleep;

use super::super::part_of::Part;
use super::{Done, Exchange};
use crate::get::web::sink::Sink;
use crate::tls::Refusal;

/// A body of which some has come is suspected when no more has for this long.
pub(super) const SUSPECTED_AFTER: Duration = Duration::from_secs(5);

/// How long it may still go on once the rest has begun to come elsewhere: the network may have been interrupted.
const CHANCE: Duration = Duration::from_secs(1);

/// The response with the rest, and who has judged the certificate of its server.
pub(super) type Elsewhere = (Response<Body>, Refusal);

impl Exchange<'_> {
    /// Whether the rest of a body can be asked for beside it: of a file of a known version, of which asking twice does no harm.
    pub(super) fn may_go_on_elsewhere(&self, done: &Done, expected: Option<u64>) -> bool {
        let is_under_way = done.bytes > 0 && expected.is_some_and(|expected| done.bytes < expected);
        is_under_way
            && self.validator.is_some()
            && self.job.asked.method == Method::GET
            && !self.is_of_a_range()
            && self.job.asked.is_repeatable()
    }

    /// Asks for the rest of it over another connection. Waits for ever if that is not to be had there.
    pub(super) async fn elsewhere(&self, done: &Done) -> Elsewhere {
        let clients = &self.job.clients;
        let Ok(client) = clients.spare(&done.url.authority) else { return std::future::pending().await };
        let found = self.ask_of(client, &done.url, &Method::GET, false).await.ok();
        let held = self.sink.as_ref().map_or(0, Sink::len);
        let goes_on = |response: &Response<Body>| {
            response.status() == StatusCode::PARTIAL_CONTENT
                && self.fits(Part::of(response.headers()), held, response.headers())
        };
        let Some(found) = found.filter(|(response, _)| goes_on(response)) else {
            return std::future::pending().await;
        };
        sleep(CHANCE).await;
        let why = "nothing more comes; the rest is fetched over another connection";
        self.job.output.note(&format!("{}: {why}", done.url));
        clients.use_spare(&done.url.authority);
        found
    }
}
