use fulmar_base::Instant;
use fulmar_sim::{Ecn, Packet, PcapNg};

use super::*;

/// An IP packet as the simulator's capture files have it, behind the headers of the file and of the block.
fn packet(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    let mut file = PcapNg::new(Vec::new()).unwrap();
    let interface = file.interface("x").unwrap();
    let before = file.finish().unwrap().len();
    let mut file = PcapNg::new(Vec::new()).unwrap();
    assert_eq!(file.interface("x").unwrap(), interface);
    let packet = Packet::new(from.parse().unwrap(), to.parse().unwrap(), Ecn::Ect0, payload.to_vec());
    file.packet(interface, Instant::ZERO, &packet).unwrap();
    let file = file.finish().unwrap();
    let len = u32::from_le_bytes(file[before + 20..before + 24].try_into().unwrap()) as usize;
    file[before + 28..before + 28 + len].to_vec()
}

#[test]
fn headers_are_read() {
    for (from, to) in [("10.0.0.1:1000", "10.0.0.2:443"), ("[fd00::1]:1000", "[fd00::2]:443")] {
        let bytes = packet(from, to, b"hello");
        let parsed = IpPacket::parse(&bytes).unwrap();
        assert_eq!((parsed.from().to_string(), parsed.to().to_string()), (from.to_owned(), to.to_owned()));
        assert_eq!(parsed.ecn, 2);
        assert_eq!(&bytes[parsed.payload().unwrap()], b"hello");
    }
}

#[test]
fn a_packet_with_other_addresses_is_as_if_it_had_been_sent_so() {
    for (from, to, other) in [
        ("10.0.0.1:1000", "10.0.0.2:443", "10.0.0.77:2000"),
        ("[fd00::1]:1000", "[fd00::2]:443", "[fd00::77]:2000"),
    ] {
        let mut bytes = packet(from, to, b"hello");
        let mut parsed = IpPacket::parse(&bytes).unwrap();
        parsed.set_source(&mut bytes, other.parse().unwrap());
        assert_eq!(bytes, packet(other, to, b"hello"));
        parsed.set_destination(&mut bytes, from.parse().unwrap());
        assert_eq!(bytes, packet(other, from, b"hello"));
    }
}

#[test]
fn what_is_no_datagram_has_no_payload() {
    let mut bytes = packet("10.0.0.1:1000", "10.0.0.2:443", b"hello");
    bytes[9] = 6;
    assert!(!IpPacket::parse(&bytes).unwrap().is_udp());
    assert_eq!(IpPacket::parse(&[]), None);
    assert_eq!(IpPacket::parse(&[0x45; 10]), None);
}
