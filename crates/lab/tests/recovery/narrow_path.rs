//! A path whose MTU drops from 1500 to 1394 bytes under a transfer.

use std::time::Duration;

use fulmar_proto::TimerStyle;
use fulmar_sim::{Change, LinkConfig};

use crate::run::{Finished, at, controllers, download, ms, with};

fn narrowing(number: usize, timers: TimerStyle) -> Finished {
    let link = LinkConfig { mtu: Some(1_500), ..LinkConfig::with_rate(1_000_000, ms(100), ms(200)) };
    let link = link.then(at(1_000), Change::Mtu(Some(1_394)));
    download(link, with(&controllers()[number], timers), 1_000_000).finish(Duration::from_secs(30))
}

#[test]
fn the_size_that_still_fits_is_found() {
    for number in 0..3 {
        let run = narrowing(number, TimerStyle::OncePerRtt);
        assert_eq!(run.server.black_holes, 1, "{run:?}");
        assert_eq!(run.server.mtu, 1_388, "{run:?}");
        assert_eq!(run.server.pto_count, 1, "one timeout is enough to notice: {run:?}");
        // 8.4 s at the rate of the link, and the handshake, and less than a second without a packet.
        assert!(run.time < ms(9_500), "{run:?}");
    }
}

#[test]
fn an_end_that_only_receives_leaves_its_way_back_to_acknowledgements() {
    let link = LinkConfig { mtu: Some(1_500), ..LinkConfig::with_rate(10_000_000, ms(10), ms(50)) };
    let config = with(&controllers()[0], TimerStyle::OncePerRtt);
    let run = download(link, config, 1_000_000).finish(Duration::from_secs(30));
    assert_eq!((run.server.mtu, run.client.mtu), (1_452, 1_200), "{run:?}");
}

#[test]
fn classic_timers_notice_it_later() {
    for number in 0..3 {
        let [ours, classic] =
            [TimerStyle::OncePerRtt, TimerStyle::Classic].map(|t| narrowing(number, t).time);
        assert!(ours + ms(50) < classic, "{ours:?} {classic:?}");
    }
}
