//! Values of the field `Alt-Svc`: what is taken of them is within its limits, and reads the same when it is written.
#![no_main]

use std::time::Duration;

use fulmar_h3::{ALT_SVC_BYTES_MAX, ALTERNATIVES_MAX, AltSvc, Alternative};
use libfuzzer_sys::fuzz_target;

const MAX_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

fn write(service: &Alternative) -> String {
    let Alternative { host, port, max_age, persist } = service;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    format!("h3=\"{host}:{port}\"; ma={}; persist={}", max_age.as_secs(), u8::from(*persist))
}

fuzz_target!(|value: &[u8]| {
    let Some(said) = AltSvc::parse(value) else { return };
    assert!(value.len() <= ALT_SVC_BYTES_MAX);
    let AltSvc::Services(services) = &said else { return };
    assert!(services.len() <= ALTERNATIVES_MAX);
    for service in services {
        assert!(service.port != 0 && service.max_age <= MAX_AGE_MAX && service.host.len() <= 255);
        // It becomes a name to look up and a field of requests.
        assert!(service.host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'));
    }
    let written = services.iter().map(write).collect::<Vec<_>>().join(", ");
    if !services.is_empty() && written.len() <= ALT_SVC_BYTES_MAX {
        assert_eq!(AltSvc::parse(written.as_bytes()), Some(said));
    }
});
