//! What errors say, and what becomes of them where the traits of `std::io` are used.

use std::error::Error;
use std::io::{self, ErrorKind};

use bytes::Bytes;
use fulmar::{
    AcceptError, ClosedStream, ConnectError, ConnectionError, ReadError, ReadExactError, ReadToEndError,
    SendDatagramError, StoppedError, VarInt, WriteError,
};

/// An error has these words, and so has the one of `std::io` that it becomes, which is of this kind and holds it.
#[track_caller]
fn becomes<E: Error + Clone + PartialEq + Send + Sync + Into<io::Error> + 'static>(
    error: &E,
    kind: ErrorKind,
    words: &str,
) {
    let made: io::Error = error.clone().into();
    assert_eq!((error.to_string().as_str(), made.to_string().as_str()), (words, words));
    assert_eq!(made.kind(), kind);
    let held = made.get_ref().expect("the error itself is held");
    // What read a whole part holds the error of the read that failed.
    assert!(held.downcast_ref::<E>().is_none_or(|held| held == error));
}

fn code() -> VarInt {
    VarInt::from_u32(7)
}

#[test]
fn each_error_of_a_stream_has_words_and_a_kind() {
    becomes(&ReadError::Reset(code()), ErrorKind::ConnectionReset, "stream reset by the peer with code 7");
    becomes(&ReadError::ClosedStream, ErrorKind::NotConnected, "the stream is closed");
    let early = ReadExactError::FinishedEarly(3);
    becomes(&early, ErrorKind::UnexpectedEof, "the stream ended after 3 bytes");
    let reset = ReadExactError::Read(ReadError::Reset(code()));
    becomes(&reset, ErrorKind::ConnectionReset, "stream reset by the peer with code 7");
    let long = ReadToEndError::TooLong(10);
    becomes(&long, ErrorKind::InvalidData, "the stream is longer than 10 bytes");
    let closed = ReadToEndError::Read(ReadError::ClosedStream);
    becomes(&closed, ErrorKind::NotConnected, "the stream is closed");
    let stopped = WriteError::Stopped(code());
    becomes(&stopped, ErrorKind::BrokenPipe, "sending stopped by the peer with code 7");
    becomes(&WriteError::ClosedStream, ErrorKind::NotConnected, "the stream is closed");
    becomes(&StoppedError::Reset, ErrorKind::NotConnected, "the stream was reset by this end");
    becomes(&ClosedStream, ErrorKind::NotConnected, "the stream is closed");
}

#[test]
fn each_error_of_a_datagram_has_words_and_a_kind() {
    let unsupported = SendDatagramError::UnsupportedByPeer;
    becomes(&unsupported, ErrorKind::Unsupported, "the peer does not support datagrams");
    let large = SendDatagramError::TooLarge;
    becomes(&large, ErrorKind::InvalidInput, "the datagram is too large for this connection");
    let full = SendDatagramError::QueueFull(Bytes::from_static(b"mine"));
    becomes(&full, ErrorKind::WouldBlock, "too many datagrams of larger priorities wait to be sent");
}

#[test]
fn the_loss_of_a_connection_is_told_alike_by_all() {
    let cases = [
        (ConnectionError::TimedOut, ErrorKind::TimedOut),
        (ConnectionError::HandshakeTimedOut, ErrorKind::TimedOut),
        (ConnectionError::Reset, ErrorKind::ConnectionReset),
        (ConnectionError::Refused, ErrorKind::ConnectionRefused),
        (ConnectionError::Unsent(ErrorKind::HostUnreachable), ErrorKind::HostUnreachable),
    ];
    for (lost, kind) in cases {
        let words = format!("connection lost: {lost}");
        becomes(&ReadError::from(lost.clone()), kind, &words);
        becomes(&ReadExactError::Read(lost.clone().into()), kind, &words);
        becomes(&ReadToEndError::Read(lost.clone().into()), kind, &words);
        becomes(&WriteError::from(lost.clone()), kind, &words);
        becomes(&StoppedError::from(lost.clone()), kind, &words);
        becomes(&SendDatagramError::from(lost.clone()), kind, &words);
        becomes(&AcceptError::from(lost), kind, &words);
    }
}

#[test]
fn what_fails_before_there_is_a_connection_has_words_and_a_kind() {
    becomes(&ConnectError::EndpointClosed, ErrorKind::NotConnected, "the endpoint is closed");
    let nothing = ConnectError::NoClientConfig;
    becomes(&nothing, ErrorKind::InvalidInput, "no client configuration was given");
    let far = ConnectError::UnreachableAddress("10.0.0.1:0".parse().expect("an address"));
    becomes(&far, ErrorKind::AddrNotAvailable, "10.0.0.1:0 cannot be reached from this endpoint's socket");
    becomes(&AcceptError::EndpointClosed, ErrorKind::NotConnected, "the endpoint is closed");
}
