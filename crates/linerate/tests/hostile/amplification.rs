//! A forged source address gets no more bytes for a datagram than the datagram had, whatever it is.

use std::time::Duration;

use linerate_wire::native::datagram::{HELLO, PADDED_BYTES};

use crate::address::{Address, KINDS, datagram};
use crate::ends::Server;
use crate::extent::extent;
use crate::held_test::HeldTest;
use crate::random::Random;

/// Every length that fits an Ethernet frame and more.
const LENGTHS: std::ops::RangeInclusive<usize> = 1..=1500;
/// Datagrams between two signs of life of the test's owner.
const ALIVE: u64 = 1_000;
/// What comes later than an answer would.
const LATER: Duration = Duration::from_millis(300);

/// Addresses whose datagrams are accounted for one by one: what was said before gives no credit.
struct Forger {
    /// Flow 0 stands, so that its own socket shares the port with the server's; 1 and 2 don't.
    test: HeldTest,
    /// A client that the server answers, in the order in which datagrams come.
    honest: Address,
    forged: Address,
    /// Forged addresses that say nothing any more.
    left: Vec<Address>,
    port: u16,
    said: u64,
    /// Datagrams that were answered, and the bytes of the answers.
    answered: u64,
    answered_bytes: u64,
}

impl Forger {
    fn new(port: u16) -> Self {
        let (honest, forged) = (Address::new(port), Address::new(port));
        Self {
            test: Self::test(port),
            honest,
            forged,
            left: Vec::new(),
            port,
            said: 0,
            answered: 0,
            answered_bytes: 0,
        }
    }

    fn test(port: u16) -> HeldTest {
        let mut test = HeldTest::beginning(port, "rr", "udp");
        test.owner.prove(0, test.token);
        test
    }

    /// Says a datagram for this test, and counts what has come of it when the server has dealt with
    /// it.
    fn say(&mut self, datagram: &[u8]) {
        let before_bytes = self.forged.received_bytes;
        self.forged.say(datagram);
        self.honest.await_server(self.test.token);
        while self.forged.hear().is_some() {}
        let came_bytes = self.forged.received_bytes - before_bytes;
        let said_bytes = datagram.len() as u64;
        assert!(came_bytes <= said_bytes, "{came_bytes} bytes came for {datagram:?}");
        self.answered += u64::from(came_bytes > 0);
        self.answered_bytes += came_bytes;
        self.said += 1;
        if self.said.is_multiple_of(ALIVE) && !self.test.stands() {
            self.test = Self::test(self.port);
        }
    }

    /// Goes on at an address of which the server has seen nothing; how many datagrams were answered
    /// at the last one.
    fn change_address(&mut self) -> u64 {
        self.left.push(std::mem::replace(&mut self.forged, Address::new(self.port)));
        std::mem::take(&mut self.answered)
    }

    /// Fails if something came to an address that wasn't counted.
    fn hear_the_late(&mut self) {
        std::thread::sleep(LATER);
        for address in &mut self.left {
            let late = address.hear();
            assert!(late.is_none(), "long after all was answered: {late:?}");
        }
    }
}

#[test]
fn no_datagram_of_a_forged_source_is_answered_with_more_than_it_has() {
    let server = Server::start("");
    let mut forger = Forger::new(server.port);
    for _ in 0..extent(1, 20) {
        for kind in KINDS {
            for length in LENGTHS {
                for flow in 0..2 {
                    forger.say(&datagram(kind, length, flow, forger.test.token));
                }
            }
            // A hello of the right length, for a flow that is lacking, and nothing else.
            let answered = forger.change_address();
            assert_eq!(answered, u64::from(kind == HELLO), "{kind:#x}");
        }
    }
    let mut random = Random::draw("mutated datagrams");
    for kind in KINDS {
        for _ in 0..extent(1_500, 50_000) {
            let length = *random.one_of(&[12, 16, 24, PADDED_BYTES, PADDED_BYTES, 1_400]);
            let flow = random.within(0..3) as u32;
            let mut mutant = datagram(kind, length, flow, forger.test.token);
            if random.number().is_multiple_of(2) {
                random.mutate(&mut mutant);
            }
            mutant.truncate(1_500);
            forger.say(&mutant);
        }
        forger.change_address();
    }
    forger.hear_the_late();
    let Forger { said, answered_bytes, .. } = forger;
    eprintln!("{said} datagrams, {answered_bytes} bytes came");
    assert!(answered_bytes > 0, "no hello was answered: nothing was shown");
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    server.measure("rr --udp --count 3").document(0);
}
