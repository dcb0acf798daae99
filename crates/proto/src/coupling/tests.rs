use super::*;

const ONE: u64 = CoupledShare::ONE;

fn path(id: u32, window: u64, rtt_ms: u64) -> CoupledPath {
    CoupledPath { id: PathId(id), window, rtt: Duration::from_millis(rtt_ms), bytes_delivered: 1_000_000 }
}

fn close(measured: u64, expected: u64) -> bool {
    measured.abs_diff(expected) <= ONE / 1_000
}

#[test]
fn names_are_read_as_they_are_written() {
    for kind in CouplingKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert_eq!("none".parse::<CouplingKind>(), Err(UnknownCoupling("none".into())));
}

#[test]
fn a_path_alone_grows_and_shrinks_as_without_a_coupling() {
    for kind in CouplingKind::ALL {
        for (window, rtt) in [(2_400, 1), (100_000, 40), (1 << 30, 600)] {
            let share = kind.build().share(&[path(3, window, rtt)], 0);
            assert!(close(share.growth, ONE) && share.reduction == ONE, "{kind}: {share:?}");
        }
    }
}

#[test]
fn equal_paths_grow_by_the_square_of_their_part_so_that_together_they_are_one_flow() {
    for kind in CouplingKind::ALL {
        for count in [2u64, 3, 4] {
            let paths: Vec<_> = (0..count).map(|id| path(id as u32, 60_000, 40)).collect();
            let share = kind.build().share(&paths, 1);
            assert!(close(share.growth, ONE / (count * count)), "{kind} with {count}: {share:?}");
            assert_eq!(share.reduction, ONE);
        }
    }
}

#[test]
fn no_path_grows_faster_than_alone() {
    for kind in CouplingKind::ALL {
        for window in [1_200, 12_000, 120_000, 12_000_000, u64::MAX >> 8] {
            for rtt in [1, 10, 100, 1_000] {
                let paths = [path(0, window, rtt), path(1, 60_000, 40)];
                for index in 0..2 {
                    let share = kind.build().share(&paths, index);
                    assert!(share.growth <= ONE + 1, "{kind}, {window} bytes, {rtt} ms: {share:?}");
                }
            }
        }
    }
}

#[test]
fn lia_grows_with_the_window_and_with_the_steepest_path() {
    // By RFC 6356: 20,000 * max(20,000 / 1, 60,000 / 16) / (20,000 / 1 + 60,000 / 4)^2 = 0.3265.
    let paths = [path(0, 20_000, 10), path(1, 60_000, 40)];
    assert!(close(lia::Lia.share(&paths, 0).growth, ONE * 3_265 / 10_000));
    assert!(close(lia::Lia.share(&paths, 1).growth, ONE * 9_796 / 10_000));
}

#[test]
fn balia_takes_more_from_a_path_that_carries_little() {
    let paths = [path(0, 30_000, 40), path(1, 60_000, 40), path(2, 60_000, 40)];
    let share = balia::Balia.share(&paths, 0);
    // a = 2: (1/5)^2 * 3/2 * 6/5 = 0.072.
    assert!(close(share.growth, ONE * 72 / 1_000), "{share:?}");
    assert_eq!(share.reduction, ONE * 3 / 2);
}

#[test]
fn olia_moves_growth_to_the_path_that_carries_most_between_losses() {
    let mut olia = olia::Olia::default();
    let mut paths = [path(0, 80_000, 40), path(1, 40_000, 40)];
    for delivered in [1_000_000, 1_050_000] {
        paths[0].bytes_delivered = delivered;
        olia.on_loss(&paths, 0);
    }
    // The larger window has carried 50 kB between its losses, the smaller one has lost nothing.
    paths[1].bytes_delivered = 4_000_000;
    assert!(close(olia.share(&paths, 1).growth, ONE / 9 + ONE / 2));
    assert_eq!(olia.share(&paths, 0).growth, 0, "4/9 - 1/2: it does not grow");
    // A path that comes back begins anew.
    assert!(close(olia.share(&paths[..1], 0).growth, ONE));
}

/// Losses were found on the first path after so many bytes acknowledged there.
fn lose(olia: &mut olia::Olia, paths: &mut [CoupledPath], delivered: &[u64]) {
    for bytes in delivered {
        paths[0].bytes_delivered = *bytes;
        olia.on_loss(paths, 0);
    }
}

#[test]
fn olia_judges_a_path_by_what_it_carries_between_losses_not_by_all_that_it_has_carried() {
    let mut olia = olia::Olia::default();
    let mut paths = [path(0, 80_000, 40), path(1, 40_000, 40)];
    lose(&mut olia, &mut paths, &[10_000_000, 10_050_000]);
    // The smaller window has carried less in all, and lost nothing.
    assert!(close(olia.share(&paths, 1).growth, ONE / 9 + ONE / 2));
    // Now the larger one has lost nothing for as long: it carries most, and there is nothing to move.
    paths[0].bytes_delivered = 12_000_000;
    assert!(close(olia.share(&paths, 1).growth, ONE / 9));
    assert!(close(olia.share(&paths, 0).growth, ONE * 4 / 9));
}

#[test]
fn olia_remembers_the_losses_of_each_path() {
    let mut olia = olia::Olia::default();
    let mut paths = [path(0, 40_000, 40), path(1, 80_000, 40)];
    for delivered in [10_000_000, 10_050_000] {
        paths[1].bytes_delivered = delivered;
        olia.on_loss(&paths, 1);
    }
    assert!(close(olia.share(&paths, 0).growth, ONE / 9 + ONE / 2));
}

#[test]
fn olia_prefers_the_shorter_round_trip_where_as_much_is_carried_between_losses() {
    let mut olia = olia::Olia::default();
    let mut paths = [path(0, 160_000, 40), path(1, 20_000, 10), path(2, 80_000, 40)];
    lose(&mut olia, &mut paths, &[1_000_000, 1_050_000]);
    // Rates of 4, 2 and 2 MB/s: the path with the short round trip alone gets what the largest window gives.
    assert!(close(olia.share(&paths, 0).growth, 0));
    assert!(close(olia.share(&paths, 1).growth, ONE / 16 + ONE / 3));
    assert!(close(olia.share(&paths, 2).growth, ONE / 16));
}

#[test]
fn olia_takes_a_part_from_each_of_the_largest_windows() {
    let mut olia = olia::Olia::default();
    let mut paths = [path(0, 90_000, 40), path(1, 90_000, 40), path(2, 20_000, 40)];
    paths[2].bytes_delivered = 2_000_000;
    for index in 0..2 {
        assert!(close(olia.share(&paths, index).growth, ONE * 2_025 / 10_000 - ONE / 6), "{index}");
    }
    assert!(close(olia.share(&paths, 2).growth, ONE / 100 + ONE / 3));
}

#[test]
fn olia_begins_anew_with_a_path_that_was_away() {
    let mut olia = olia::Olia::default();
    let mut paths = [path(0, 40_000, 40), path(1, 80_000, 40)];
    lose(&mut olia, &mut paths, &[4_000_000, 4_010_000]);
    assert!(close(olia.share(&paths, 0).growth, ONE / 9), "it lost packets lately");
    olia.share(&paths[1..], 0);
    assert!(close(olia.share(&paths, 0).growth, ONE / 9 + ONE / 2), "that is forgotten");
}
