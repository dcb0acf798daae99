//! A directory of qlog files, one for each connection, written by a thread of its own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fulmar::{ApplicationEntry, ConnectionError, Instant, LogBatch, LogDelivery, LogEntry, LogSink};
use fulmar_h3::HttpEvent;
use fulmar_h3::log::LogEvent as Http3;
use fulmar_qlog::{Flavor, Header, Writer, csv, csv_http3, rfc3339};
use tracing::warn;

use crate::failure::Failure;

/// Entries that each connection remembers, of 32 bytes: at a gigabit per second those of a tenth of a second.
pub(crate) const LOG_ENTRIES: usize = 1 << 15;

/// Batches that wait for the thread, each of up to [`LOG_ENTRIES`]. What comes while so many wait is dropped and counted.
const QUEUE_MAX: usize = 64;

/// Files that are open at once; connections beyond are not written.
const FILES_MAX: usize = 1_000;

/// Takes the logs of connections. [`QlogDir::finish`] waits until all is written.
#[derive(Debug)]
pub(crate) struct QlogDir {
    only_bad: bool,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    sender: Option<SyncSender<(LogBatch, u64)>>,
    thread: Option<JoinHandle<()>>,
    /// Entries that were dropped, by connection, and not told yet.
    missing: BTreeMap<u64, u64>,
    missing_in_all: u64,
}

impl QlogDir {
    /// Makes the directory, and starts the thread. With `only_bad` there are files of connections only that end badly.
    pub(crate) fn start(dir: PathBuf, flavor: Flavor, only_bad: bool) -> Result<Self, Failure> {
        let place = dir.display().to_string();
        fs::create_dir_all(&dir).map_err(Failure::io(format!("cannot make the directory {place}")))?;
        let (sender, batches) = sync_channel(QUEUE_MAX);
        let files = Files { dir, flavor, only_bad, open: BTreeMap::new() };
        let thread = thread::Builder::new().name("qlog".to_owned()).spawn(move || files.run(&batches));
        let thread = thread.map_err(Failure::io("cannot start the thread that writes qlog"))?;
        let queue =
            Queue { sender: Some(sender), thread: Some(thread), missing: BTreeMap::new(), missing_in_all: 0 };
        Ok(Self { only_bad, queue: Mutex::new(queue) })
    }

    /// When it wants entries.
    pub(crate) fn delivery(&self) -> LogDelivery {
        if self.only_bad { LogDelivery::AtTheEnd } else { LogDelivery::AsTheyCome }
    }

    /// Takes no more, waits until all is written, and tells how many entries are missing.
    pub(crate) fn finish(&self) -> u64 {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.sender = None;
        if let Some(thread) = queue.thread.take() {
            // A thread that panicked has told so by itself.
            let _ = thread.join();
        }
        queue.missing_in_all
    }
}

impl LogSink for QlogDir {
    fn take(&self, batch: LogBatch) {
        if self.only_bad && !batch.error.as_ref().is_some_and(is_bad) {
            return;
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Queue { sender: Some(sender), missing, missing_in_all, .. } = &mut *queue else { return };
        let (connection, count) = (batch.connection, (batch.entries.len() + batch.application.len()) as u64);
        // A ring that keeps the latest only is not missing what came before.
        let overwritten = if self.only_bad { 0 } else { batch.overwritten };
        let before = missing.remove(&connection).unwrap_or(0) + overwritten;
        *missing_in_all += overwritten;
        let is_last = batch.is_last;
        if sender.try_send((batch, before)).is_err() {
            *missing_in_all += count;
            if !is_last {
                missing.insert(connection, before + count);
            }
        }
    }
}

/// Whether somebody will want to know what happened.
fn is_bad(error: &ConnectionError) -> bool {
    match error {
        ConnectionError::LocallyClosed => false,
        ConnectionError::ApplicationClosed { code, .. } => code.get() != 0,
        _ => true,
    }
}

/// The files, in their thread.
struct Files {
    dir: PathBuf,
    flavor: Flavor,
    only_bad: bool,
    open: BTreeMap<u64, Writer<BufWriter<File>>>,
}

impl Files {
    fn run(mut self, batches: &Receiver<(LogBatch, u64)>) {
        while let Ok((batch, missing)) = batches.recv() {
            let connection = batch.connection;
            if let Err(error) = self.take(batch, missing) {
                warn!("cannot write a qlog file: {error}");
                self.open.remove(&connection);
            }
        }
        for (_, writer) in std::mem::take(&mut self.open) {
            if let Err(error) = writer.finish() {
                warn!("cannot end a qlog file: {error}");
            }
        }
    }

    fn take(&mut self, batch: LogBatch, missing: u64) -> io::Result<()> {
        let LogBatch { connection, side, original_cid, entries, application, is_last, .. } = batch;
        let http3: Vec<(Instant, &Http3)> = application.iter().filter_map(of_http3).collect();
        let start = [entries.first().map(|first| first.at), http3.first().map(|(at, _)| *at)];
        let start = start.into_iter().flatten().min().unwrap_or(Instant::ZERO);
        let group_id: String = original_cid.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let end = if side.is_client() { "client" } else { "server" };
        let path = |extension| self.dir.join(format!("{group_id}_{end}.{extension}"));
        if !self.open.contains_key(&connection) {
            if self.open.len() >= FILES_MAX {
                return Ok(());
            }
            let title = format!("fulmar {end}");
            let wall_clock_time = wall_clock(&entries);
            let header = Header {
                side,
                group_id: &group_id,
                title: &title,
                start,
                wall_clock_time: &wall_clock_time,
                flavor: self.flavor,
            };
            let file = BufWriter::new(File::create(path("sqlog"))?);
            self.open.insert(connection, Writer::new(file, &header)?);
        }
        if self.only_bad {
            write_csv(&path("csv"), &entries, &http3)?;
        }
        let Some(writer) = self.open.get_mut(&connection) else { return Ok(()) };
        if missing > 0 {
            writer.note_missing(start, missing)?;
        }
        writer.write_with_http3(&entries, &http3)?;
        if is_last && let Some(writer) = self.open.remove(&connection) {
            writer.finish()?;
        }
        Ok(())
    }
}

/// What the clock on the wall showed at the first of entries that have just come; empty if it shows nonsense.
#[allow(clippy::disallowed_methods, reason = "a file says when it was written; nothing else depends on it")]
fn wall_clock(entries: &[LogEntry]) -> String {
    let span = match entries {
        [first, .., last] => last.at.saturating_since(first.at),
        _ => Duration::ZERO,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or_else(|_| String::new(), |now| rfc3339(now.saturating_sub(span)))
}

fn write_csv(path: &Path, entries: &[LogEntry], http3: &[(Instant, &Http3)]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(csv(entries).as_bytes())?;
    file.write_all(csv_http3(http3).as_bytes())
}

/// What HTTP/3 has noted.
fn of_http3(entry: &ApplicationEntry) -> Option<(Instant, &Http3)> {
    Some((entry.at, &entry.event::<HttpEvent>()?.0))
}

#[cfg(test)]
mod tests;
