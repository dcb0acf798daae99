use std::sync::Arc;
use std::time::Duration;

use fulmar_base::Rng;
use fulmar_wire::{NewConnectionId, PathId, ResetToken, VarInt};

use super::*;
use crate::config::EndpointConfig;
use crate::crypto::ResetKey;
use crate::path::{PathSetup, ProbeTimer, Validation};
use crate::rtt::TimerStyle;
use crate::space::AckPolicy;

const NOW: Instant = Instant::ZERO;

fn cid(n: u8) -> ConnectionId {
    ConnectionId::new(&[n; 8]).unwrap()
}

fn addrs(remote: &str) -> FourTuple {
    FourTuple::new(remote.parse().unwrap(), None)
}

/// A path to 10.0.0.1:1000, of whose peer so many further connection IDs are known.
fn path(ids: u8) -> Path {
    let mut rng = Rng::from_u64(1);
    let config = TransportConfig::default();
    let amplification = AntiAmplification::new(true);
    let mut path = Path::new(PathSetup {
        space: NumberSpace::new(AckPolicy::default(), &mut rng),
        local_cid: cid(100),
        remote_cid: cid(0),
        remote_cids_max: 8,
        tuple: Tuple::new(TupleId(0), addrs("10.0.0.1:1000"), amplification, &config, NOW, &mut rng),
        pto: ProbeTimer::new(NOW, TimerStyle::OncePerRtt),
        config: Arc::new(EndpointConfig::new(ResetKey::new(&[1; 32]))),
        rng,
    });
    (1..=ids).for_each(|n| give_id(&mut path, n, 0));
    path
}

/// The peer gives an ID, and takes back those below `retire_prior_to`.
fn give_id(path: &mut Path, sequence: u8, retire_prior_to: u32) {
    let frame = NewConnectionId {
        path: PathId::ZERO,
        sequence: VarInt::from_u32(sequence.into()),
        retire_prior_to: VarInt::from_u32(retire_prior_to),
        cid: cid(sequence),
        reset_token: ResetToken([sequence; 16]),
    };
    path.remote_cids.on_new_connection_id(&frame, &mut Events::new()).unwrap();
}

/// Adds a tuple with an ID of its own.
fn admit(path: &mut Path, remote: &str) -> TupleId {
    let id = path.remote_cids.take_spare().unwrap();
    admit_with(path, remote, id)
}

fn admit_with(path: &mut Path, remote: &str, remote_cid: u64) -> TupleId {
    let config = TransportConfig::default();
    let amplification = AntiAmplification::new(false);
    path.admit(NOW, addrs(remote), amplification, remote_cid, &config, &mut Events::new()).id
}

/// The way to the peer at 10.0.0.1:1000 from this address of this end.
fn from(local: &str) -> FourTuple {
    FourTuple { local_ip: Some(local.parse().unwrap()), ..addrs("10.0.0.1:1000") }
}

fn ids_off_path(path: &Path) -> Vec<TupleId> {
    path.off_path().iter().map(|tuple| tuple.id).collect()
}

#[test]
fn tuples_are_found_by_their_names_and_by_where_datagrams_arrive() {
    let mut path = path(2);
    let (second, third) = (admit(&mut path, "10.0.0.2:1000"), admit(&mut path, "10.0.0.3:1000"));
    let used = path.tuple.id;
    let (_, mut tuples) = path.split();
    for id in [used, second, third] {
        assert_eq!(tuples.get(id).map(|tuple| tuple.id), Some(id));
    }
    assert!(tuples.get(TupleId(77)).is_none());
    assert_eq!(path.off_path_at(&addrs("10.0.0.2:1000")), Some(0));
    assert_eq!(path.off_path_at(&addrs("10.0.0.3:1000")), Some(1));
    assert_eq!(path.off_path_at(&addrs("10.0.0.1:1000")), None, "it is the one in use");
}

