use super::*;

fn addresses(list: &[&str]) -> Vec<SocketAddr> {
    list.iter().map(|address| address.parse().unwrap()).collect()
}

#[test]
fn families_come_in_turn() {
    let found = addresses(&["[::1]:1", "[::2]:1", "[::1]:1", "[::3]:1", "127.0.0.1:1", "127.0.0.2:1"]);
    let expected = addresses(&["[::1]:1", "127.0.0.1:1", "[::2]:1", "127.0.0.2:1", "[::3]:1"]);
    assert_eq!(in_turn(found), expected);
}

#[test]
fn a_name_of_many_addresses_is_tried_at_some() {
    let found = (0..100).map(|n| SocketAddr::from(([10, 0, 0, n], 1)));
    assert_eq!(in_turn(found).len(), ADDRESSES_MAX);
}

/// How an attempt goes: whether it succeeds, and after how many milliseconds.
type Plan = (bool, u64);

/// Tries them in their order. Returns the place of the winner, or those of all that failed, and the milliseconds that it took.
async fn race(plans: &[Plan]) -> (Result<usize, Vec<usize>>, u128) {
    let start = tokio::time::Instant::now();
    let numbered: Vec<_> = plans.iter().copied().enumerate().collect();
    let outcome = first(&numbered, |(place, (succeeds, millis))| {
        Ok(async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            if succeeds { Ok(place) } else { Err(place) }
        })
    });
    (outcome.await, start.elapsed().as_millis())
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_silent_costs_a_moment() {
    assert_eq!(race(&[(true, 60_000), (true, 10)]).await, (Ok(1), 260));
    assert_eq!(race(&[(true, 60_000), (true, 60_000), (true, 10)]).await, (Ok(2), 510));
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_costs_only_its_own_time() {
    assert_eq!(race(&[(false, 10), (true, 10)]).await, (Ok(1), 20));
    // The first is waited for beside the others.
    assert_eq!(race(&[(true, 300), (false, 10), (false, 10)]).await, (Ok(0), 300));
}

#[tokio::test(start_paused = true)]
async fn all_failures_are_told_in_their_order() {
    assert_eq!(race(&[(false, 400), (false, 10)]).await, (Err(vec![1, 0]), 400));
    assert_eq!(race(&[]).await, (Err(vec![]), 0));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_begin_is_passed_over() {
    let outcome = first(&[0, 1], |place| match place {
        0 => Err("cannot begin"),
        _ => Ok(async move { Ok::<_, &str>(place) }),
    });
    assert_eq!(outcome.await, Ok(1));
}
