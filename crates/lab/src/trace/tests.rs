use fulmar_sim::{Ecn, LinkConfig, World};

use super::*;

fn packet() -> Packet {
    let (source, destination) = ("10.0.0.1:1", "[fd00::2]:2");
    let parse = |text: &str| text.parse().expect("an address");
    Packet::new(parse(source), parse(destination), Ecn::Ect0, b"payload".to_vec())
}

fn hash_of(at: Instant, packet: &Packet) -> TraceHash {
    let mut trace = Trace::default();
    trace.on_sent(at, packet);
    trace.finish()
}

#[test]
fn every_field_of_a_sent_packet_matters() {
    let (at, plain) = (Instant::from_millis(1), packet());
    let mut hashes = vec![Trace::default().finish(), hash_of(at, &plain), hash_of(Instant::ZERO, &plain)];
    let edits: [fn(&mut Packet); 6] = [
        |packet| packet.source.set_port(9),
        |packet| packet.source.set_ip([10, 0, 0, 9].into()),
        |packet| packet.destination.set_ip([10, 0, 0, 9].into()),
        |packet| packet.ecn = Ecn::Ce,
        |packet| packet.payload[6] ^= 1,
        |packet| packet.payload.push(0),
    ];
    for edit in edits {
        let mut edited = plain.clone();
        edit(&mut edited);
        hashes.push(hash_of(at, &edited));
    }
    let texts: std::collections::BTreeSet<_> = hashes.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), hashes.len());
    assert!(texts.iter().all(|text| text.len() == 64));
    assert_eq!(hash_of(at, &plain), hash_of(at, &plain));
}

#[test]
fn a_delivery_is_told_from_a_sending() {
    let mut world = World::new(1);
    let (a, b) = (world.add_node([packet().source.ip()]), world.add_node([packet().destination.ip()]));
    world.add_link(a, b, LinkConfig::default(), LinkConfig::default());
    world.send(a, packet());
    let delivery = world.poll_delivery().expect("a perfect link");
    let [mut sent, mut delivered] = [Trace::default(), Trace::default()];
    sent.record(Record::Sent, delivery.at, &delivery.packet);
    delivered.on_delivered(&delivery);
    assert_eq!((sent.packets(), delivered.packets()), (1, 1));
    assert_ne!(sent.finish(), delivered.finish());
}
