//! A coupling of one's own: what it is shown, and that the windows follow it.

mod pair;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fulmar_proto::congestion::{CongestionControl, CoupledShare, NewRenoConfig};
use fulmar_proto::{
    CoupledPath, Coupling, CouplingFactory, FourTuple, MultipathConfig, PathId, Side, TransportConfig,
};
use pair::{Pair, Setup};

const OTHER: &str = "10.0.1.1:1000";
const SECOND: PathId = PathId(1);

/// Gives all paths the same share, and keeps where packets were lost and acknowledged.
#[derive(Debug, Clone)]
struct Witness {
    share: CoupledShare,
    lost: Arc<Mutex<Vec<PathId>>>,
    acked: Arc<Mutex<Vec<PathId>>>,
}

impl Coupling for Witness {
    fn share(&mut self, paths: &[CoupledPath], index: usize) -> CoupledShare {
        assert_eq!(
            paths.iter().map(|path| path.id).collect::<Vec<_>>(),
            [PathId::ZERO, SECOND][..paths.len()]
        );
        self.acked.lock().unwrap().push(paths[index].id);
        self.share
    }

    fn on_loss(&mut self, paths: &[CoupledPath], index: usize) {
        self.lost.lock().unwrap().push(paths[index].id);
    }
}

impl CouplingFactory for Witness {
    fn build(&self) -> Box<dyn Coupling> {
        Box::new(self.clone())
    }
}

/// Sends over two paths, of which the second loses a packet early. Returns the window of the second after the loss and at the
/// end, and what the coupling was told.
fn send(growth: u64) -> (u64, u64, Witness) {
    let share = CoupledShare::of_growth(growth);
    let witness = Witness { share, lost: Arc::default(), acked: Arc::default() };
    let multipath =
        MultipathConfig { coupling: Some(Arc::new(witness.clone())), ..MultipathConfig::default() };
    let config = || TransportConfig {
        multipath: Some(multipath.clone()),
        congestion: CongestionControl::NewReno(NewRenoConfig::default()),
        mtu_discovery: false,
        ..TransportConfig::default()
    };
    let server = TransportConfig { multipath: Some(MultipathConfig::default()), ..config() };
    let mut pair = Setup { client: config(), server, ..Setup::default() }.connect();
    let second = OTHER.parse().unwrap();
    pair.client.more_addrs = vec![second];
    let (now, addrs) = (pair.now, FourTuple::new(pair.server.addr, Some(second.ip())));
    assert_eq!(pair.client.conn().open_path(now, addrs), Ok(SECOND));
    pair.run_for(Duration::from_millis(100));
    let mut carried = 0;
    pair.client.wire = Box::new(move |flying| {
        carried += usize::from(flying.from == second);
        if flying.from == second && carried == 20 { vec![] } else { vec![flying] }
    });
    let window = |pair: &mut Pair| pair.client.conn().path_stats().nth(1).unwrap().cwnd;
    pair.transfer(Side::Client, 500_000, Duration::from_secs(5));
    let after_loss = window(&mut pair);
    pair.transfer(Side::Client, 5_000_000, Duration::from_secs(20));
    (after_loss, window(&mut pair), witness)
}

#[test]
fn a_window_grows_by_the_share_that_the_coupling_gives_it() {
    let (before, after, _) = send(0);
    assert_eq!(after, before, "no growth");
    let (before, after, _) = send(CoupledShare::ONE);
    assert!(after >= before + 2_400, "as alone: {before} to {after}");
}

#[test]
fn a_coupling_hears_of_losses_and_acknowledgements_on_each_path() {
    let (_, _, witness) = send(CoupledShare::ONE);
    assert_eq!(*witness.lost.lock().unwrap(), [SECOND]);
    let acked = witness.acked.lock().unwrap();
    assert!([PathId::ZERO, SECOND].iter().all(|id| acked.iter().filter(|it| *it == id).count() > 10));
}
