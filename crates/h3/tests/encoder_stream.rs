//! The stream of the QPACK encoder towards a peer that takes little of it.

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::{Identity, answer, next_client, next_request, soon};
use fulmar::TransportConfig;
use http::Request;
use http_body_util::Empty;

/// What the peer takes of each stream that it does not read, in bytes.
const CREDIT: u64 = 1_024;

#[tokio::test]
async fn no_more_entries_are_referred_to_than_the_encoder_stream_can_carry() {
    let identity = Identity::new();
    let transport = TransportConfig {
        stream_receive_window: CREDIT,
        stream_receive_window_max: CREDIT,
        ..TransportConfig::default()
    };
    let endpoint = identity.endpoint_with(transport);
    let uri = common::uri(endpoint.local_addr().unwrap(), "/");
    let server = tokio::spawn(async move {
        let connection = next_client(&endpoint).await;
        // SETTINGS with a dynamic table of 4096 bytes, for which 100 streams may wait. What the client writes to its encoder stream is not
        // read.
        let mut control = connection.open_uni().await.unwrap();
        control.write_all(&[0, 4, 6, 1, 0x50, 0, 7, 0x40, 100]).await.unwrap();
        let mut inserts_max = 0;
        for _ in 0..120 {
            let (send, mut recv) = next_request(&connection).await;
            let request = recv.read_to_end(1 << 16).await.unwrap();
            // Behind the type and the length of HEADERS, of two bytes, there is the number of inserts that the section needs, plus one.
            assert_eq!((request[0], request[1] >> 6), (1, 1), "{request:?}");
            inserts_max = inserts_max.max(request[3].saturating_sub(1));
            answer(send).await;
        }
        (inserts_max, connection)
    });
    let client = identity.builder().transport(Arc::default()).build().unwrap();
    for number in 0..120 {
        let value = format!("a value that does not fit many times: {:040}", number % 40);
        let request = Request::get(&uri).header("x-value", value).body(Empty::<Bytes>::new()).unwrap();
        soon(client.request(request)).await.unwrap();
    }
    let (inserts_max, _connection) = soon(server).await.unwrap();
    // With the Huffman code an entry takes 40 bytes at least.
    assert!((1..=CREDIT / 40).contains(&u64::from(inserts_max)), "{inserts_max} inserts");
}
