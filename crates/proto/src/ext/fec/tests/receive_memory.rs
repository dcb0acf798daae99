//! What decoders take of the memory of their endpoint.

use super::*;

/// The source symbols of a round.
const ROUND: [&[u8]; 2] = [b"lost", b"other"];

/// A receiver with a window of 64 symbols takes a source symbol.
fn take(receiver: &mut FecReceiver, round: u16, index: u16) {
    receiver.on_sid(&FecSid { id: round * 2 + index }).unwrap();
    receiver.end_packet(ROUND[usize::from(index)]).unwrap();
}

/// A receiver takes the repair symbol over both symbols of a round; returns which of them it recovers.
fn repaired(receiver: &mut FecReceiver, round: u16) -> Option<u16> {
    let first = u64::from(round) * 2;
    let mut window = fulmar_fec::SourceWindow::new(2).starting_at(first);
    for source in ROUND {
        window.push(source).unwrap();
    }
    let mut symbol = Vec::new();
    window.repair(&fulmar_fec::Xor, &window.repair_from(first, 0).unwrap(), &mut symbol).unwrap();
    let repair = FecRepair { scheme: 0, first: first as u16, more: 1, key: 0, symbol: &symbol };
    receiver.on_repair(&repair).unwrap();
    let (id, frames) = receiver.next_recovered()?;
    let index = (id - first) as u16;
    assert_eq!(frames, ROUND[usize::from(index)]);
    Some(index)
}

/// Tells a receiver of a symbol that is lost; returns whether that is recovered.
fn recovers(receiver: &mut FecReceiver, round: u16) -> bool {
    take(receiver, round, 1);
    repaired(receiver, round) == Some(0)
}

#[test]
fn decoders_share_the_memory_of_the_endpoint_and_wait_for_those_that_end() {
    let config = FecConfig { window: 64, ..FecConfig::default() };
    // Each takes 64 symbols of 1,502 bytes with 64 coefficients, rounded up: 96 KiB and the 16 KiB that are free.
    let memory = SharedMemory::new(200 << 10);
    let receiver = || FecReceiver::new(&config, None, Reservation::new(memory.clone()));
    let (mut first, mut second, mut third) = (receiver(), receiver(), receiver());
    assert!(recovers(&mut first, 0) && recovers(&mut second, 0));
    assert!(!recovers(&mut third, 0), "nothing is left");
    let mut stats = FecStats::default();
    third.add_stats(&mut stats);
    assert_eq!((stats.repairs_received, stats.repairs_dropped), (1, 1));
    assert!(recovers(&mut first, 1), "others go on");
    drop(second);
    // What arrived when there was no memory is not recovered, whatever comes late.
    take(&mut third, 0, 0);
    assert_eq!(repaired(&mut third, 0), None);
    assert!(recovers(&mut third, 1));
    drop((first, third));
    assert_eq!(memory.reserved(), 0);
}
