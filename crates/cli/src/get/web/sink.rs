//! Where a response is written to.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::thread;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::unpack::Unpacker;
use crate::failure::Failure;
use crate::part::PartFile;

/// Where a response is written to, off the thread of the runtime.
#[derive(Debug)]
pub(super) struct Sink {
    target: Target,
    unpacker: Option<Unpacker>,
}

#[derive(Debug)]
enum Target {
    /// So many bytes have gone there.
    Stdout(u64),
    File(PartFile),
}

impl Target {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(count) => {
                let mut stdout = io::stdout().lock();
                *count += bytes.len() as u64;
                let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
                written.map_err(|error| match error.kind() {
                    ErrorKind::BrokenPipe => Failure::ReaderGone,
                    _ => Failure::StandardOutput(error),
                })
            }
            Self::File(part) => part.write(bytes),
        }
    }
}

impl Sink {
    /// What is there of the file, and of what it is a part.
    pub(super) async fn open(file: Option<PathBuf>, resume: bool) -> Result<(Self, Option<String>), Failure> {
        let to = |target| Self { target, unpacker: None };
        let Some(file) = file else { return Ok((to(Target::Stdout(0)), None)) };
        let is_pipe = PartFile::is_in_place(&file);
        let open = move || {
            let (part, validator) =
                if resume { PartFile::resume(file)? } else { (PartFile::create(file)?, None) };
            Ok((to(Target::File(part)), validator))
        };
        match is_pipe {
            true => in_own_thread(open).await,
            false => spawn_blocking(open).await.unwrap_or(Err(Failure::Thread("disk"))),
        }
    }

    /// Whether someone waits for it at the other end, so that it is not collected first.
    pub(super) fn is_stream(&self) -> bool {
        match &self.target {
            Target::Stdout(_) => true,
            Target::File(part) => part.is_stream(),
        }
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self.target, Target::Stdout(_))
    }

    /// How much is there.
    pub(super) fn len(&self) -> u64 {
        match &self.target {
            Target::Stdout(written) => *written,
            Target::File(part) => part.len(),
        }
    }

    pub(super) fn begin_anew(&mut self, validator: Option<&str>) -> Result<(), Failure> {
        self.unpacker = None;
        match &mut self.target {
            Target::Stdout(0) => Ok(()),
            Target::Stdout(_) => Err(Failure::CannotBeginAnew("standard output".to_owned())),
            Target::File(part) => part.begin_anew(validator),
        }
    }

    /// What is written next is unpacked.
    pub(super) fn unpack_by(&mut self, unpacker: Option<Unpacker>) {
        self.unpacker = unpacker;
    }

    /// Begins to write. The bytes come back, to be used again.
    pub(super) fn write(mut self, bytes: Vec<u8>) -> Writing {
        Writing(spawn_blocking(move || {
            let Self { target, unpacker } = &mut self;
            let written = match unpacker {
                Some(unpacker) => unpacker.unpack(&bytes, |bytes| target.write(bytes)),
                None => target.write(&bytes),
            };
            (self, bytes, written)
        }))
    }

    /// All is there: of how many bytes it is.
    pub(super) async fn commit(mut self) -> Result<u64, Failure> {
        if let (Target::Stdout(written), None) = (&self.target, &self.unpacker) {
            return Ok(*written);
        }
        let commit = move || {
            let Self { target, unpacker } = &mut self;
            if let Some(unpacker) = unpacker {
                unpacker.finish(|bytes| target.write(bytes))?;
            }
            let len = self.len();
            match self.target {
                Target::Stdout(_) => {}
                Target::File(part) => part.commit()?,
            }
            Ok(len)
        };
        spawn_blocking(commit).await.unwrap_or(Err(Failure::Thread("disk")))
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
