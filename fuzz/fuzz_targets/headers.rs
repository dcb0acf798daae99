//! Any datagram is split into packets, and their headers are unprotected, without a panic.
#![no_main]

use fulmar_wire::{
    HeaderError, ProtectedKind, negotiated_versions, packet_number, protect_header, read_packet, sample,
    unprotect_header,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, [u8; 5], Vec<u8>)| {
    let (cid_len, mask, mut datagram) = input;
    let cid_len = usize::from(cid_len % 21);
    let mut at = 0;
    while at < datagram.len() {
        let rest = &mut datagram[at..];
        match read_packet(rest, cid_len) {
            Ok(packet) => {
                assert!(packet.len > 0 && packet.len <= rest.len());
                let bytes = &mut rest[..packet.len];
                match packet.kind {
                    ProtectedKind::VersionNegotiation { versions } => {
                        negotiated_versions(&bytes[versions]).for_each(drop);
                    }
                    ProtectedKind::Retry { token, .. } => assert!(bytes.get(token).is_some()),
                    ProtectedKind::Initial { pn_offset, .. }
                    | ProtectedKind::ZeroRtt { pn_offset }
                    | ProtectedKind::Handshake { pn_offset }
                    | ProtectedKind::OneRtt { pn_offset } => {
                        if sample(bytes, pn_offset).is_some() {
                            let before = bytes.to_vec();
                            let bits = unprotect_header(bytes, pn_offset, mask).expect("there is a sample");
                            packet_number::decode(Some(7), bits.truncated_pn, bits.pn_len);
                            protect_header(bytes, pn_offset, mask);
                            assert_eq!(bytes, before);
                        }
                    }
                }
                at += packet.len;
            }
            Err(HeaderError::UnsupportedVersion(cids)) => {
                assert!(cids.dst(rest).len() + cids.src(rest).len() <= rest.len());
                return;
            }
            Err(_) => return,
        }
    }
});
