use std::sync::Arc;

use super::*;

/// The first flight of a client of rustls as it stands, with a ticket that is made up.
fn hello() -> Hello {
    let message = client_hello(&[
        (0, b"name".as_slice()),
        (PRE_SHARED_KEY, b"\x00\x0a\x00\x04tick\x00\x00\x00\x00rest"),
    ]);
    Hello { src: ConnectionId::new(&[9; 8]).unwrap(), token: Vec::new(), message }
}

fn client_hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    let mut list = Vec::new();
    for (kind, bytes) in extensions {
        list.extend(kind.to_be_bytes());
        list.extend((bytes.len() as u16).to_be_bytes());
        list.extend(*bytes);
    }
    body.extend((list.len() as u16).to_be_bytes());
    body.extend(list);
    let mut message = vec![1, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    message
}

#[test]
fn what_is_said_again_is_read_as_it_was() {
    let hello = hello();
    let datagram = hello.datagram(&[1; 8], b"token");
    assert_eq!(datagram.len(), INITIAL_BYTES);
    let read = Hello::of(&[datagram]).unwrap();
    assert_eq!((read.message, read.token, read.src), (hello.message, b"token".to_vec(), hello.src));
}

#[test]
fn the_ticket_is_found() {
    let hello = hello();
    assert_eq!(&hello.message[hello.ticket().unwrap()], b"tick");
    let without = Hello { message: client_hello(&[(0, b"name")]), ..hello };
    assert_eq!(without.ticket(), None);
    for len in 0..without.message.len() {
        let cut = Hello { message: without.message[..len].to_vec(), ..without.clone() };
        assert_eq!(cut.ticket(), None);
    }
}

#[test]
fn answers_are_told_apart() {
    let dst = [3; 8];
    let [_, server] = PacketKeys::initial(VERSION, &dst);
    let server = Arc::new(server);
    let answer = |frames: &[u8]| {
        let header = LongHeader {
            kind: PacketKind::Initial,
            version: VERSION,
            dst: ConnectionId::new(&[9; 8]).unwrap(),
            src: ConnectionId::new(&[8; 8]).unwrap(),
            token: &[],
        };
        let mut bytes = vec![0; header.encoded_len(NUMBER_LEN)];
        let offsets = header.write(&mut Writer::new(&mut bytes), 0, NUMBER_LEN);
        let mut payload = frames.to_vec();
        payload.resize(payload.len().max(64), 0);
        patch_length(&mut bytes, offsets.length_at, NUMBER_LEN + payload.len() + TAG_LEN);
        Answer::read(&server.seal(bytes, offsets.pn_offset, 0, &payload).unwrap(), &dst)
    };
    let code = TransportErrorCode::INVALID_TOKEN;
    let close = CloseCode::Transport { code, frame: fulmar_wire::FrameType::PADDING };
    let close = encode(&Frame::ConnectionClose(ConnectionClose { code: close, reason: b"" }));
    assert_eq!(answer(&close), Answer::Closed(code));
    let server_hello = |extensions: &[u8]| {
        let mut message = vec![2, 0, 0, 0, 3, 3];
        message.extend([7; 32]);
        message.extend([0, 0x13, 1, 0]);
        message.extend((extensions.len() as u16).to_be_bytes());
        message.extend(extensions);
        crypto(0, &message)
    };
    assert_eq!(answer(&server_hello(&[0, 51, 0, 1, 9])), Answer::GoesOn { resumed: false });
    assert_eq!(answer(&server_hello(&[0, 51, 0, 0, 0, 41, 0, 2, 0, 0])), Answer::GoesOn { resumed: true });
    assert_eq!(answer(&[1]), Answer::Other);
    assert_eq!(Answer::read(b"noise", &dst), Answer::Other);
}
