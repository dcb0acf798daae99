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

/// Reports about datagrams that nobody has sent. It takes a right that few users have.
#[cfg(target_os = "linux")]
struct Forger(socket2::Socket);

#[cfg(target_os = "linux")]
impl Forger {
    /// Codes of "destination unreachable" (RFC 792, RFC 1122 §3.2.2.1) other than that of a port: no such protocol, no route as the
    /// source wants it, host unknown, host isolated.
    const CODES: [u8; 4] = [2, 5, 7, 8];

    fn new() -> io::Result<Self> {
        let kind = socket2::Type::from(libc::SOCK_RAW);
        socket2::Socket::new(socket2::Domain::IPV4, kind, Some(socket2::Protocol::ICMPV4)).map(Self)
    }

    /// Says that a datagram of `socket` met with this.
    fn report(&self, code: u8, socket: &UdpSocket) {
        let port = socket.local_addr().expect("a bound socket").port().to_be_bytes();
        let loopback = [127, 0, 0, 1];
        let mut report = vec![3, code, 0, 0, 0, 0, 0, 0];
        // The header of the datagram: IPv4 without options, 28 bytes, for UDP, from loopback to loopback.
        report.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
        report.extend([loopback, loopback].concat());
        report.extend([port[0], port[1], 0, 9, 0, 8, 0, 0]);
        let words = report.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum = words.sum::<u32>();
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        report[2..4].copy_from_slice(&checksum.to_be_bytes());
        let to = SocketAddr::from((loopback, 0));
        self.0.send_to(&report, &to.into()).expect("loopback takes it");
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn reports_of_any_kind_lose_nothing() {
    let Ok(forger) = Forger::new() else {
        eprintln!("skipped: not allowed to forge reports");
        return;
    };
    let (socket, peer) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    socket.report_refusals().expect("an option of the socket");
    let (addr, to) = [&socket, &peer].map(|socket| socket.local_addr().expect("a bound socket")).into();
    let mut batch = crate::RecvBatch::new();
    for (code, count) in Forger::CODES.into_iter().zip(1..) {
        forger.report(code, &socket);
        send(&peer, addr).await;
        let received = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut batch)).await;
        received.expect("loopback delivers").expect("a report is no failure");
        assert_eq!(socket.stats().recv_errors, count, "the report has come first");

        forger.report(code, &socket);
        let contents = [7; 10_000];
        let train = Transmit {
            destination: to,
            source: None,
            ecn: 0,
            contents: &contents,
            segment_size: Some(1_000),
        };
        socket.send(&train).await.expect("a runtime");
        let mut arrived = 0;
        while arrived < 10 {
            let received = tokio::time::timeout(Duration::from_secs(5), peer.recv(&mut batch)).await;
            received.expect("the train arrives").expect("a working socket");
            arrived += std::iter::from_fn(|| batch.next_datagram()).count();
        }
        assert_eq!((socket.stats().too_big, socket.stats().send_errors), (0, 0));
    }
}

#[tokio::test]
async fn without_a_wish_nothing_is_reported() {
    let socket = bind("127.0.0.1:0");
    send(&socket, nobody("127.0.0.1")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(socket.next_refusal().is_none() && !socket.has_failed());
}
