//! The limit: packets that are sealed, sent with GSO, received with GRO and opened, without any protocol. No stack can be faster
//! on this machine with this cipher. A credit keeps the socket's buffer from overflowing; a packet that is lost all the same counts as
//! not received.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use crate::client::{Figures, Meter};
use crate::digest::Digest;
use crate::failure::{Failure, Result};
use crate::options::{Cipher, ClientOptions, Transport, Workload};
use crate::process::kilobytes_of;
use crate::protocol::Content;

/// The largest train that a kernel takes.
const TRAIN: usize = 65_000;
const SEGMENTS: usize = 64;
/// A packet number in the clear, as a QUIC packet has it.
const HEADER: usize = 8;
const TAG: usize = 16;
/// Bytes that may be sent and not reported as received.
const CREDIT: u64 = 2 << 20;
/// How often the receiver reports, in bytes.
const REPORT: u64 = 256 << 10;
/// Half of it is for the kernel's own structures.
const BUFFER: usize = 16 << 20;
/// A receiver that is silent for so long has lost something: its credit is given back.
const STALL: Duration = Duration::from_millis(20);
/// Both ends give up after this long without any progress.
const PATIENCE: Duration = Duration::from_secs(10);
/// Trains that are received at a time.
const BATCH: usize = 8;
const KEY: [u8; 32] = [0x5a; 32];

struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    fn bind() -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        // More than the system allows is refused, and then there is what it allows.
        let _ = state.set_recv_buffer_size((&socket).into(), BUFFER);
        let _ = state.set_send_buffer_size((&socket).into(), BUFFER);
        socket.set_nonblocking(false)?;
        Ok(Self { socket, state })
    }
}

fn key(cipher: Cipher) -> Result<LessSafeKey> {
    let key = match cipher {
        Cipher::Aes128 => UnboundKey::new(&AES_128_GCM, &KEY[..16]),
        Cipher::Chacha20 => UnboundKey::new(&CHACHA20_POLY1305, &KEY),
    };
    Ok(LessSafeKey::new(key.map_err(Failure::at("the key"))?))
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// Sends to each client what it asks for: so many bytes.
pub(crate) fn serve(transport: &Transport) -> Result<()> {
    let socket = Socket::bind()?;
    println!("listening on {}", socket.socket.local_addr()?);
    let key = key(transport.cipher)?;
    let mut first_number = 0;
    loop {
        socket.socket.set_nonblocking(false)?;
        socket.socket.set_read_timeout(None)?;
        let mut question = [0; 16];
        let (len, client) = socket.socket.recv_from(&mut question)?;
        // Credit that comes late is shorter.
        if len == question.len() {
            let size = u64::from_be_bytes(*question.first_chunk().unwrap_or(&[0; 8]));
            first_number = send(&socket, &key, client, size, usize::from(transport.payload), first_number)?;
        }
    }
}

/// Returns the number of the next packet: no nonce is used twice.
fn send(
    socket: &Socket,
    key: &LessSafeKey,
    client: SocketAddr,
    size: u64,
    payload: usize,
    mut number: u64,
) -> Result<u64> {
    let content = Content::default().prefix(u64::MAX);
    let plain = payload - HEADER - TAG;
    let per_train = (TRAIN / payload).min(SEGMENTS);
    let mut train = Vec::with_capacity(per_train * payload);
    let (mut sent, mut received, mut lost, mut at) = (0, 0, 0, 0);
    let (mut progress, mut digest) = (Instant::now(), Digest::default());
    // The receiver stops at `size`, and what is lost is made up for.
    while received < size {
        if sent - received - lost < CREDIT {
            socket.socket.set_nonblocking(true)?;
            train.clear();
            for _ in 0..per_train {
                let begin = train.len();
                train.extend_from_slice(&number.to_be_bytes());
                at = if at + plain > content.len() { 0 } else { at };
                train.extend_from_slice(&content[at..at + plain]);
                digest.update(&content[at..at + plain]);
                at += 8;
                let (header, body) = train[begin..].split_at_mut(HEADER);
                let tag = key
                    .seal_in_place_separate_tag(nonce(number), Aad::from(&*header), body)
                    .map_err(Failure::at("sealing"))?;
                train.extend_from_slice(tag.as_ref());
                number += 1;
            }
            transmit(socket, client, &train, payload)?;
            sent += (per_train * plain) as u64;
        }
        let wait = sent - received - lost >= CREDIT;
        match credit(socket, wait)? {
            Some(all) if all > received => {
                received = all;
                progress = Instant::now();
            }
            Some(_) => {}
            None if wait => lost = sent - received,
            None => {}
        }
        if progress.elapsed() > PATIENCE {
            return Err(Failure::Truncated);
        }
    }
    std::hint::black_box(digest.value());
    Ok(number)
}

fn transmit(socket: &Socket, destination: SocketAddr, train: &[u8], payload: usize) -> Result<()> {
    let transmit =
        Transmit { destination, ecn: None, contents: train, segment_size: Some(payload), src_ip: None };
    loop {
        match socket.state.try_send((&socket.socket).into(), &transmit) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            result => return Ok(result?),
        }
    }
}

