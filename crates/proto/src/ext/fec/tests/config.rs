//! What is configured, and what both ends make of it.

use super::*;

#[test]
fn there_are_no_repairs_without_a_decoder_that_knows_their_code() {
    let config = FecConfig { code: FecCode::Rlc, ..FecConfig::default() };
    let announced = config.parameters();
    assert!(FecSender::new(&config, &announced).is_some());
    let without = FecParameters { schemes: VarInt::from_u32(3), ..announced };
    assert!(FecSender::new(&config, &without).is_none());
    let other = FecParameters { version: VarInt::from_u32(2), ..announced };
    let peer = TransportParameters { fec: Some(other), ..TransportParameters::default() };
    assert!(Fec::new(&config, &peer, SharedMemory::new(0)).sender.is_none(), "of another version");
}

#[test]
fn dialect_x_is_spoken_where_both_ends_have_it_and_dialect_m_where_it_is_the_only_one() {
    let config = |dialects| FecConfig { dialects, ..FecConfig::default() };
    let announced = |dialects: FecDialects, scheme| TransportParameters {
        fec: dialects.has_x().then(|| FecConfig::default().parameters()),
        enable_fec: dialects.has_m().into(),
        decoder_fec_scheme: VarInt::from_u32(if dialects.has_m() { scheme } else { 0 }),
        ..TransportParameters::default()
    };
    let spoken = |local, peer: &TransportParameters| {
        let fec = Fec::new(&config(local), peer, SharedMemory::new(0));
        (fec.sender.map(|sender| sender.dialect()), fec.receiver.unwrap().dialect())
    };
    let (x, m) = (FecDialect::X, FecDialect::M);
    for (local, peer, expected) in [
        (FecDialects::X, FecDialects::X, (Some(x), x)),
        (FecDialects::X, FecDialects::Both, (Some(x), x)),
        (FecDialects::X, FecDialects::M, (None, x)),
        (FecDialects::M, FecDialects::X, (None, m)),
        (FecDialects::M, FecDialects::Both, (Some(m), m)),
        (FecDialects::M, FecDialects::M, (Some(m), m)),
        (FecDialects::Both, FecDialects::X, (Some(x), x)),
        (FecDialects::Both, FecDialects::Both, (Some(x), x)),
        (FecDialects::Both, FecDialects::M, (Some(m), m)),
    ] {
        assert_eq!(spoken(local, &announced(peer, 1)), expected, "{local:?} with {peer:?}");
    }
    let disabled = TransportParameters { enable_fec: 0, ..announced(FecDialects::M, 1) };
    assert_eq!(spoken(FecDialects::M, &disabled).0, None, "disabled");
    for scheme in [0, 3] {
        assert_eq!(spoken(FecDialects::M, &announced(FecDialects::M, scheme)).0, None, "nothing it decodes");
    }
}

#[test]
fn modes_and_codes_are_named_by_text() {
    let within = Duration::from_millis(150);
    assert_eq!("tail".parse(), Ok(FecMode::Tail));
    assert_eq!("none".parse(), Ok(FecMode::None));
    assert_eq!("constant:20,10".parse(), Ok(FecMode::Constant { source: 20, repair: 10 }));
    assert_eq!("deadline:150".parse(), Ok(FecMode::Deadline { within }));
    for wrong in ["", "tail:1", "constant", "constant:1", "constant:1,x", "deadline", "deadline:-1"] {
        assert!(wrong.parse::<FecMode>().is_err(), "{wrong}");
    }
    assert_eq!("rlc".parse(), Ok(FecCode::Rlc));
    assert!("lt".parse::<FecCode>().is_err());
    assert_eq!("both".parse(), Ok(FecDialects::Both));
    assert!("y".parse::<FecDialects>().is_err());
}

#[test]
fn configurations_that_make_no_sense_are_named() {
    let problem = |mode, code, window| FecConfig { mode, code, window, ..FecConfig::default() }.problem();
    let constant = |source, repair| FecMode::Constant { source, repair };
    assert_eq!(FecConfig::default().problem(), None);
    assert!(problem(FecMode::Tail, FecCode::Xor, 0).is_some());
    assert!(problem(constant(2, 2), FecCode::Xor, 256).is_some());
    assert!(problem(constant(20, 10), FecCode::ReedSolomon, 19).is_some());
    assert!(problem(constant(201, 1), FecCode::ReedSolomon, 256).is_some());
    assert!(problem(FecMode::Deadline { within: Duration::ZERO }, FecCode::Xor, 256).is_some());
    assert_eq!(problem(constant(200, 55), FecCode::ReedSolomon, 256), None);
    let in_m = FecConfig { dialects: FecDialects::M, ..FecConfig::default() };
    assert_eq!(in_m.problem(), None);
    assert!(FecConfig { window: 19, ..in_m }.problem().is_some());
    assert!(FecConfig { code: FecCode::Rlc, ..in_m }.problem().is_some());
}

#[test]
fn dialects_have_names() {
    for (name, dialects) in [("x", FecDialects::X), ("m", FecDialects::M), ("both", FecDialects::Both)] {
        assert_eq!(name.parse(), Ok(dialects));
    }
    assert_eq!("y".parse::<FecDialects>().unwrap_err().to_string(), "not one of x, m and both");
}
