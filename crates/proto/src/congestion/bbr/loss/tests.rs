use super::*;

#[test]
fn the_flight_at_losses_is_what_was_out_when_they_came_to_be_too_many() {
    // 2 % of what was out are tolerated: of 100,000 bytes 2,000, of which 1,500 were lost before this packet.
    assert_eq!(inflight_at_loss(101_000, 2_500, 1_000), 100_000 + 510);
    assert_eq!(inflight_at_loss(101_000, 4_000, 1_000), 100_000, "they were too many already");
}
