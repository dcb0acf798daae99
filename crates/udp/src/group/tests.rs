use std::net::Ipv4Addr;

use super::*;
use crate::RecvBatch;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A group, in the runtime.
fn group_at(addr: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    UdpSocket::bind_group(addr, count)?.into_iter().map(UdpSocket::from_std).collect()
}

#[tokio::test]
async fn a_group_has_one_address_and_refuses_another_group() {
    let group = group_at(ANY, 3).unwrap();
    let addr = group[0].local_addr().unwrap();
    assert_eq!(group.len(), 3);
    assert!(group.iter().all(|socket| socket.local_addr().unwrap() == addr));
    assert_eq!(UdpSocket::bind_group(addr, 2).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    assert_eq!(UdpSocket::bind(addr).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    drop(group);
    assert_eq!(UdpSocket::bind_group(addr, 1).unwrap().len(), 1);
}

/// The datagrams that wait in a socket.
fn received(socket: &UdpSocket, batch: &mut RecvBatch) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while socket.try_recv(batch).is_ok() {
        all.extend(std::iter::from_fn(|| batch.next_datagram()).map(|datagram| datagram.payload.to_vec()));
    }
    all
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_chooses_the_socket_wherever_datagrams_come_from() {
    // The second byte, or with the highest bit of the first one set, the byte that it points to; of these the lower half.
    let program = [
        Instruction::Load(0),
        Instruction::SkipIfSet { bits: 0x80, count: 2 },
        Instruction::Load(1),
        Instruction::Skip(4),
        Instruction::And(0x7f),
        Instruction::SetIndex,
        Instruction::LoadIndexed(1),
        Instruction::XorIndex,
        Instruction::And(0x0f),
        Instruction::Modulo(3),
        Instruction::Choose,
    ];
    let group = group_at(ANY, 3).unwrap();
    group[1].steer(&program).unwrap();
    let addr = group[0].local_addr().unwrap();
    let expected = |datagram: &[u8]| match datagram[0] {
        first @ 0x80.. => ((datagram[usize::from(first & 0x7f) + 1] ^ (first & 0x7f)) & 0x0f) % 3,
        _ => (datagram[1] & 0x0f) % 3,
    };
    for number in 0..=255_u8 {
        let from = std::net::UdpSocket::bind(ANY).unwrap();
        from.send_to(&[number & 0x7f, number, 1], addr).unwrap();
        from.send_to(&[0x82, 9, number, number ^ 0x35], addr).unwrap();
    }
    let mut batch = RecvBatch::new();
    let mut count = 0;
    for (index, socket) in group.iter().enumerate() {
        socket.recv(&mut batch).await.unwrap();
        let mut all: Vec<Vec<u8>> =
            std::iter::from_fn(|| batch.next_datagram()).map(|datagram| datagram.payload.to_vec()).collect();
        all.extend(received(socket, &mut batch));
        count += all.len();
        for datagram in &all {
            assert_eq!(usize::from(expected(datagram)), index, "{datagram:?}");
        }
    }
    assert_eq!(count, 512);
}

#[tokio::test]
async fn a_program_that_the_kernel_does_not_take_is_an_error() {
    let socket = UdpSocket::bind(ANY).unwrap();
    assert!(socket.steer(&[Instruction::Load(0)]).is_err(), "it never ends");
    assert!(socket.steer(&[]).is_err());
}