/// How many bytes the receiver has, if it says so.
fn credit(socket: &Socket, wait: bool) -> Result<Option<u64>> {
    if wait {
        socket.socket.set_nonblocking(false)?;
        socket.socket.set_read_timeout(Some(STALL))?;
    }
    let mut bytes = [0; 8];
    match socket.socket.recv(&mut bytes) {
        Ok(8) => Ok(Some(u64::from_be_bytes(bytes))),
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Receives, once to warm up and once to measure.
pub(crate) fn ask(options: &ClientOptions) -> Result<Figures> {
    if options.load.workload != Workload::Download || options.load.streams != 1 {
        return Err(Failure::Unsupported("the limit is one of bulk data"));
    }
    if options.transport.controller.is_some() {
        return Err(Failure::Unsupported("the limit has no controller"));
    }
    let socket = Socket::bind()?;
    socket.socket.connect(options.server)?;
    let key = key(options.transport.cipher)?;
    let mut buffers = vec![vec![0; 65_536]; BATCH];
    receive(&socket, &key, options.load.size / 20, &mut buffers)?;
    let meter = Meter::start(options.server_pid);
    let amount = receive(&socket, &key, options.load.size, &mut buffers)?;
    let mut figures = meter.stop(amount);
    figures.client_peak_kb = kilobytes_of(std::process::id(), "VmHWM");
    figures.server_peak_kb = kilobytes_of(options.server_pid, "VmHWM");
    Ok(figures)
}

fn receive(socket: &Socket, key: &LessSafeKey, size: u64, buffers: &mut [Vec<u8>]) -> Result<u64> {
    // Questions are longer than credit.
    let mut question = [0; 16];
    question[..8].copy_from_slice(&size.to_be_bytes());
    socket.socket.send(&question)?;
    socket.socket.set_read_timeout(Some(PATIENCE))?;
    let (mut received, mut reported, mut digest) = (0, 0, Digest::default());
    let mut metas = [RecvMeta::default(); BATCH];
    while received < size {
        let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| std::io::IoSliceMut::new(buffer)).collect();
        let count = socket.state.recv((&socket.socket).into(), &mut slices, &mut metas)?;
        for (buffer, meta) in buffers.iter_mut().zip(&metas[..count]) {
            for packet in buffer[..meta.len].chunks_mut(meta.stride) {
                let plain = open(key, packet)?;
                digest.update(plain);
                received += plain.len() as u64;
            }
        }
        if received - reported >= REPORT || received >= size {
            socket.socket.send(&received.to_be_bytes())?;
            reported = received;
        }
    }
    // Every packet is authentic. The digest is taken at both ends because the others pay for theirs, and as packets may be lost here
    // it is compared with nothing.
    std::hint::black_box(digest.value());
    Ok(received)
}

fn open<'a>(key: &LessSafeKey, packet: &'a mut [u8]) -> Result<&'a [u8]> {
    if packet.len() < HEADER + TAG {
        return Err(Failure::Damaged("a packet"));
    }
    let (header, sealed) = packet.split_at_mut(HEADER);
    let number = header.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let opened = key.open_in_place(nonce(number), Aad::from(&*header), sealed);
    opened.map(|plain| &*plain).map_err(|_| Failure::Damaged("a packet"))
}
