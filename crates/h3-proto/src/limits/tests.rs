use std::time::Duration;

use fulmar_base::Instant;

use super::{Bucket, Useless};
use crate::config::Rate;

#[test]
fn a_bucket_gives_its_burst_and_fills_with_time() {
    let mut bucket = Bucket::new(Rate { burst: 3, per_second: 2 });
    let mut now = Instant::from_millis(1000);
    assert!((0..3).all(|_| bucket.take(now)));
    assert!(!bucket.take(now));
    now += Duration::from_millis(499);
    assert!(!bucket.take(now));
    now += Duration::from_millis(1);
    assert!(bucket.take(now));
    assert!(!bucket.take(now));
    now += Duration::from_secs(1_000_000);
    assert_eq!((0..10).filter(|_| bucket.take(now)).count(), 3);
}

#[test]
fn what_is_of_use_makes_up_for_what_is_not() {
    let mut useless = Useless::new(2);
    for _ in 0..100 {
        useless.count().unwrap();
        useless.make_up();
    }
    assert!(useless.count().is_ok());
    assert!(useless.count().is_ok());
    assert!(useless.count().is_err());
    useless.make_up_for_message();
    assert!(useless.count().is_ok());
    assert!(useless.count().is_ok());
    assert!(useless.count().is_err());
}
