//! Lives of connections over QUIC, between two loops over a pair of UDP sockets.

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use linerate_measure::step::{
    BytePattern, Churn, Close, Draws, Life, LifeContent, LifePace, LifeStep, Size, StepEnd, Text,
};
use linerate_measure::{Handshake, Transport};
use socket2::{Domain, Socket, Type};

use super::super::*;
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::control::{data_client, data_server, make_identity, server_tls};
use crate::flow::{FlowShared, Local};
use crate::latencies::Latencies;
use crate::pattern::Pattern;
use crate::phase::{Phase, SharedPhase};
use crate::ready_count::ReadyCount;
use crate::shard::Inlet;
use crate::waker::Waker;

const TOKEN: [u8; 16] = [7; 16];

/// One end of a load over a pair of UDP sockets: its loop's surroundings.
struct End {
    socket: Socket,
    address: SocketAddr,
    shared: Arc<FlowShared>,
    local: Local,
    phase: Arc<SharedPhase>,
}

impl End {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let phase = Arc::new(SharedPhase::new());
        let (pattern, ready_count) =
            (Arc::new(Pattern::new(1 << 16)), Arc::new(ReadyCount::new(1)));
        let waker = Arc::new(Waker::new().unwrap());
        let (latencies, seen) = (Latencies::default(), Arc::clone(&phase));
        let local = Local::new(1 << 14, pattern, latencies, seen, ready_count, waker, false);
        Self { socket, address, shared: Arc::new(FlowShared::new(0, None)), local, phase }
    }

    fn begin(&self) {
        for phase in [Phase::WarmUp, Phase::Measure] {
            self.phase.advance_to(phase, monotonic_ns());
        }
    }

    fn kinds(&self) -> Vec<(&'static str, u64)> {
        self.shared.take_ending().unwrap().errors.into_iter().collect()
    }
}

/// What a loop is woken by, and what brings it the UDP socket; both stay as long as the sender does.
fn inlets() -> (Inlet, impl Sized) {
    let (sender, inbox) = channel();
    (Inlet::Shared { inbox, waker: Arc::new(Waker::new().unwrap()) }, sender)
}

fn churn(life: Life, end: StepEnd) -> Churn {
    Churn { end, timeout_ns: 5 * SECOND_NS, schedule: None, life }
}

/// Runs so many lives one after the other, which the server sees as `other`.
fn run(life: &Life, other: Life, count: u64, handshake: Handshake) -> (End, End) {
    let mut workload = Workload::connect(Transport::Quic);
    workload.tls.handshake = handshake;
    let identity = make_identity().unwrap();
    let data = server_tls(&identity, &[], Vec::new()).unwrap();
    let client_tls = data_client(identity.certificate_der.clone().into(), &workload, None).unwrap();
    let (mut client, mut server) = (End::new(), End::new());
    client.socket.connect(&server.address.into()).unwrap();
    server.socket.connect(&client.address.into()).unwrap();
    let quic = Quic::client(&workload, TOKEN, server.address, &client_tls, None).unwrap();
    let (sockets, inlet) = channel();
    sockets.send(client.socket.try_clone().unwrap()).unwrap();
    let dialer = QuicDialer {
        quic,
        workload: workload.clone(),
        churn: Some(churn(life.clone(), StepEnd::Count { count })),
        flows: vec![Arc::clone(&client.shared)],
        shard: (0, 1),
        inlet,
    };
    let (accepted, inlet) = channel();
    accepted.send(server.socket.try_clone().unwrap()).unwrap();
    let acceptor = QuicAcceptor {
        quic: Quic::server(&workload, TOKEN, &data_server(&data, &workload)).unwrap(),
        workload,
        step: churn(other, StepEnd::Peer),
        shared: Arc::clone(&server.shared),
        inlet,
    };
    let ((client_waker, _client_inbox), (server_waker, _server_inbox)) = (inlets(), inlets());
    client.begin();
    server.begin();
    let ends = Arc::clone(&server.phase);
    thread::scope(|scope| {
        let local = &mut server.local;
        scope.spawn(move || acceptor.run(&server_waker, local));
        dialer.run(&client_waker, &mut client.local);
        ends.advance_to(Phase::Drained, monotonic_ns());
    });
    (client, server)
}

fn fixed(bytes: u64) -> Size {
    Size::Fixed(bytes)
}

