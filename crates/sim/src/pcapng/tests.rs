use super::*;
use crate::Ecn;

const KEY_LOG: &str = "CLIENT_TRAFFIC_SECRET_0 00 11\n";

/// A block: its type and its body.
type Block = (u32, Vec<u8>);

/// Takes a file apart, checking what all blocks have in common.
fn blocks(mut file: &[u8]) -> Vec<Block> {
    let mut blocks = Vec::new();
    while !file.is_empty() {
        let (kind, total) = (u32_at(file, 0), u32_at(file, 4) as usize);
        assert!(total % 4 == 0 && total >= 12, "a block of {total} bytes");
        assert_eq!(u32_at(file, total - 4) as usize, total, "the lengths at both ends differ");
        blocks.push((kind, file[8..total - 4].to_vec()));
        file = &file[total..];
    }
    blocks
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn packet(source: &str, destination: &str, ecn: Ecn, payload: &[u8]) -> Packet {
    let [source, destination] = [source, destination].map(|text| text.parse().expect("an address"));
    Packet::new(source, destination, ecn, payload.to_vec())
}

/// The frame of an Enhanced Packet Block.
fn frame(block: &Block) -> &[u8] {
    assert_eq!(block.0, ENHANCED_PACKET);
    let (captured, original) = (u32_at(&block.1, 12), u32_at(&block.1, 16));
    assert_eq!(captured, original);
    &block.1[20..20 + captured as usize]
}

/// The one's complement sum of a whole that includes its checksum is all ones.
fn sums_up(parts: &[&[u8]]) -> bool {
    let mut sum = Checksum::default();
    parts.iter().for_each(|part| sum.add(part));
    sum.finish() == 0
}

fn written(packet: &Packet) -> Vec<u8> {
    let mut file = PcapNg::new(Vec::new()).expect("a vector takes everything");
    let interface = file.interface("client").expect("a vector takes everything");
    file.packet(interface, Instant::ZERO, packet).expect("a vector takes everything");
    let blocks = blocks(&file.finish().expect("a vector takes everything"));
    frame(&blocks[2]).to_vec()
}

#[test]
fn a_file_has_its_blocks_in_order() {
    let write = || -> io::Result<Vec<u8>> {
        let mut file = PcapNg::new(Vec::new())?;
        let client = file.interface("client")?;
        let server = file.interface("the server")?;
        assert_ne!(client, server);
        file.secrets(KEY_LOG)?;
        let sent = packet("10.0.0.1:1000", "10.0.0.2:443", Ecn::Ect0, b"hello");
        file.packet(server, Instant::from_nanos(0x1_0000_0002), &sent)?;
        file.finish()
    };
    let blocks = blocks(&write().expect("a vector takes everything"));
    let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
    assert_eq!(
        kinds,
        [SECTION_HEADER, INTERFACE_DESCRIPTION, INTERFACE_DESCRIPTION, DECRYPTION_SECRETS, ENHANCED_PACKET]
    );
    assert_eq!(u32_at(&blocks[0].1, 0), BYTE_ORDER_MAGIC);
    assert_eq!(blocks[1].1[..2], [101, 0]);
    // The name, padded, and the resolution of the timestamps.
    assert_eq!(blocks[1].1[8..18], *b"\x02\0\x06\0client");
    assert_eq!(blocks[1].1[20..25], [9, 0, 1, 0, 9]);
    assert_eq!(u32_at(&blocks[3].1, 4) as usize, KEY_LOG.len());
    assert_eq!(&blocks[3].1[8..8 + KEY_LOG.len()], KEY_LOG.as_bytes());
    // Interface 1, and the time: high part first.
    assert_eq!([0, 4, 8].map(|at| u32_at(&blocks[4].1, at)), [1, 1, 2]);
}

#[test]
fn an_ipv4_packet_has_right_headers() {
    let frame = written(&packet("10.0.0.1:1000", "10.0.0.2:443", Ecn::Ce, b"hello"));
    assert_eq!(frame.len(), 20 + 8 + 5);
    assert_eq!(frame[..4], [0x45, 3, 0, 33]);
    assert_eq!(frame[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
    assert!(sums_up(&[&frame[..20]]));
    assert_eq!(frame[20..26], [3, 232, 1, 187, 0, 13]);
    assert_eq!(&frame[28..], b"hello");
    assert!(sums_up(&[&frame[12..20], &[0, 17, 0, 13], &frame[20..]]));
}

#[test]
fn an_ipv6_packet_has_right_headers() {
    let frame = written(&packet("[2001:db8::1]:1000", "[2001:db8::2]:443", Ecn::Ect1, b"hello!"));
    assert_eq!(frame.len(), 40 + 8 + 6);
    assert_eq!(frame[..8], [0x60, 0x10, 0, 0, 0, 14, 17, 64]);
    assert_eq!((frame[23], frame[39]), (1, 2));
    assert!(sums_up(&[&frame[8..40], &[0, 17, 0, 14], &frame[40..]]));
}

#[test]
fn a_checksum_of_zero_is_sent_as_ones() {
    // Both sums are those of the same words; the payload makes up for what the rest lacks.
    let probe = written(&packet("10.0.0.1:1", "10.0.0.2:2", Ecn::NotEct, &[0, 0]));
    let missing = [probe[26], probe[27]];
    let frame = written(&packet("10.0.0.1:1", "10.0.0.2:2", Ecn::NotEct, &missing));
    assert_eq!(frame[26..28], [0xff, 0xff]);
}

#[test]
fn a_payload_too_long_for_ip_is_cut() {
    let frame = written(&packet("10.0.0.1:1", "10.0.0.2:2", Ecn::NotEct, &vec![7; 70_000]));
    assert_eq!(frame.len(), 65_535);
    assert_eq!(frame[2..4], [0xff, 0xff]);
}

#[test]
fn errors_of_the_output_are_passed_on() {
    let mut space = [0; 40];
    let mut file = PcapNg::new(&mut space[..]).expect("there is room for the first block");
    assert!(file.secrets(KEY_LOG).is_err());
}
