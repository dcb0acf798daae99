//! When a URL is given up that has not come: its time is over, or the user ends the program.

use std::future::{Future, pending};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::exit;
use crate::duration::Span;
use crate::failure::Failure;
use crate::get::Url;

/// How long the end is put off by what has come and is being written.
const WRITE_MAX: Duration = Duration::from_secs(1);

/// Until when a URL is waited for.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    what: String,
    /// When the time is over, and how long it was.
    deadline: Option<(Instant, Duration)>,
    /// Whether the user has ended the program.
    ended: watch::Receiver<bool>,
}

impl Limit {
    /// From now on; a time of zero sets none.
    pub(super) fn new(url: &Url, max_time: Option<Duration>, ended: watch::Receiver<bool>) -> Self {
        let deadline = max_time
            .filter(|time| !time.is_zero())
            .and_then(|time| Some((Instant::now().checked_add(time)?, time)));
        Self { what: url.to_string(), deadline, ended }
    }

    /// Waits until it is reached, and says why.
    pub(super) fn over(&self) -> impl Future<Output = Failure> + use<> {
        let Self { what, deadline, mut ended } = self.clone();
        async move {
            let late = async {
                match deadline {
                    Some((deadline, time)) => {
                        sleep_until(deadline).await;
                        time
                    }
                    None => pending().await,
                }
            };
            tokio::select! {
                time = late => {
                    let why = format!("it was not there within {} (--max-time)", Span(time));
                    Failure::Http { what, why, exit: exit::TOO_LATE }
                }
                _ = ended.wait_for(|is_ended| *is_ended) => Failure::Interrupted,
            }
        }
    }

    /// What comes of `work`, if it comes in time.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            output = work => Ok(output),
            failure = self.over() => Err(failure),
        }
    }

    /// The same of what writes down what has come, which has a moment more: else it would have come in vain.
    pub(super) async fn settle<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let over = async {
            let failure = self.over().await;
            sleep(WRITE_MAX).await;
            failure
        };
        tokio::select! {
            biased;
            output = work => Ok(output),
            failure = over => Err(failure),
        }
    }
}
