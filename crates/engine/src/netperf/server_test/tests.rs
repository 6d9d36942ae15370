use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use linerate_wire::netperf::end::PAD_NS;
use linerate_wire::netperf::test::{Length, Part, Request, Transport};

use super::super::processor::tests::spend_50_ms;
use super::super::test_context::TestContext;
use super::{SECOND_NS, ServerTest, Waker};
use crate::clock::monotonic_ns;

/// A test of one second on one processor of this machine, whose data has begun, and its client.
fn begun(part: Part) -> (ServerTest, UdpSocket) {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = client.local_addr().unwrap();
    let place = TestContext {
        local: address,
        client: address,
        cpu: None,
        marks_end: true,
        other_addresses: false,
        cpu_count: 1,
        spinners: None,
        interval_ns: u64::MAX,
    };
    let plain = Request::new(part, Transport::Udp);
    let length = Length::Seconds(1);
    let request = Request { length, cpu: true, request_bytes: 1, response_bytes: 1, ..plain };
    let waker = Arc::new(Waker::new().unwrap());
    let (mut served, setup) = ServerTest::prepare(request, &place, &waker).unwrap();
    client.connect(("127.0.0.1", setup.data_port)).unwrap();
    client.send(&[1]).unwrap();
    while served.load.is_none() {
        served.advance(monotonic_ns());
    }
    (served, client)
}

/// The processors' use as told, in percent, of a test whose conductor works for 50 ms in its length and for 50
/// ms after it, and that is over so long after its length, by the client's sign or by its own timer.
fn used_percent(part: Part, wait_ns: u64, says_end: bool) -> f32 {
    let (mut served, client) = begun(part);
    let length_over_ns = served.began_ns + SECOND_NS;
    spend_50_ms();
    // The load looks at its threads and sockets earlier.
    assert!(served.next_ns().is_some_and(|next_ns| next_ns <= length_over_ns));
    assert!(!served.advance(length_over_ns));
    assert!(served.next_ns().is_some_and(|next_ns| next_ns <= length_over_ns + PAD_NS));
    spend_50_ms();
    if says_end {
        client.send(&[]).unwrap();
    }
    let over_ns = length_over_ns + wait_ns;
    while !served.advance(over_ns) {}
    served.conclude(over_ns).results.cpu.unwrap().util
}

#[test]
fn processors_are_told_up_to_the_clients_sign_or_of_the_length_alone() {
    for part in [Part::Receive, Part::Answer] {
        let told = used_percent(part, PAD_NS, false);
        assert!((4.9..8.0).contains(&told), "{part:?}: {told}");
        let told = used_percent(part, SECOND_NS / 100, true);
        assert!(told > 9.8, "{part:?}: {told}");
    }
}
