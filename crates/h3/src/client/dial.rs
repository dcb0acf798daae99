//! A connection that is being made, for whoever waits for it.

use std::sync::{Arc, Mutex, PoisonError};

use fulmar::ConnectionError;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::info::ConnectionInfo;
use super::race::Winner;
use crate::error::Error;

/// A connection, and what there is to tell of it.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) winner: Winner,
    pub(super) info: ConnectionInfo,
}

/// An attempt to reach a server, in a task of its own: it goes on while those who wait for it do other things, so that none of them
/// holds up another. It ends when nobody waits any more.
#[derive(Debug)]
pub(super) struct Dial {
    task: AbortHandle,
    is_over: watch::Receiver<bool>,
    made: Arc<Taken>,
}

/// What comes of it. A connection is for the first who takes it, and the others look at what the server has then. A failure is for all
/// who have waited: each of them would wait as long again for the next one.
type Taken = Mutex<Option<Result<Made, Error>>>;

impl Dial {
    /// Begins an attempt, which ends with `closed`.
    pub(super) fn begin(
        attempt: impl Future<Output = Result<Made, Error>> + Send + 'static,
        closed: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<Self> {
        let made = Arc::<Taken>::default();
        let (sender, is_over) = watch::channel(false);
        let task = tokio::spawn({
            let made = Arc::clone(&made);
            async move {
                let result = tokio::select! {
                    result = attempt => result,
                    () = closed => Err(ConnectionError::LocallyClosed.into()),
                };
                *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                sender.send_replace(true);
            }
        });
        Arc::new(Self { task: task.abort_handle(), is_over, made })
    }

    /// Whether nothing more comes of it for who has not waited.
    pub(super) fn is_over(&self) -> bool {
        *self.is_over.borrow() || self.is_over.has_changed().is_err()
    }

    /// Waits for what comes of it; nothing, if another one was sooner.
    ///
    /// # Errors
    ///
    /// Why no connection was made.
    pub(super) async fn made(&self) -> Result<Option<Made>, Error> {
        let over = self.is_over.clone().wait_for(|is_over| *is_over).await.map(drop);
        over.map_err(|gone| Error::Setup(gone.into()))?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = &*made {
            let copy = error.for_another();
            return made.replace(Err(copy)).transpose();
        }
        made.take().transpose()
    }
}

impl Drop for Dial {
    fn drop(&mut self) {
        self.task.abort();
    }
}
