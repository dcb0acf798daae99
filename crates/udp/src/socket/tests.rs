use std::net::IpAddr;
use std::time::Duration;

use bytes::BytesMut;

use super::sending::Segments;
use super::*;
use crate::Received;

fn bind(addr: &str) -> UdpSocket {
    UdpSocket::bind(addr.parse().expect("a literal address")).expect("a free port")
}

/// The address at which the socket is reached over the loopback interface.
fn reach(socket: &UdpSocket, ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().expect("a literal"), socket.local_addr().expect("a bound socket").port())
}

fn transmit(destination: SocketAddr, contents: &[u8]) -> Transmit<'_> {
    Transmit { destination, source: None, ecn: 0, contents, segment_size: None }
}

/// Receives until `count` datagrams are there.
async fn receive(socket: &UdpSocket, count: usize) -> Vec<Received> {
    let mut batch = RecvBatch::new();
    let mut received = Vec::new();
    let all = async {
        while received.len() < count {
            socket.recv(&mut batch).await.expect("a working socket");
            while let Some(datagram) = batch.next_datagram() {
                received.push(datagram);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), all).await.expect("loopback delivers");
    received
}

#[tokio::test]
async fn a_datagram_arrives_with_its_addresses_and_ecn() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let to = b.local_addr().expect("a bound socket");
    a.send(&Transmit { ecn: 0b10, ..transmit(to, b"hello") }).await.expect("a running runtime");
    let received = receive(&b, 1).await;
    assert_eq!(&received[0].payload[..], b"hello");
    assert_eq!(received[0].remote, a.local_addr().expect("a bound socket"));
    assert_eq!(received[0].local_ip, Some(to.ip()));
    assert_eq!(received[0].ecn, 0b10);
    assert_eq!(b.stats().datagrams_received, 1);
    assert_eq!((a.stats().send_calls, a.stats().bytes_sent), (1, 5));
}

#[tokio::test]
async fn a_train_arrives_as_its_segments() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let contents: Vec<u8> = (0..10 * 1_200 + 77).map(|index: usize| (index / 1_200) as u8).collect();
    let train = Transmit { segment_size: Some(1_200), ..transmit(b.local_addr().expect("bound"), &contents) };
    a.send(&train).await.expect("a running runtime");
    let received = receive(&b, 11).await;
    let joined: BytesMut = received.iter().flat_map(|datagram| datagram.payload.iter().copied()).collect();
    assert_eq!(&joined[..], &contents[..]);
    assert!(received[..10].iter().all(|datagram| datagram.payload.len() == 1_200));
    assert_eq!(b.stats().datagrams_received, 11);
}

