use std::net::Ipv4Addr;

use fulmar_proto::{CidGenerator, Ecn, FourTuple, RandomCids};
use fulmar_udp::{RecvBatch, UdpSocket};

use super::*;

const CID_LEN: u8 = 9;

fn steering(workers: usize) -> Steering {
    let queues: Vec<_> = (0..workers).map(|_| Arc::new(ReadyQueue::new())).collect();
    Steering::new(CID_LEN, &queues)
}

fn short_header(cid: &[u8]) -> Vec<u8> {
    [&[0x40], cid, &[1; 20]].concat()
}

fn long_header(cid: &[u8]) -> Vec<u8> {
    [&[0xc0, 0, 0, 0, 1, cid.len() as u8], cid, &[0; 20]].concat()
}

#[test]
fn datagrams_name_the_worker_whose_connection_id_they_carry() {
    let mut rng = fulmar_base::Rng::from_u64(1);
    let steering = steering(5);
    for worker in 0..5_u8 {
        let cids = WorkerCids::new(Arc::new(RandomCids::new(8)), worker);
        for _ in 0..100 {
            let cid = cids.generate(&mut rng);
            assert_eq!(steering.worker_of(&short_header(cid.as_bytes())), Some(worker.into()));
            assert_eq!(steering.worker_of(&long_header(cid.as_bytes())), Some(worker.into()));
        }
    }
}

#[test]
fn what_is_too_short_names_no_worker() {
    let steering = steering(2);
    for datagram in
        [&[][..], &[0x40], &[0x40; 9], &[0xc0; 5], &[0xc0, 0, 0, 0, 1, 8, 1, 2], &long_header(&[7])]
    {
        assert_eq!(steering.worker_of(datagram), None, "{datagram:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_kernel_chooses_as_the_workers_do() {
    let mut rng = fulmar_base::Rng::from_u64(2);
    let steering = steering(3);
    let group = UdpSocket::bind_group((Ipv4Addr::LOCALHOST, 0).into(), 3).unwrap();
    let group: Vec<_> = group.into_iter().map(|socket| UdpSocket::from_std(socket).unwrap()).collect();
    group[0].steer(&steering.program()).unwrap();
    let addr = group[0].local_addr().unwrap();
    for _ in 0..100 {
        let from = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let bytes: [u8; 20] = rng.bytes();
        from.send_to(&short_header(&bytes[..CID_LEN.into()]), addr).unwrap();
        from.send_to(&long_header(&bytes[..8 + usize::from(bytes[0] % 13)]), addr).unwrap();
    }
    let mut count = 0;
    for (index, socket) in group.iter().enumerate() {
        let mut batch = RecvBatch::new();
        let mut received = socket.recv(&mut batch).await;
        while received.is_ok() {
            for datagram in std::iter::from_fn(|| batch.next_datagram()) {
                assert_eq!(steering.worker_of(&datagram.payload), Some(index));
                count += 1;
            }
            received = socket.try_recv(&mut batch);
        }
    }
    assert_eq!(count, 200);
}

#[test]
fn what_waits_for_a_worker_is_bounded() {
    let steering = steering(2);
    let datagram = |len: usize| Datagram {
        addrs: FourTuple::new(([127, 0, 0, 1], 1).into(), None),
        ecn: Ecn::NotEct,
        payload: BytesMut::zeroed(len),
    };
    assert_eq!((0..10_000).filter(|_| steering.forward(1, datagram(10))).count(), DATAGRAMS_MAX);
    assert!(steering.take(0).is_empty());
    assert_eq!(steering.take(1).len(), DATAGRAMS_MAX);
    assert_eq!((0..10_000).filter(|_| steering.forward(1, datagram(1_400))).count(), BYTES_MAX / 1_400);
    assert_eq!(steering.take(1).len(), BYTES_MAX / 1_400);
    assert!(steering.forward(1, datagram(1_400)), "there is room again");
    assert_eq!(steering.forwarded_to(1), (DATAGRAMS_MAX + BYTES_MAX / 1_400 + 1) as u64);
    assert_eq!(steering.forwarded_to(0), 0);
}
