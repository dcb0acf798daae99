//! What a small request costs: memory that is allocated for it.

mod common;

use bytes::Bytes;
use common::{Pair, run};
use fulmar::Connection;

/// Answers every request with as many bytes.
async fn answer(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX, true).await {
            if send.write_chunk(chunk.bytes).await.is_err() {
                return;
            }
        }
        let _ = send.finish();
    }
}

async fn request(connection: &Connection, data: &Bytes) {
    let (mut send, mut recv) = connection.open_bi().await.expect("an open connection");
    send.write_chunk(data.clone()).await.expect("an open stream");
    send.finish().expect("an open stream");
    let mut received = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX, true).await.expect("an open stream") {
        received += chunk.bytes.len();
    }
    assert_eq!(received, data.len());
}

#[test]
fn a_request_allocates_little() {
    const COUNT: u64 = 1_000;
    let allocations = |count: u64| {
        allocation_counter::measure(|| {
            run(async {
                let pair = Pair::new().await;
                tokio::spawn(answer(pair.server.clone()));
                let data = Bytes::from(vec![7; 200]);
                for _ in 0..count {
                    request(&pair.client, &data).await;
                }
            });
        })
        .count_total
    };
    // What the connection itself takes is in both.
    let total = allocations(COUNT + 100) - allocations(100);
    // At each end a copy of what was received, as small data is not left in its packet. The stream itself, its queues and its
    // handles take none.
    assert!(total <= 3 * COUNT, "{total} allocations for {COUNT} requests");
}
