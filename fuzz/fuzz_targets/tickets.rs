//! A session ticket that was not sealed with the keys is refused, whatever it is.
#![no_main]

use fulmar_proto::{TokenKeys, sealed_tickets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, Vec<(u16, u8)>, Vec<u8>)| {
    let (made_up, changes, bytes) = input;
    let random = fulmar_lab::crypto::provider().secure_random;
    let tickets = sealed_tickets(TokenKeys::new([1; 32]).with_previous([2; 32]), random);
    if made_up {
        assert_eq!(tickets.decrypt(&bytes), None, "forged");
        return;
    }
    let genuine = tickets.encrypt(&bytes).expect("there is randomness");
    let mut damaged = genuine.clone();
    for (at, change) in changes {
        let at = usize::from(at) % damaged.len();
        damaged[at] ^= change;
    }
    let expected = (damaged == genuine).then_some(bytes);
    assert_eq!(tickets.decrypt(&damaged), expected);
});
