//! Whatever is read as transport parameters is written, and reads the same again.
#![no_main]

use fulmar_wire::{Side, TransportParameters};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for sender in [Side::Client, Side::Server] {
        if let Ok(parameters) = TransportParameters::read(sender, bytes) {
            let written = parameters.write(sender, None);
            assert_eq!(TransportParameters::read(sender, &written), Ok(parameters));
        }
    }
});