#[test]
fn a_life_of_many_steps_is_whole_at_both_ends_whichever_end_sends_last() {
    let steps = [
        LifeStep::Receive { bytes: fixed(3) },
        LifeStep::Send { bytes: fixed(100_000) },
        LifeStep::Duplex { bytes: fixed(60_000) },
        LifeStep::Receive { bytes: fixed(70_000) },
        LifeStep::Send { bytes: fixed(50_000) },
    ];
    for (steps, bytes) in [
        (&steps[..], (180_000, 100_003)),
        (&steps[..4], (130_000, 100_003)),
        (&steps[..3], (130_000, 30_003)),
        (&steps[1..2], (100_000, 0)),
        (&steps[..1], (0, 3)),
    ] {
        let life = Life::new(steps.to_vec(), Close::AtOnce);
        for handshake in [Handshake::Full, Handshake::Resumed, Handshake::Early] {
            let other = life.mirrored(Close::AfterPeer);
            let (client, server) = run(&life, other, 4, handshake);
            let what = format!("{handshake:?} {bytes:?}");
            assert_eq!((client.kinds(), server.kinds()), (vec![], vec![]), "{what}");
            // Beside them one is made in full, only to be resumed.
            let made = if handshake == Handshake::Full { 4 } else { 5 };
            let (near, far) = (&client.shared.tally, &server.shared.tally);
            assert_eq!((near.transactions.value(), far.transactions.value()), (4, made), "{what}");
            let (sent, received) = (bytes.0 * made, bytes.1 * made);
            assert_eq!(near.received_bytes.value(), received, "{what}");
            assert_eq!((far.received_bytes.value(), far.sent_bytes.value()), (sent, received));
        }
    }
}

#[test]
fn a_server_that_sends_too_little_closed_early() {
    let life = |bytes| Life::new(vec![LifeStep::Receive { bytes: fixed(bytes) }], Close::AtOnce);
    let short = Life::new(vec![LifeStep::Send { bytes: fixed(9) }], Close::AfterPeer);
    let (client, server) = run(&life(10), short, 3, Handshake::Full);
    assert_eq!((client.kinds(), server.kinds()), (vec![("closed_early", 3)], vec![]));
    assert_eq!(server.shared.tally.transactions.value(), 3);
}

#[test]
fn sizes_are_drawn_alike_turns_keep_their_order_and_bytes_are_verified() {
    let range = Size::Range { low_bytes: 1, high_bytes: 50_000 };
    let done = Text::Fixed { bytes: "DONE" };
    let steps = vec![
        LifeStep::ReceiveText { text: Text::Id },
        LifeStep::Alternate {
            bytes: range,
            send_bytes: 3_000,
            receive_bytes: 700,
            sends_first: true,
        },
        LifeStep::Duplex { bytes: range },
        LifeStep::SendText { text: done },
        LifeStep::ReceiveText { text: done },
    ];
    let content = LifeContent::Pattern {
        pattern: BytePattern::Native,
        send_offset: 0,
        receive_offset: 7919,
        stride: 5,
        verify: true,
    };
    let unit_bytes = Some(Size::Range { low_bytes: 100, high_bytes: 9_000 });
    let draws = Draws::Seed { seed: 3 };
    let life = Life { content, unit_bytes, draws, ..Life::new(steps, Close::AtOnce) };
    let (client, server) = run(&life, life.mirrored(Close::AfterPeer), 20, Handshake::Full);
    assert_eq!((client.kinds(), server.kinds()), (vec![], vec![]));
    let counts = |end: &End| (end.shared.tally.sent_bytes.value(), end.shared.tally.counts());
    let ((sent, near), (received, far)) = (counts(&client), counts(&server));
    assert!(sent > 0 && (sent, near.received_bytes) == (far.received_bytes, received));
    assert_eq!((near.transactions, far.transactions), (20, 20));
    // Bytes of another place in the pattern.
    let other = LifeContent::Pattern {
        pattern: BytePattern::Native,
        send_offset: 1,
        receive_offset: 0,
        stride: 5,
        verify: false,
    };
    let other = Life { content: other, ..life.mirrored(Close::AfterPeer) };
    let (client, server) = run(&life, other, 2, Handshake::Full);
    assert_eq!(client.kinds(), [("corrupt", 2)]);
    // The code with which the client closes is not that of a close in order. The last may come after the end.
    assert!(matches!(server.kinds()[..], [("reset", 1..=2)]));
}

#[test]
fn pace_and_holds_keep_their_time() {
    let sends = LifeStep::Send { bytes: fixed(50_000) };
    let receives = LifeStep::Receive { bytes: fixed(50_000) };
    let paced = |steps: Vec<LifeStep>| {
        let pace =
            LifePace::Rate { bytes_per_s: Size::Fixed(500_000), slice_ns: 10 * MILLISECOND_NS };
        let unit_bytes = Some(fixed(5_000));
        Life { pace: Some(pace), unit_bytes, ..Life::new(steps, Close::AtOnce) }
    };
    let held = LifeStep::Hold { time_ns: 90 * MILLISECOND_NS };
    for life in [
        paced(vec![sends]),
        paced(vec![receives]),
        Life::new(vec![sends, receives, held], Close::AtOnce),
    ] {
        let began = Instant::now();
        let (client, server) = run(&life, life.mirrored(Close::AfterPeer), 2, Handshake::Full);
        assert_eq!((client.kinds(), server.kinds()), (vec![], vec![]), "{life:?}");
        let elapsed = began.elapsed();
        // A paced life has a send in each of ten slices, of which the first begins at once.
        assert!(elapsed >= Duration::from_millis(2 * 85), "{life:?} took {elapsed:?}");
    }
}
