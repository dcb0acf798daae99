use super::*;

const MUCH: u64 = UNREAD_LATE + 1;

/// Something was received by a worker that has all of its patience. Returns whether it is to wait for a reader now.
fn on_received(readers: &mut Readers, unread: u64) -> bool {
    readers.on_received(unread, &mut Patience::default())
}

/// Readers that are awaited.
fn awaited() -> Readers {
    let mut readers = Readers::default();
    readers.on_woken();
    assert!(on_received(&mut readers, MUCH));
    readers
}

#[test]
fn a_reader_that_was_woken_is_awaited_once_much_lies_there_until_most_of_it_is_read() {
    let mut readers = Readers::default();
    assert!(!on_received(&mut readers, MUCH), "nobody was woken");
    readers.on_woken();
    assert!(!on_received(&mut readers, UNREAD_LATE));
    assert!(on_received(&mut readers, MUCH));
    assert!(readers.are_awaited());
    assert!(!on_received(&mut readers, MUCH), "the worker knows");
    assert!(!readers.on_read(UNREAD_RESUME + 1) && readers.are_awaited());
    assert!(readers.on_read(UNREAD_RESUME) && !readers.are_awaited());
}

#[test]
fn one_that_reads_while_more_comes_is_not_awaited_however_much_lies_there() {
    let mut readers = Readers::default();
    readers.on_woken();
    for _ in 0..5 {
        assert!(!readers.on_read(MUCH), "the worker does not wait");
        assert!(!on_received(&mut readers, 2 * MUCH));
    }
    assert!(on_received(&mut readers, 2 * MUCH), "nothing was read since the last data came");
}

#[test]
fn one_that_has_read_all_that_is_for_it_is_not_awaited_although_much_is_there_for_others() {
    let mut readers = awaited();
    assert!(readers.on_wait());
    assert!(!readers.are_awaited() && !on_received(&mut readers, MUCH));
}

#[test]
fn readers_that_were_awaited_in_vain_are_not_awaited_again_until_much_was_read() {
    let mut readers = awaited();
    readers.end_wait(&mut Patience::default());
    for _ in 0..3 {
        assert!(!on_received(&mut readers, MUCH));
        assert!(!readers.on_read(UNREAD_RESUME + 1) && !readers.on_wait());
        readers.on_woken();
    }
    assert!(!readers.on_read(UNREAD_RESUME));
    assert!(!on_received(&mut readers, MUCH) && on_received(&mut readers, MUCH));
}

/// Readers that have read something since the last data came.
fn reading() -> Readers {
    let mut readers = Readers::default();
    readers.on_woken();
    readers.on_read(0);
    readers
}

/// Two turns bring much, and nobody reads meanwhile. Returns whether the worker is to wait.
fn is_late(readers: &mut Readers, patience: &mut Patience) -> bool {
    let first = readers.on_received(MUCH, patience);
    assert!(!first, "something was read just before");
    readers.on_received(MUCH, patience)
}

#[test]
fn readers_that_are_away_after_each_burst_are_awaited_ever_less_often() {
    let mut patience = Patience::default();
    // The worker has several such connections, and has the same patience with all of them.
    let mut connections = [reading(), reading(), reading()];
    let mut waits = Vec::new();
    for burst in 0..3_000 {
        let readers = &mut connections[burst % 3];
        if is_late(readers, &mut patience) {
            waits.push(burst);
            readers.end_wait(&mut patience);
        }
        assert!(!readers.on_read(0), "nobody waits for it any more");
    }
    assert_eq!(waits[..5], [0, 2, 5, 10, 19]);
    let gaps: Vec<usize> = waits.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.is_sorted() && gaps.last() == Some(&(SKIPPED_MAX as usize + 1)), "{gaps:?}");
}

#[test]
fn one_that_comes_as_soon_as_the_processor_is_free_is_awaited_each_time() {
    let (mut patience, mut readers) = (Patience::default(), reading());
    for burst in 0..1_000 {
        assert!(is_late(&mut readers, &mut patience), "{burst}");
        assert!(readers.on_read(0), "the worker waits for it");
        readers.end_wait(&mut patience);
    }
}

#[test]
fn a_reader_that_comes_in_time_gives_the_worker_its_patience_back() {
    let (mut patience, mut readers) = (Patience::default(), reading());
    for _ in 0..1_000 {
        if is_late(&mut readers, &mut patience) {
            readers.end_wait(&mut patience);
        }
        readers.on_read(0);
    }
    let mut skipped = 0;
    while !is_late(&mut readers, &mut patience) {
        skipped += 1;
        readers.on_read(0);
    }
    assert!(skipped <= SKIPPED_MAX);
    readers.on_read(0);
    readers.end_wait(&mut patience);
    for _ in 0..100 {
        assert!(is_late(&mut readers, &mut patience));
        readers.on_read(0);
        readers.end_wait(&mut patience);
    }
}
