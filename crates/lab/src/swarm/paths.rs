//! Worlds with several paths, which come and go.

use std::net::{IpAddr, Ipv4Addr};

use fulmar_base::{Instant, Rng};
use fulmar_sim::{Change, LinkConfig, Loss, Scheduled};

use super::scenario::{self, Dice, MTU};
use crate::{Lab, LabPath, SERVER_ADDRESS};

/// Keeps what is drawn here apart from what the same seed means without paths.
const SALT: u64 = 0x9a74_5000_0000_0000;

/// The most paths.
const PATHS_MAX: u64 = 4;
/// How often a path is away, and for how long at most, in milliseconds: shorter than connections can do without.
const ABSENCES_MAX: u64 = 3;
const ABSENCE_MAX: u64 = 3_000;
/// How long a path stays between two absences at most.
const PRESENCE_MAX: u64 = 5_000;

/// The ends and workloads of some seed, on paths in place of its link. Connections begin on any of them.
pub(super) fn draw(seed: u64) -> Lab {
    let mut dice = Dice(Rng::from_u64(seed ^ SALT));
    let mut lab = scenario::draw(dice.0.u64());
    (lab.seed, lab.nat) = (seed, None);
    lab.shifts.clear();
    for end in [&mut lab.client, &mut lab.server] {
        let paths_max = dice.between(1, PATHS_MAX) as u32;
        if dice.0.chance(0.95) {
            end.multipath.get_or_insert_default().paths_max = paths_max;
        }
    }
    let mtu_min = usize::from(lab.client.initial_mtu.max(lab.server.initial_mtu));
    let paths = dice.between(1, PATHS_MAX);
    let first = (lab.up.clone(), lab.down.clone());
    for number in 0..paths {
        let (mut up, mut down) = if number == 0 { first.clone() } else { dice.path(mtu_min) };
        if dice.0.chance(0.6) {
            dice.absences(&mut up, &mut down);
        }
        let client = IpAddr::from(Ipv4Addr::new(10, 0, number as u8, 1));
        lab = lab.path(LabPath {
            name: format!("{number}"),
            client,
            server: SERVER_ADDRESS,
            up,
            down,
            is_backup: false,
            abandoned_at: None,
        });
    }
    for connecting in &mut lab.connections {
        connecting.path = dice.between(0, paths - 1) as usize;
    }
    lab
}

impl Dice {
    /// Both directions of a further path. What the ends take for granted from the start fits.
    fn path(&mut self, mtu_min: usize) -> (LinkConfig, LinkConfig) {
        let up = self.link(None);
        let down = if self.0.chance(0.5) { up.clone() } else { self.link(Some(&up)) };
        let [mut up, mut down] = [up, down];
        for link in [&mut up, &mut down] {
            link.mtu = link.mtu.map(|mtu| mtu.clamp(mtu_min, MTU.1 as usize));
        }
        (up, down)
    }

    /// Times in which nothing gets through in either direction.
    fn absences(&mut self, up: &mut LinkConfig, down: &mut LinkConfig) {
        let mut at = Instant::ZERO;
        for _ in 0..self.between(1, ABSENCES_MAX) {
            let start = at + self.millis(0, PRESENCE_MAX);
            at = start + self.millis(50, ABSENCE_MAX);
            for link in [&mut *up, &mut *down] {
                let loss = link.loss.clone();
                link.schedule.push(Scheduled { at: start, change: Change::Loss(Loss::Everything) });
                link.schedule.push(Scheduled { at, change: Change::Loss(loss) });
            }
        }
    }
}
