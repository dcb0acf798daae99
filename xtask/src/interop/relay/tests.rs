use super::*;

/// A relay and the sockets of a client and a server on its two sides.
fn sockets_around(conditions: Conditions) -> (Relay, UdpSocket, UdpSocket) {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let relay = Relay::start(server.local_addr().unwrap(), conditions).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(relay.address().unwrap()).unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    (relay, client, server)
}

#[test]
fn datagrams_take_their_time_in_both_directions() {
    let delay = Duration::from_millis(60);
    let (relay, client, server) = sockets_around(Conditions::symmetric(Link { delay, ..Link::default() }));
    let start = Instant::now();
    client.send(b"there").unwrap();
    let mut buffer = [0; 16];
    let (len, from) = server.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"there");
    server.send_to(b"back", from).unwrap();
    let len = client.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"back");
    assert!(start.elapsed() >= 2 * delay, "{:?}", start.elapsed());
    let traffic = relay.traffic();
    assert_eq!((traffic.to_server.bytes, traffic.from_server.bytes), (5, 4));
    assert_eq!((traffic.to_server.datagrams, traffic.from_server.datagrams), (1, 1));
}

#[test]
fn the_largest_datagram_of_the_client_can_be_repeated() {
    let (relay, client, server) = sockets_around(Conditions::default());
    let mut buffer = [0; 16];
    for datagram in [&b"\x40a"[..], b"\x40bcd", b"\x40e"] {
        client.send(datagram).unwrap();
        server.recv(&mut buffer).unwrap();
    }
    relay.repeat_from_client();
    let len = server.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"\x40bcd");
}

#[test]
fn a_train_comes_out_as_the_rate_spreads_it() {
    const DATAGRAMS: usize = 100;
    // 0.2 ms for each of these datagrams.
    let rate = Rate { bit_per_s: 50_000_000, queue_datagrams: 200 };
    let link = Link { delay: Duration::from_millis(20), rate: Some(rate), ..Link::default() };
    let (_relay, client, server) = sockets_around(Conditions::symmetric(link));
    let mut buffer = [0; 2_000];
    let mut spread = || {
        for _ in 0..DATAGRAMS {
            client.send(&[0; 1_250]).unwrap();
        }
        let arrivals: Vec<Instant> = (0..DATAGRAMS)
            .map(|_| {
                server.recv(&mut buffer).unwrap();
                Instant::now()
            })
            .collect();
        let gaps = arrivals.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.filter(|gap| (100..400).contains(&gap.as_micros())).count()
    };
    // A machine with other work may disturb some of the trains.
    let best = (0..10).map(|_| spread()).max().unwrap_or(0);
    assert!(best >= DATAGRAMS / 4 * 3, "{best} gaps are as long as a datagram");
}

#[test]
fn what_overflowed_is_read_from_the_table_of_the_system() {
    let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  107: 0100007F:8D8F 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 11 2 0000000000000000 112
  108: 0100007F:E8F7 0100007F:0007 01 00000000:00000000 00:00000000 00000000     0        0 12 2 0000000000000000 3
  109: 0100007F:0001 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 13 2 0000000000000000 9
";
    assert_eq!(drops_at(table, &[0x8d8f, 0xe8f7]), 115);
    assert_eq!(drops_at(table, &[2]), 0);
    assert_eq!(drops_at("nonsense\n", &[1]), 0);
}
