//! Frames that the fork of quic-go (0xFEC, commit 0749083b) has written: its `fec.Sender` was given these payloads, and the frames were
//! printed as its `Append` has encoded them.

/// Two blocks of XOR: each source symbol as (its protected frames, the SOURCE_SYMBOL frame), and the REPAIR frame of the block.
///
/// The first has the datagrams "first" and "and second": lengths of 7 and 12 bytes, whose sum 11 stands at the end of the repair symbol. The
/// second has a datagram and a stream frame in one symbol, and a stream frame that ends the stream in the other.
pub(crate) const XOR: [([(&str, &str); 2], &str); 2] = [
    (
        [
            ("31056669727374", "c0000032a80fec55000731056669727374"),
            ("310a616e64207365636f6e64", "c0000032a80fec55010c310a616e64207365636f6e64"),
        ],
        "b2a80fec00000e000f070716530765636f6e64000b",
    ),
    (
        [
            ("3101640a0003414243", "c0000032a80fec5502093101640a0003414243"),
            ("0f000303444546", "c0000032a80fec5503070f000303444546"),
        ],
        "b2a80fec01000b3e0167094446074243000e",
    ),
];

/// What the datagrams of the block of [`REED_SOLOMON`] are made of: that of symbol `i` has its first `i` + 1 bytes.
pub(crate) const TEXT: &[u8; 20] = b"forward erasure corr";

/// The ten REPAIR frames of a block of 20 source symbols, each of them one DATAGRAM frame.
pub(crate) const REED_SOLOMON: [&str; 10] = [
    "b2a80fec00001831eb66b9e6ef8c3c4ba86522181465010907633f31a60095",
    "b2a80fec000118310366b7e6af8c5f4b7265bd183b655809c3632f319700c1",
    "b2a80fec000218317e66fdb5f58c5684b865d9943565efa9de630f431100bc",
    "b2a80fec000318312a6672b5c48c66843f656794306597a967637043520054",
    "b2a80fec00041831a766d944ae9fa3447d00fbc10c770b336f632511aa006a",
    "b2a80fec00051831ca66ab448e9fd444030021c11c77813326630a11bb0015",
    "b2a80fec000618310466239f589f56bbb600133f1b773827b76395633f00db",
    "b2a80fec000718317b66ea9fc69f88bbe400123f3a771b27d263d5635c00b6",
    "b2a80fec0008183117660e3b661397bb47001e22601217733563d820dd0087",
    "b2a80fec00091831ea66673bb41368bb1500b0223a122f734e638820fd00c0",
];

/// The bytes that are written so.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| (digit as char).to_digit(16).expect("a digit") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
