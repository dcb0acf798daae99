//! A download: the client asks for a number of bytes on a stream, the server sends them, the client checks each.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

/// Bytes that the server hands to its connection at once.
const PIECE: usize = 65_536;
/// The request is a number in eight bytes.
const REQUEST: usize = 8;

/// What the application needs of a connection.
pub(crate) trait Streams {
    type Id: Copy;
    fn open(&mut self) -> Option<Self::Id>;
    fn accept(&mut self) -> Option<Self::Id>;
    fn read(&mut self, id: Self::Id) -> Read;
    /// Returns how much was taken; 0 when there is no room now.
    fn write(&mut self, id: Self::Id, data: &[u8]) -> usize;
    fn finish(&mut self, id: Self::Id);
}

/// What a stream has to read.
pub(crate) enum Read {
    /// These bytes.
    Data(Bytes),
    /// Nothing now.
    Blocked,
    /// Nothing any more.
    End,
    /// Something that must not be.
    Wrong(String),
}

/// One side of the download. It looks at everything each time, whatever may have happened.
#[derive(Debug)]
pub(crate) struct Application<Id> {
    /// What a client asks for.
    wanted: Option<u64>,
    stream: Option<Id>,
    request: Vec<u8>,
    /// How far a server has to send.
    answer: u64,
    written: u64,
    read: u64,
    finished: bool,
    done: bool,
}

impl<Id: Copy> Application<Id> {
    pub(crate) fn new(wanted: Option<u64>) -> Self {
        Self {
            wanted,
            stream: None,
            request: Vec::new(),
            answer: 0,
            written: 0,
            read: 0,
            finished: false,
            done: false,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Goes on as far as the connection lets it.
    pub(crate) fn run(&mut self, streams: &mut impl Streams<Id = Id>) -> Result<(), String> {
        match self.wanted {
            Some(wanted) => self.run_client(wanted, streams),
            None => self.run_server(streams),
        }
    }

    fn run_client(&mut self, wanted: u64, streams: &mut impl Streams<Id = Id>) -> Result<(), String> {
        if self.stream.is_none() {
            self.stream = streams.open();
            if let Some(id) = self.stream {
                if streams.write(id, &wanted.to_be_bytes()) != REQUEST {
                    return Err("a new stream has no room for a request".to_owned());
                }
                streams.finish(id);
            }
        }
        let Some(id) = self.stream else { return Ok(()) };
        while !self.done {
            match streams.read(id) {
                Read::Data(data) => {
                    if let Some(wrong) = (self.read..).zip(&data).find(|(at, byte)| content(*at) != **byte) {
                        return Err(format!("the byte at {} is wrong", wrong.0));
                    }
                    self.read += data.len() as u64;
                }
                Read::Blocked => break,
                Read::End if self.read == wanted => self.done = true,
                Read::End => return Err(format!("{} bytes came instead of {wanted}", self.read)),
                Read::Wrong(what) => return Err(what),
            }
        }
        Ok(())
    }

    fn run_server(&mut self, streams: &mut impl Streams<Id = Id>) -> Result<(), String> {
        if self.stream.is_none() {
            self.stream = streams.accept();
        }
        let Some(id) = self.stream else { return Ok(()) };
        while self.request.len() < REQUEST {
            match streams.read(id) {
                Read::Data(data) => self.request.extend(data),
                Read::Blocked => return Ok(()),
                Read::End => return Err("a request ended early".to_owned()),
                Read::Wrong(what) => return Err(what),
            }
            if let Ok(request) = self.request.as_slice().try_into() {
                self.answer = u64::from_be_bytes(request);
            }
        }
        while self.written < self.answer {
            let len = (PIECE as u64).min(self.answer - self.written);
            let piece: Vec<u8> = (self.written..self.written + len).map(content).collect();
            match streams.write(id, &piece) {
                0 => return Ok(()),
                taken => self.written += taken as u64,
            }
        }
        if !self.finished {
            streams.finish(id);
            self.finished = true;
        }
        Ok(())
    }
}

/// The byte at an offset: of a pattern that does not repeat within a window.
fn content(offset: u64) -> u8 {
    ((offset >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (56 - 8 * (offset & 7).min(6))) as u8
}

/// A seed of 32 bytes out of a number.
pub(crate) fn seed_bytes(seed: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (index, part) in bytes.chunks_exact_mut(8).enumerate() {
        let mut hasher = DefaultHasher::new();
        (seed, index).hash(&mut hasher);
        part.copy_from_slice(&hasher.finish().to_be_bytes());
    }
    bytes
}