#[test]
fn an_address_left_to_the_kernel_is_any_but_those_that_have_a_tuple_of_their_own() {
    let mut path = path(2);
    let config = TransportConfig::default();
    for (cid, local) in [(1, "10.0.0.7"), (2, "10.0.0.8")] {
        path.admit(NOW, from(local), AntiAmplification::new(true), cid, &config, &mut Events::new());
    }
    assert!(path.is_taken_by(&addrs("10.0.0.1:1000")), "nobody tells where it arrived");
    assert!(path.is_taken_by(&from("10.0.0.9")));
    for (index, local) in ["10.0.0.7", "10.0.0.8"].into_iter().enumerate() {
        assert!(!path.is_taken_by(&from(local)));
        assert_eq!(path.off_path_at(&from(local)), Some(index));
    }
    // Those off the path may leave it to the kernel, too: the one in use, and the next exact one, go before.
    path.off_path[0].addrs.local_ip = None;
    path.tuple.addrs = from("10.0.0.9");
    assert!(path.is_taken_by(&from("10.0.0.9")));
    assert_eq!(path.off_path_at(&from("10.0.0.8")), Some(1));
    assert_eq!(path.off_path_at(&from("10.0.0.7")), Some(0));
}

#[test]
fn a_new_tuple_counts_its_window_in_datagrams_that_the_peer_takes() {
    let mut path = path(1);
    path.mtu_limit = 1_300;
    let config = TransportConfig { initial_mtu: 1_400, ..TransportConfig::default() };
    let amplification = AntiAmplification::new(true);
    let tuple = path.admit(NOW, from("10.0.0.7"), amplification, 1, &config, &mut Events::new());
    assert_eq!(tuple.mtu(), 1_300);
    assert_eq!(tuple.congestion.controller().window(), 13_000, "ten of them (RFC 9002 §7.2)");
}

#[test]
fn a_peer_that_sends_to_the_same_id_from_elsewhere_shares_an_id_and_another_one_gets_a_spare_one() {
    let mut path = path(2);
    let mut events = Events::new();
    assert_eq!(path.remote_cid_for(cid(100), &mut events), Some(0));
    assert_eq!(path.remote_cid_for(cid(101), &mut events), Some(1));
    let tried = admit_with(&mut path, "10.0.0.2:1000", 1);
    path.off_path_mut()[0].peer_dst = Some(cid(101));
    assert_eq!(path.remote_cid_for(cid(101), &mut events), Some(1));
    assert_eq!(path.remote_cid_for(cid(102), &mut events), Some(2));
    assert_eq!(ids_off_path(&path), [tried]);
    // Where none is left, what was only tried is given up.
    assert_eq!(path.remote_cid_for(cid(103), &mut events), None);
    assert_eq!(ids_off_path(&path), []);
    assert_eq!(path.remote_cids.get(1), None);
}

#[test]
fn the_oldest_that_was_only_tried_makes_room_where_no_id_is_left() {
    let mut path = path(3);
    let first = admit(&mut path, "10.0.0.2:1000");
    let second = admit(&mut path, "10.0.0.3:1000");
    path.keep_a_spare_cid(&mut Events::new());
    assert_eq!(ids_off_path(&path), [first, second], "one is left");
    let third = admit(&mut path, "10.0.0.4:1000");
    // The first is the one to return to.
    path.fallback = Some(first);
    path.keep_a_spare_cid(&mut Events::new());
    assert_eq!(ids_off_path(&path), [first, third]);
    // The newest stays, too.
    path.keep_a_spare_cid(&mut Events::new());
    assert_eq!(ids_off_path(&path), [first, third]);
}

