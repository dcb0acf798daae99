use super::*;

#[test]
fn code_points_have_six_bits() {
    assert_eq!(Dscp::new(63).map(Dscp::value), Some(63));
    assert_eq!(Dscp::new(64), None);
    assert_eq!(Dscp::EF.with_ecn(0b10), 0xba);
    assert_eq!(Dscp::default().with_ecn(0b11), 0b11);
    assert_eq!(Dscp::LE.with_ecn(0xff), 0b111);
}

#[cfg(target_os = "linux")]
mod on_loopback {
    use std::io;
    use std::mem::MaybeUninit;
    use std::net::SocketAddr;
    use std::time::Duration;

    use socket2::{MsgHdrMut, SockRef};

    use super::*;
    use crate::{RecvBatch, Transmit, UdpSocket};

    /// A socket that is shown the byte of the IP header of what it receives.
    struct Watcher(std::net::UdpSocket);

    impl Watcher {
        fn bind(addr: &str) -> io::Result<Self> {
            let socket = std::net::UdpSocket::bind(addr)?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            let options = SockRef::from(&socket);
            match socket.local_addr()?.is_ipv4() {
                true => options.set_recv_tos_v4(true)?,
                false => options.set_recv_tclass_v6(true)?,
            }
            Ok(Self(socket))
        }

        fn addr(&self) -> SocketAddr {
            self.0.local_addr().expect("a bound socket")
        }

        /// The next datagram: its length and the byte.
        fn next(&self) -> (usize, u8) {
            let mut data = [MaybeUninit::new(0); 2_048];
            let mut control = [MaybeUninit::new(0); 64];
            let mut buffers = [socket2::MaybeUninitSlice::new(&mut data)];
            let mut message = MsgHdrMut::new().with_buffers(&mut buffers).with_control(&mut control);
            let len = SockRef::from(&self.0).recvmsg(&mut message, 0).expect("loopback delivers");
            assert!(message.control_len() > 16, "the byte is told");
            // The first and only control message; IPv4 tells a byte, IPv6 a number, of which the lowest byte counts.
            let at = if cfg!(target_endian = "little") || self.addr().is_ipv4() { 16 } else { 19 };
            #[allow(unsafe_code, reason = "the array was filled with zeros before the kernel wrote to it")]
            // SAFETY: every element was initialised when the array was made.
            let byte = unsafe { control[at].assume_init() };
            (len, byte)
        }
    }

    fn socket(addr: &str, dscp: Dscp) -> UdpSocket {
        let addr = addr.parse().expect("a literal address");
        UdpSocket::bind(addr).expect("a free port").with_dscp(dscp).expect("Linux can")
    }

    fn transmit(destination: SocketAddr, ecn: u8, contents: &[u8]) -> Transmit<'_> {
        Transmit { destination, source: None, ecn, contents, segment_size: None }
    }

    #[tokio::test]
    async fn the_code_point_and_ecn_arrive_side_by_side() {
        for (sender, receiver) in
            [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0"), ("[::]:0", "127.0.0.1:0")]
        {
            let Ok(watcher) = Watcher::bind(receiver) else {
                eprintln!("skipped: no {receiver} on this machine");
                continue;
            };
            for dscp in [Dscp::default(), Dscp::LE, Dscp::EF, Dscp(63)] {
                let socket = socket(sender, dscp);
                assert_eq!(socket.dscp(), dscp);
                for ecn in 0..4 {
                    socket.send(&transmit(watcher.addr(), ecn, b"hello")).await.expect("a running runtime");
                    assert_eq!(watcher.next(), (5, dscp.with_ecn(ecn)), "{sender}, {dscp}");
                }
                assert_eq!(socket.stats().send_errors, 0);
            }
        }
    }

    #[tokio::test]
    async fn every_segment_of_a_train_is_marked() {
        let (watcher, socket) =
            (Watcher::bind("127.0.0.1:0").expect("a free port"), socket("127.0.0.1:0", Dscp::EF));
        let contents = vec![7; 4 * 1_000 + 300];
        let train = Transmit { segment_size: Some(1_000), ..transmit(watcher.addr(), 0b01, &contents) };
        socket.send(&train).await.expect("a running runtime");
        let lens: Vec<(usize, u8)> = (0..5).map(|_| watcher.next()).collect();
        let marked = |len| (len, Dscp::EF.with_ecn(0b01));
        assert_eq!(lens, [marked(1_000), marked(1_000), marked(1_000), marked(1_000), marked(300)]);
        let stats = socket.stats();
        assert_eq!(stats.bytes_sent, 4_300);
        assert!(stats.send_calls == 1 || stats.gso_refused == 1, "{stats:?}");
    }

    #[tokio::test]
    async fn the_source_address_is_kept() {
        let (sender, receiver) = (socket("0.0.0.0:0", Dscp::EF), socket("127.0.0.1:0", Dscp::default()));
        let source = "127.0.0.2".parse().expect("a literal");
        let to = receiver.local_addr().expect("a bound socket");
        let transmit = Transmit { source: Some(source), ..transmit(to, 0b10, b"hello") };
        sender.send(&transmit).await.expect("a running runtime");
        let mut batch = RecvBatch::new();
        let received = async { receiver.recv(&mut batch).await.expect("a working socket") };
        tokio::time::timeout(Duration::from_secs(5), received).await.expect("loopback delivers");
        let datagram = batch.next_datagram().expect("it was received");
        assert_eq!((datagram.remote.ip(), datagram.ecn), (source, 0b10));
    }

    #[tokio::test]
    async fn what_is_too_large_is_counted_as_such() {
        let (watcher, socket) =
            (Watcher::bind("127.0.0.1:0").expect("a free port"), socket("127.0.0.1:0", Dscp::EF));
        socket.send(&transmit(watcher.addr(), 0, &vec![0; 65_530])).await.expect("a running runtime");
        assert_eq!((socket.stats().too_big, socket.stats().send_calls), (1, 0));
    }
}
