use fulmar_base::Instant;
use fulmar_wire::{Datagram, Dialect, Frame, PathId};

use super::vectors::{REED_SOLOMON, TEXT, XOR, bytes};
use super::*;
use crate::ext::fec::tests::PATH;
use crate::ext::fec::{FecConfig, FecSender, Upcoming};
use crate::packet::{FrameWriter, SentFrame};

fn sender(blocks: BlockCode) -> FecSender {
    FecSender::in_blocks(&FecConfig::default(), blocks)
}

/// Sends a packet with these protected frames; returns its payload.
fn send(sender: &mut FecSender, protected: &[u8]) -> Vec<u8> {
    let mut payload = [0; 1_200];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    sender.begin(Upcoming { room: 1_200, ..Upcoming::default() }, &mut out);
    for frame in fulmar_wire::frames(protected, Dialect::SinglePath) {
        assert!(out.write(&frame.unwrap(), SentFrame::Ping));
    }
    sender.end_symbol(Instant::ZERO, PathId::ZERO, &mut out);
    let len = out.finish().len;
    payload[..len].to_vec()
}

/// The repair symbols that wait, each the payload of a packet.
fn repairs(sender: &mut FecSender) -> Vec<Vec<u8>> {
    sender.schedule(Instant::ZERO, false, &PATH);
    let mut repairs = Vec::new();
    while sender.has_repairs() {
        let mut payload = [0; 1_200];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        sender.write(Instant::ZERO, 1_200, &mut out);
        let len = out.finish().len;
        repairs.push(payload[..len].to_vec());
    }
    repairs
}

#[test]
fn what_is_sent_with_xor_is_what_the_fork_sends() {
    let mut sender = sender(BlockCode::Xor);
    // The stream frames of the second block are encoded in other ways here, which mean the same.
    let (block, repair) = &XOR[0];
    for (protected, frame) in block {
        assert!(repairs(&mut sender).is_empty(), "the block is not full");
        assert_eq!(send(&mut sender, &bytes(protected)), bytes(frame));
    }
    assert_eq!(repairs(&mut sender), [bytes(repair)]);
}

#[test]
fn what_is_sent_with_reed_solomon_is_what_the_fork_sends() {
    let mut sender = sender(BlockCode::ReedSolomon);
    for len in 1..=TEXT.len() {
        let frame = Frame::Datagram(Datagram { data: &TEXT[..len] });
        let mut protected = vec![0; frame.encoded_len(Dialect::SinglePath)];
        frame.encode(Dialect::SinglePath, &mut fulmar_wire::Writer::new(&mut protected));
        assert!(repairs(&mut sender).is_empty(), "the block is not full");
        send(&mut sender, &protected);
    }
    assert_eq!(repairs(&mut sender), REED_SOLOMON.map(bytes));
}

#[test]
fn a_block_has_no_more_repair_symbols_than_its_code() {
    let id = |blocks: BlockCode, block, parity| {
        blocks.repair_id(VarInt::saturating(block), VarInt::saturating(parity))
    };
    assert_eq!(id(BlockCode::Xor, 3, 0), Some(RepairId { first: 6, count: 2, key: 0 }));
    assert_eq!(id(BlockCode::ReedSolomon, 3, 9), Some(RepairId { first: 60, count: 20, key: 9 }));
    assert_eq!(id(BlockCode::Xor, 3, 1), None);
    assert_eq!(id(BlockCode::ReedSolomon, 3, 10), None);
    assert_eq!(id(BlockCode::ReedSolomon, 3, u64::MAX), None);
    assert_eq!(id(BlockCode::Xor, VarInt::MAX.get(), 0), None, "its symbols have no numbers");
}

#[test]
fn a_block_is_named_by_its_place() {
    assert_eq!([0, 1, 2, 5].map(|first| BlockCode::Xor.block_of(first).get()), [0, 0, 1, 2]);
    let of = |block: u64| block * u64::from(BlockCode::ReedSolomon.source());
    assert_eq!(
        [of(1) - 1, of(1), of(7)].map(|first| BlockCode::ReedSolomon.block_of(first).get()),
        [0, 1, 7]
    );
}
