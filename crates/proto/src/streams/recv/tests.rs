use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Dir, Side, StreamId};

use super::super::handles::ReadError;
use super::*;

struct Fixture {
    recv: RecvHalf,
    connection: ReceiveWindow,
}

impl Fixture {
    fn new() -> Self {
        Self { recv: RecvHalf::new(1_000, 1_000), connection: ReceiveWindow::new(1_500, 1_500) }
    }

    fn stream(&mut self, offset: u32, len: usize, fin: bool) -> Result<Arrival, TransportErrorCode> {
        let payload = Bytes::from(vec![0; len]);
        let id = StreamId::new(Side::Client, Dir::Uni, 0);
        let frame = Stream { id, offset: offset.into(), fin, data: &payload };
        let cx = RecvContext { now: Instant::ZERO, rtt: Duration::from_secs(1), early: false };
        self.recv.on_stream(&frame, &payload, &cx, &mut self.connection).map_err(|error| error.code)
    }

    fn reset(&mut self, final_size: u32) -> Result<Arrival, TransportErrorCode> {
        let id = StreamId::new(Side::Client, Dir::Uni, 0);
        let frame = ResetStream { id, error_code: 5u32.into(), final_size: final_size.into() };
        self.recv.on_reset(&frame, &mut self.connection).map_err(|error| error.code)
    }

    fn read(&mut self) -> Result<Option<usize>, ReadError> {
        let chunk = self.recv.read(usize::MAX, true, &mut self.connection)?;
        Ok(chunk.map(|chunk| chunk.bytes.len()))
    }
}

const READABLE: Result<Arrival, TransportErrorCode> = Ok(Arrival { readable: true, ended: false });
const NOTHING: Result<Arrival, TransportErrorCode> = Ok(Arrival { readable: false, ended: false });
const FINAL_SIZE: Result<Arrival, TransportErrorCode> = Err(TransportErrorCode::FINAL_SIZE_ERROR);
const FLOW_CONTROL: Result<Arrival, TransportErrorCode> = Err(TransportErrorCode::FLOW_CONTROL_ERROR);

#[test]
fn the_application_is_woken_once_per_wait() {
    let mut half = Fixture::new();
    assert_eq!(half.stream(10, 10, false), NOTHING);
    assert_eq!(half.stream(0, 10, false), READABLE);
    assert_eq!(half.stream(20, 10, false), NOTHING, "it has not read up to the end");
    assert_eq!(half.read(), Ok(Some(30)));
    assert_eq!(half.stream(30, 10, false), NOTHING, "nor been told to wait");
    assert_eq!(half.read(), Ok(Some(10)));
    assert_eq!(half.read(), Err(ReadError::Blocked));
    assert_eq!(half.stream(40, 0, true), READABLE);
    assert_eq!(half.read(), Ok(None));
}

#[test]
fn the_final_size_does_not_lie() {
    let mut half = Fixture::new();
    half.stream(0, 100, false).unwrap();
    assert_eq!(half.stream(50, 49, true), FINAL_SIZE);
    assert_eq!(half.reset(99), FINAL_SIZE);
    half.stream(100, 10, true).unwrap();
    assert_eq!(half.stream(110, 1, false), FINAL_SIZE);
    assert_eq!(half.stream(100, 9, true), FINAL_SIZE);
    assert_eq!(half.reset(111), FINAL_SIZE);
    assert_eq!(half.stream(100, 10, true), NOTHING);
    assert_eq!(half.stream(20, 10, false), NOTHING);
}

#[test]
fn no_more_than_allowed_is_accepted() {
    let mut half = Fixture::new();
    assert_eq!(half.stream(1_000, 1, false), FLOW_CONTROL);
    assert_eq!(half.reset(1_001), FLOW_CONTROL);
    half.connection.receive(501);
    assert_eq!(half.stream(0, 1_000, false), FLOW_CONTROL);
    assert_eq!(half.reset(1_000), FLOW_CONTROL);
    assert_eq!(half.stream(0, 999, false), READABLE);
}

#[test]
fn a_reset_counts_and_returns_what_was_never_seen() {
    let mut half = Fixture::new();
    half.stream(0, 100, false).unwrap();
    assert_eq!(half.read(), Ok(Some(100)));
    assert_eq!(half.read(), Err(ReadError::Blocked));
    assert_eq!(half.reset(900), READABLE);
    assert_eq!((half.connection.received(), half.connection.unconsumed()), (900, 0));
    assert!(!half.recv.has_control(), "a stream that has ended needs no credit");
    assert_eq!(half.stream(200, 100, false), NOTHING);
    assert_eq!(half.connection.received(), 900);
    assert_eq!(half.read(), Err(ReadError::Reset(VarInt::from_u32(5))));
}

#[test]
fn a_reset_after_all_data_says_nothing_new() {
    let mut half = Fixture::new();
    half.stream(0, 100, true).unwrap();
    assert_eq!(half.reset(100), NOTHING);
    assert_eq!((half.read(), half.read()), (Ok(Some(100)), Ok(None)));
}

#[test]
fn a_stopped_half_lives_until_its_size_is_known() {
    let code = VarInt::from_u32(3);
    let mut half = Fixture::new();
    half.stream(0, 100, false).unwrap();
    assert!(!half.recv.stop(code, &mut half.connection));
    assert_eq!(half.connection.unconsumed(), 0);
    assert_eq!(half.recv.stop_frame().pending(), Some(code));
    assert_eq!(half.read(), Err(ReadError::ClosedStream));
    assert_eq!(half.stream(100, 500, false), NOTHING);
    assert_eq!(half.connection.unconsumed(), 0);
    assert_eq!(half.reset(600), Ok(Arrival { readable: false, ended: true }));

    let mut half = Fixture::new();
    half.stream(50, 50, true).unwrap();
    assert!(half.recv.stop(code, &mut half.connection), "the size is known");
    assert_eq!((half.connection.unconsumed(), half.recv.stop_frame().pending()), (0, None));
}
