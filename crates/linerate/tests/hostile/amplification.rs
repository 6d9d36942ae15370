//! A forged source address gets no more bytes than its forger sent, whatever is sent.

use std::time::Duration;

use linerate_wire::native::datagram::{Handshake, Hello, PADDED_BYTES};

use crate::address::{Address, KINDS, datagram};
use crate::conversation::{Conversation, workload};
use crate::ends::Server;
use crate::extent::extent;
use crate::lot::Lot;

/// Every length that fits an Ethernet frame and more.
const LENGTHS: std::ops::RangeInclusive<usize> = 1..=1500;
/// Datagrams sent without seeing whether the server keeps up.
const AT_ONCE: u64 = 64;

#[test]
fn a_forged_source_gets_no_more_than_was_sent() {
    let server = Server::start("");
    let mut conversation = Conversation::connect(server.port);
    conversation.greet();
    let rr = serde_json::json!({
        "name": "rr", "request_bytes": 16, "response_bytes": 9_000, "timeout_ns": 1_000_000_000,
    });
    let token = conversation.ask(&workload(&rr, "udp", 3));
    // Flow 0 stands, so that its own socket shares the port with the server's; 1 and 2 don't.
    let mut owner = Address::new(server.port);
    owner.prove(0, token);

    let mut honest = Address::new(server.port);
    let mut forged = Address::new(server.port);
    let mut lot = Lot::draw("forged datagrams");
    let hello = Handshake::Hello(Hello { flow: 1, token });
    let mut say = |datagram: &[u8]| {
        forged.say(datagram);
        if forged.sent.is_multiple_of(AT_ONCE) {
            // The server has taken in all that came before.
            assert!(matches!(honest.ask(&hello), Handshake::Cookie(_)));
            // The client's lease lasts.
            let ping = serde_json::json!({ "kind": "ping", "sent_ns": 1 });
            if lot.number().is_multiple_of(16) {
                conversation.say(&ping);
                conversation.hear();
            }
        }
        forged.received_bytes
    };
    for _ in 0..extent(1, 20) {
        for kind in KINDS {
            for length in LENGTHS {
                for flow in 0..2 {
                    say(&datagram(kind, length, flow, token));
                }
            }
        }
    }
    let mut lot = Lot::draw("mutated datagrams");
    let mut answered_bytes = 0;
    for _ in 0..extent(20_000, 1_000_000) {
        let length = *lot.one_of(&[12, 16, 24, PADDED_BYTES, PADDED_BYTES, 1_400]);
        let mut mutant = datagram(*lot.one_of(&KINDS), length, lot.within(0..3) as u32, token);
        if lot.number().is_multiple_of(2) {
            lot.mutate(&mut mutant);
        }
        mutant.truncate(1_500);
        answered_bytes = say(&mutant);
    }
    std::thread::sleep(Duration::from_millis(300));
    while forged.hear().is_some() {}
    let (sent, received) = (forged.sent_bytes, forged.received_bytes);
    eprintln!("{} datagrams of {sent} bytes, {received} bytes came", forged.sent);
    assert!(answered_bytes > 0, "no hello was answered: nothing was shown");
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    server.measure("rr --udp --count 3").document(0);
}
