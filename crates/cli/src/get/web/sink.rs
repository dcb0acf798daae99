//! Where a response is written to.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::thread;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::failure::Failure;
use crate::part::PartFile;

/// Where a response is written to, off the thread of the runtime.
#[derive(Debug)]
pub(super) enum Sink {
    /// So many bytes have gone there.
    Stdout(u64),
    File(PartFile),
}

impl Sink {
    /// What is there of the file, and of what it is a part.
    pub(super) async fn open(file: Option<PathBuf>, resume: bool) -> Result<(Self, Option<String>), Failure> {
        let Some(file) = file else { return Ok((Self::Stdout(0), None)) };
        let is_pipe = PartFile::is_in_place(&file);
        let open = move || {
            let (part, validator) =
                if resume { PartFile::resume(file)? } else { (PartFile::create(file)?, None) };
            Ok((Self::File(part), validator))
        };
        match is_pipe {
            true => in_own_thread(open).await,
            false => spawn_blocking(open).await.unwrap_or(Err(Failure::Thread("disk"))),
        }
    }

    /// Whether someone waits for it at the other end, so that it is not collected first.
    pub(super) fn is_stream(&self) -> bool {
        match self {
            Self::Stdout(_) => true,
            Self::File(part) => part.is_stream(),
        }
    }

    /// How much is there.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Stdout(written) => *written,
            Self::File(part) => part.len(),
        }
    }

    pub(super) fn begin_anew(&mut self, validator: Option<&str>) -> Result<(), Failure> {
        match self {
            Self::Stdout(0) => Ok(()),
            Self::Stdout(_) => Err(Failure::CannotBeginAnew("standard output".to_owned())),
            Self::File(part) => part.begin_anew(validator),
        }
    }

    /// Begins to write. The bytes come back, to be used again.
    pub(super) fn write(mut self, bytes: Vec<u8>) -> Writing {
        Writing(spawn_blocking(move || {
            let written = match &mut self {
                Self::Stdout(count) => {
                    let mut stdout = io::stdout().lock();
                    *count += bytes.len() as u64;
                    let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
                    written.map_err(|error| match error.kind() {
                        ErrorKind::BrokenPipe => Failure::ReaderGone,
                        _ => Failure::StandardOutput(error),
                    })
                }
                Self::File(part) => part.write(&bytes),
            };
            (self, bytes, written)
        }))
    }

    /// All is there.
    pub(super) async fn commit(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(_) => Ok(()),
            Self::File(part) => {
                spawn_blocking(move || part.commit()).await.unwrap_or(Err(Failure::Thread("disk")))
            }
        }
    }
}

/// Does what may wait for ever, as the opening of a pipe does that nobody reads. Nobody waits for its thread: the end of the program ends it.
async fn in_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (done, is_done) = oneshot::channel();
    let started = thread::Builder::new().spawn(move || drop(done.send(work())));
    started.map_err(Failure::io("cannot start a thread"))?;
    is_done.await.unwrap_or(Err(Failure::Thread("disk")))
}

/// Bytes on their way to the disk.
pub(super) struct Writing(JoinHandle<(Sink, Vec<u8>, Result<(), Failure>)>);

impl Writing {
    pub(super) async fn finish(self) -> Result<(Sink, Vec<u8>), Failure> {
        let (sink, bytes, written) = self.0.await.map_err(|_| Failure::Thread("disk"))?;
        written.map(|()| (sink, bytes))
    }
}