#[test]
fn of_what_is_given_up_before_it_has_answered_somebody_is_to_be_told() {
    let second = Duration::from_secs(1);
    let validation = || Some(Box::new(Validation::new(NOW, second, second, second)));
    let mut path = path(6);
    let remotes = ["10.0.0.2:1000", "10.0.0.3:1000", "10.0.0.4:1000", "10.0.0.5:1000", "10.0.0.6:1000"];
    for (n, remote) in remotes.into_iter().enumerate() {
        admit(&mut path, remote);
        // The second one is not asked, and the third one has answered.
        path.off_path_mut().last_mut().unwrap().validation = validation().filter(|_| n != 1);
        path.off_path_mut().last_mut().unwrap().validated = n == 2;
    }
    assert_eq!(path.take_given_up(), [addrs(remotes[0])]);
    // The peer takes back the IDs of those that are left, and leaves one for the next.
    give_id(&mut path, 7, 7);
    path.on_cids_changed(&mut Events::new());
    assert_eq!(path.take_given_up(), [addrs(remotes[3]), addrs(remotes[4])]);
    assert_eq!(path.take_given_up(), []);
}

#[test]
fn what_is_still_asked_or_has_to_answer_stays_when_the_tuple_in_use_has_proven_itself() {
    let mut path = path(3);
    let asked = admit(&mut path, "10.0.0.2:1000");
    let answering = admit(&mut path, "10.0.0.3:1000");
    let idle = admit(&mut path, "10.0.0.4:1000");
    let second = Duration::from_secs(1);
    path.off_path_mut()[0].validation = Some(Box::new(Validation::new(NOW, second, second, second)));
    path.off_path_mut()[1].responses.on_challenge([1; 8]);
    path.fallback = Some(idle);
    path.forget_idle_off_path(&mut Events::new());
    assert_eq!(ids_off_path(&path), [asked, answering]);
    assert_eq!(path.fallback_index(), None);
}

#[test]
fn an_id_is_given_up_with_the_last_tuple_that_uses_it() {
    let mut path = path(2);
    admit_with(&mut path, "10.0.0.2:1000", 1);
    admit_with(&mut path, "10.0.0.2:2000", 1);
    admit_with(&mut path, "10.0.0.3:1000", 2);
    path.forget_off_path(0, &mut Events::new());
    assert_eq!(path.remote_cids.get(1), Some(cid(1)), "another one uses it, too");
    path.forget_off_path(0, &mut Events::new());
    assert_eq!((path.remote_cids.get(1), path.remote_cids.get(2)), (None, Some(cid(2))));
}

#[test]
fn where_the_peer_takes_ids_back_tuples_get_others_as_long_as_one_is_left() {
    let mut path = path(3);
    // One differs from the tuple in use by what a NAT did, the other two have IDs of their own.
    let shares = admit_with(&mut path, "10.0.0.1:2000", 0);
    let second = admit(&mut path, "10.0.0.2:1000");
    let third = admit(&mut path, "10.0.0.3:1000");
    path.on_cids_changed(&mut Events::new());
    assert_eq!(ids_off_path(&path), [shares, second, third], "nothing has changed");
    give_id(&mut path, 4, 3);
    give_id(&mut path, 5, 3);
    path.on_cids_changed(&mut Events::new());
    assert_eq!(path.tuple.remote_cid, path.remote_cids.active_sequence());
    let left: Vec<_> = path.off_path().iter().map(|tuple| (tuple.id, tuple.remote_cid)).collect();
    assert_eq!(left, [(shares, path.tuple.remote_cid), (second, 4)]);
    assert!(path.remote_cids.has_spare());
}

#[test]
fn a_move_between_ports_keeps_the_way_back() {
    let mut path = path(2);
    let way_back = admit(&mut path, "10.9.9.9:1000");
    path.off_path_mut()[0].validated = true;
    path.fallback = Some(way_back);
    admit(&mut path, "10.0.0.1:2000");
    path.switch_to(NOW, 1, Side::Server, MigrationCause::Moved, &mut Events::new());
    assert_eq!(path.tuple.addrs, addrs("10.0.0.1:2000"));
    assert_eq!(path.fallback_index(), Some(0));
    assert_eq!(ids_off_path(&path), [way_back]);
}
