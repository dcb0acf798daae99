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

#[tokio::test]
async fn an_address_that_is_silent_costs_a_moment() {
    let found = addresses(&["10.0.0.1:1", "10.0.0.2:1"]);
    let first = found[0];
    let connected = connect(&found, |address| {
        Ok(async move {
            if address == first {
                std::future::pending::<()>().await;
            }
            Ok(address)
        })
    });
    let connected = tokio::time::timeout(Duration::from_secs(5), connected).await.unwrap();
    assert_eq!(connected.unwrap(), found[1]);
}