#[tokio::test]
async fn all_datagrams_of_a_train_tell_their_addresses_and_ecn() {
    for (from, to, ip) in [
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"),
        ("[::1]:0", "[::]:0", "::1"),
        ("127.0.0.1:0", "[::]:0", "127.0.0.1"),
    ] {
        let [Ok(a), Ok(b)] = [from, to].map(|addr| UdpSocket::bind(addr.parse().expect("a literal"))) else {
            eprintln!("skipped: no {from} or {to} on this machine");
            continue;
        };
        for ecn in 0..4 {
            let contents = [7; 3_500];
            let train = Transmit { segment_size: Some(1_000), ecn, ..transmit(reach(&b, ip), &contents) };
            a.send(&train).await.expect("a running runtime");
            let received = receive(&b, 4).await;
            assert_eq!(received[3].payload.len(), 500);
            for datagram in received {
                assert_eq!(datagram.remote, a.local_addr().expect("bound"));
                assert_eq!(
                    (datagram.ecn, datagram.local_ip),
                    (ecn, Some(ip.parse().expect("a literal"))),
                    "{from} {to}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_train_survives_a_kernel_without_segmentation() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let contents = [7; 3_000];
    let train = Transmit { segment_size: Some(1_000), ..transmit(b.local_addr().expect("bound"), &contents) };
    a.io.writable().await.expect("a running runtime");
    assert_eq!(a.send_segments(&train, 1_000, Segments::OfTrain), SendOutcome::Done);
    assert_eq!(receive(&b, 3).await.len(), 3);
    assert_eq!(a.stats().send_calls, 3);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn after_a_train_that_the_kernel_refuses_ecn_goes_on() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let may_segment = a.max_gso_segments() > 1;
    // More segments than any kernel makes of one train.
    let contents = [7; 2_000];
    let destination = b.local_addr().expect("bound");
    let train = Transmit { segment_size: Some(10), ecn: 0b10, ..transmit(destination, &contents) };
    a.send(&train).await.expect("a running runtime");
    assert_eq!((a.stats().gso_refused, a.max_gso_segments()), (u64::from(may_segment), 1));
    a.send(&Transmit { ecn: 0b01, ..transmit(destination, b"next") }).await.expect("a running runtime");
    let mut received = receive(&b, 201).await;
    let next = received.pop().expect("201 have come");
    assert!(received.iter().all(|datagram| datagram.payload.len() == 10 && datagram.ecn == 0b10));
    assert_eq!((&next.payload[..], next.ecn), (&b"next"[..], 0b01));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_datagram_from_an_address_that_is_gone_costs_others_no_ecn() {
    let (a, b) = (bind("0.0.0.0:0"), bind("127.0.0.1:0"));
    let destination = b.local_addr().expect("bound");
    // Kept for documents (RFC 5737).
    let source = Some(IpAddr::from([192, 0, 2, 1]));
    a.send(&Transmit { source, ..transmit(destination, b"lost") }).await.expect("a running runtime");
    assert_eq!(a.stats().send_errors, 1);
    a.send(&Transmit { ecn: 0b10, ..transmit(destination, b"next") }).await.expect("a running runtime");
    let next = receive(&b, 1).await.remove(0);
    assert_eq!((&next.payload[..], next.ecn), (&b"next"[..], 0b10));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_cannot_be_sent_costs_others_no_segmentation() {
    // To port 0, and from addresses that are kept for documents (RFC 5737, RFC 3849).
    let nowhere: [(&str, SocketAddr, Option<IpAddr>); 3] = [
        ("0.0.0.0:0", ([127, 0, 0, 1], 0).into(), None),
        ("0.0.0.0:0", ([127, 0, 0, 1], 9).into(), Some([192, 0, 2, 1].into())),
        ("[::]:0", "[::1]:9".parse().expect("a literal"), Some("2001:db8::1".parse().expect("a literal"))),
    ];
    for ((local, destination, source), dscp) in
        nowhere.into_iter().flat_map(|to| [(to, Dscp::default()), (to, Dscp::EF)])
    {
        let Ok(a) = UdpSocket::bind(local.parse().expect("a literal")) else { continue };
        let (a, b) = (a.with_dscp(dscp).expect("Linux has them"), bind("127.0.0.1:0"));
        let segments_max = a.max_gso_segments();
        let contents = [7; 3_000];
        for segment_size in [None, Some(1_000)] {
            let lost = Transmit { source, segment_size, ..transmit(destination, &contents) };
            a.send(&lost).await.expect("a running runtime");
            assert_eq!(
                (a.stats().send_calls, a.max_gso_segments()),
                (0, segments_max),
                "{destination} {source:?}"
            );
        }
        assert!(a.stats().send_errors >= 2 && a.stats().gso_refused == 0, "{:?}", a.stats());
        let train =
            Transmit { segment_size: Some(1_000), ecn: 0b10, ..transmit(reach(&b, "127.0.0.1"), &contents) };
        a.send(&train).await.expect("a running runtime");
        let received = receive(&b, 3).await;
        let seen: Vec<_> = received.iter().map(|datagram| (datagram.payload.len(), datagram.ecn)).collect();
        assert_eq!(seen, [(1_000, 0b10); 3], "{local} {dscp:?}");
        assert_eq!(a.stats().send_calls, if segments_max > 1 { 1 } else { 3 });
    }
}

#[tokio::test]
async fn a_dual_stack_socket_speaks_ipv4_with_canonical_addresses() {
    let Ok(server) = UdpSocket::bind("[::]:0".parse().expect("a literal")) else {
        // A host without IPv6 has nothing to show here.
        return;
    };
    let client = bind("127.0.0.1:0");
    client.send(&transmit(reach(&server, "127.0.0.1"), b"ping")).await.expect("a running runtime");
    let ping = receive(&server, 1).await.remove(0);
    assert_eq!(ping.remote, client.local_addr().expect("bound"));
    assert_eq!(ping.local_ip, Some([127, 0, 0, 1].into()));
    let reply = Transmit { source: ping.local_ip, ecn: 0b10, ..transmit(ping.remote, b"pong") };
    server.send(&reply).await.expect("a running runtime");
    let pong = receive(&client, 1).await.remove(0);
    assert_eq!((&pong.payload[..], pong.ecn), (&b"pong"[..], 0b10));
    assert!(server.can_reach(reach(&client, "127.0.0.1")));
    assert!(!client.can_reach(reach(&server, "::1")));
    let of_one = bind("[::1]:0");
    assert!(of_one.can_reach(reach(&server, "::1")) && !of_one.can_reach(reach(&client, "127.0.0.1")));
}

/// An address of a link of this machine, and the interface; a host may have none.
#[cfg(target_os = "linux")]
fn of_a_link() -> Option<(std::net::SocketAddrV6, String)> {
    let table = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let ip = u128::from_str_radix(fields.next()?, 16).ok()?;
        let index = u32::from_str_radix(fields.next()?, 16).ok()?;
        let ip = std::net::Ipv6Addr::from(ip);
        let name = fields.nth(3)?.to_owned();
        ip.is_unicast_link_local().then(|| (std::net::SocketAddrV6::new(ip, 0, 0, index), name))
    })
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_socket_of_one_link_hears_addresses_as_they_were_dialled() {
    let Some((addr, name)) = of_a_link() else { return };
    let server = bind(&addr.to_string());
    let any = "[::]:0".parse().expect("a literal");
    let bound = crate::open_socket(any, Some(&name)).and_then(UdpSocket::from_std).expect("an interface");
    let port = server.local_addr().expect("bound").port();
    // Without its zone.
    let dialled = SocketAddr::new((*addr.ip()).into(), port);
    assert_eq!(
        bound.canonical(std::net::SocketAddrV6::new(*addr.ip(), port, 0, addr.scope_id()).into()),
        dialled
    );
    bound.send(&transmit(dialled, b"ping")).await.expect("a running runtime");
    let ping = receive(&server, 1).await.remove(0);
    server.send(&transmit(ping.remote, b"pong")).await.expect("a running runtime");
    assert_eq!(receive(&bound, 1).await[0].remote, dialled);
}

#[tokio::test]
async fn an_oversized_datagram_is_counted_and_harmless() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let to = b.local_addr().expect("bound");
    assert_eq!(a.try_send(&transmit(to, &[0; 65_535])), SendOutcome::TooLarge);
    assert_eq!((a.stats().too_big, a.stats().send_errors), (1, 0));
    a.send(&transmit(to, b"next")).await.expect("a running runtime");
    assert_eq!(&receive(&b, 1).await[0].payload[..], b"next");
}

#[tokio::test]
async fn a_closed_port_does_not_break_the_socket() {
    let (a, gone, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let nowhere = gone.local_addr().expect("bound");
    drop(gone);
    a.send(&transmit(nowhere, b"lost")).await.expect("a running runtime");
    b.send(&transmit(a.local_addr().expect("bound"), b"found")).await.expect("a running runtime");
    assert_eq!(&receive(&a, 1).await[0].payload[..], b"found");
}

#[tokio::test]
async fn the_socket_reports_its_buffers() {
    let sizes = bind("127.0.0.1:0").buffer_sizes().expect("a working socket");
    assert!(sizes.recv > 0 && sizes.send > 0);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_datagram_tells_how_long_it_waited_in_the_socket() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let to = b.local_addr().expect("a bound socket");
    let pause = Duration::from_millis(30);
    a.send(&transmit(to, b"early")).await.expect("a working socket");
    tokio::time::sleep(pause).await;
    a.send(&transmit(to, b"late")).await.expect("a working socket");
    let received = receive(&b, 2).await;
    let (early, late) = (received[0].waited, received[1].waited);
    assert!(early >= late + pause && early < Duration::from_secs(1), "{early:?} and {late:?}");
}

#[tokio::test]
async fn a_socket_is_taken_for_empty_after_a_lone_datagram_until_the_next_comes() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let to = b.local_addr().expect("a bound socket");
    let mut batch = RecvBatch::new();
    let is_ready = |cx: &mut Context<'_>| Poll::Ready(b.poll_recv_ready(cx).is_ready());
    for round in 0..3 {
        a.send(&transmit(to, b"alone")).await.expect("a running runtime");
        b.io.readable().await.expect("a running runtime");
        assert_eq!(b.try_recv_lone(&mut batch).expect("a datagram"), 1, "round {round}");
        assert!(batch.is_lone() && batch.next_datagram().is_some());
        assert!(!std::future::poll_fn(is_ready).await, "round {round}");
    }
    // Of several, none is the last before the socket was asked again.
    for _ in 0..2 {
        a.send(&transmit(to, b"together")).await.expect("a running runtime");
    }
    b.io.readable().await.expect("a running runtime");
    assert_eq!(b.try_recv_lone(&mut batch).expect("datagrams"), 2);
    assert!(!batch.is_lone() && std::future::poll_fn(is_ready).await);
    assert!(b.try_recv_lone(&mut batch).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn a_socket_with_room_says_so_as_often_as_it_is_asked() {
    let (a, b) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    for _ in 0..3 {
        std::future::poll_fn(|cx| a.poll_send_ready(cx)).await.expect("a running runtime");
        let sent = a.try_send(&transmit(b.local_addr().expect("bound"), b"there is room"));
        assert_eq!(sent, SendOutcome::Done);
    }
    assert_eq!(receive(&b, 3).await.len(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn any_error_may_report_an_earlier_datagram_if_the_kernel_was_asked_for_reports() {
    let usual = [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ENETDOWN, libc::ECONNRESET];
    let others = [
        libc::EMSGSIZE,
        libc::EACCES,
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EHOSTDOWN,
        libc::ENONET,
    ];
    for (errors, without) in [(&usual[..], true), (&others[..], false)] {
        for error in errors.iter().map(|number| io::Error::from_raw_os_error(*number)) {
            assert!(may_be_report(&error, true), "{error}");
            assert_eq!(may_be_report(&error, false), without, "{error}");
        }
    }
    assert!(!may_be_report(&io::Error::from_raw_os_error(libc::EAGAIN), true));
}
