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
