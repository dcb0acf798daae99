use fulmar_proto::{Dir, Side, StreamId};

use super::Content;

fn stream(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

#[test]
fn any_piece_can_be_verified_and_a_wrong_byte_is_found() {
    let content = Content::of_stream(7, stream(3), Side::Client);
    let mut whole = vec![0; 1_000];
    content.fill(0, &mut whole);
    for (start, end) in [(0, 1_000), (1, 2), (7, 9), (8, 16), (333, 801)] {
        let mut piece = vec![0; end - start];
        content.fill(start as u64, &mut piece);
        assert_eq!(piece, whole[start..end]);
        assert_eq!(content.first_difference(start as u64, &piece), None);
        *piece.last_mut().expect("no piece is empty") ^= 1;
        assert_eq!(content.first_difference(start as u64, &piece), Some(end as u64 - 1));
    }
}

#[test]
fn connections_streams_directions_and_datagrams_differ() {
    let contents = [
        Content::of_stream(7, stream(3), Side::Client),
        Content::of_stream(7, stream(3), Side::Server),
        Content::of_stream(7, stream(4), Side::Client),
        Content::of_stream(8, stream(3), Side::Client),
        Content::of_datagram(7, 3, Side::Client),
        Content::of_datagram(7, 3, Side::Server),
    ];
    for (index, a) in contents.iter().enumerate() {
        assert!(contents[index + 1..].iter().all(|b| a != b));
    }
}
