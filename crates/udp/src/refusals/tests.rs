use std::time::Duration;

use super::*;
use crate::Transmit;

fn bind(addr: &str) -> UdpSocket {
    UdpSocket::bind(addr.parse().expect("a literal address")).expect("a free port")
}

/// An address of the loopback interface at which nobody listens.
fn nobody(ip: &str) -> SocketAddr {
    let addr = SocketAddr::new(ip.parse().expect("a literal"), 0);
    std::net::UdpSocket::bind(addr).and_then(|socket| socket.local_addr()).expect("a free port")
}

async fn send(socket: &UdpSocket, destination: SocketAddr) {
    let contents = b"anybody there?";
    let transmit = Transmit { destination, source: None, ecn: 0, contents, segment_size: None };
    socket.send(&transmit).await.expect("a runtime");
}

/// The first address that is reported.
async fn refused(socket: &UdpSocket) -> SocketAddr {
    let first = async {
        loop {
            socket.refusal_ready().await.expect("a runtime");
            if let Some(destination) = socket.next_refusal() {
                return destination;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), first).await.expect("loopback answers")
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_address_at_which_nobody_listens_is_reported() {
    for (local, remote) in [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.1")] {
        let (socket, nobody) = (bind(local), nobody(remote));
        socket.report_refusals().expect("an option of the socket");
        send(&socket, nobody).await;
        assert_eq!(refused(&socket).await, nobody);
        assert!(socket.next_refusal().is_none() && socket.has_failed());
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn what_is_sent_after_a_refusal_is_not_lost() {
    let (socket, listener) =
        (bind("127.0.0.1:0"), std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port"));
    socket.report_refusals().expect("an option of the socket");
    for _ in 0..3 {
        send(&socket, nobody("127.0.0.1")).await;
        // The report is there, and nobody has taken it.
        socket.refusal_ready().await.expect("a runtime");
        send(&socket, listener.local_addr().expect("a bound socket")).await;
        listener.set_read_timeout(Some(Duration::from_secs(5))).expect("an option of the socket");
        listener.recv(&mut [0; 100]).expect("the datagram arrives");
        assert_eq!(socket.stats().send_errors, 0);
    }
}

#[tokio::test]
async fn without_a_wish_nothing_is_reported() {
    let socket = bind("127.0.0.1:0");
    send(&socket, nobody("127.0.0.1")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(socket.next_refusal().is_none() && !socket.has_failed());
}
