use super::*;

#[test]
fn a_trial_that_was_put_off_waits_for_twice_as_many_probes_as_the_one_before() {
    let mut trial = LossTrial::default();
    for waits in [1, 2, 4, 8, 16, 32, 64, 64] {
        trial.put_off();
        for _ in 0..waits {
            assert!(trial.probes_until_next > 0);
            trial.on_probe();
        }
        assert_eq!(trial.probes_until_next, 0);
    }
}
