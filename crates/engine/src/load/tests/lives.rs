//! Lives of connections over TCP and TLS, at both ends.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Instant;

use linerate_measure::SocketOptions;
use linerate_measure::step::{
    BytePattern, Churn, Close, Draws, Life, LifeContent, LifeFault, LifePace, LifeStep, Size,
    StepEnd, Text,
};

use super::*;
use crate::clock::monotonic_ns;
use crate::connections::{
    Accept, Dial, Failure, TellConnections, Tells, Told as Happening, sockets_with,
};

/// What was told of a connection: payload each way, id, failure.
#[derive(Clone, Debug, PartialEq)]
struct Told {
    sent: u64,
    received: u64,
    id: String,
    failure: Option<Failure>,
    ports: Option<(u16, u16)>,
}

type Tellings = Arc<Mutex<Vec<Told>>>;

fn tellings() -> (Tellings, Option<TellConnections>) {
    let tellings = Tellings::default();
    let told = Arc::clone(&tellings);
    let tell = move |happening| {
        let Happening::Finished(one) = happening else { return };
        let id: Vec<u8> = one.id.iter().copied().take_while(|byte| *byte > 0).collect();
        assert!(one.failure.is_some() || one.transferred_ns >= one.began_ns);
        told.lock().unwrap().push(Told {
            sent: one.sent_bytes,
            received: one.received_bytes,
            id: String::from_utf8(id).unwrap(),
            failure: one.failure,
            ports: one.addresses.map(|(own, other)| (own.port(), other.port())),
        });
    };
    (tellings, Some(TellConnections { tell: Arc::new(tell), asks_kernel: false }))
}

fn churn(life: &Life, count: u64) -> Churn {
    let timeout_ns = 5 * SECOND_NS;
    Churn { end: StepEnd::Count { count }, timeout_ns, schedule: None, life: life.clone() }
}

fn load(role: Role, step: Step, count: u64, flows: u32, connections: Connections) -> Load {
    let mut workload =
        Workload { end: End::Count { count }, flows, ..Workload::connect(Transport::Tcp) };
    workload.threading.threads = Some(1);
    let steps = vec![vec![step]; flows as usize];
    let waker = Arc::new(Waker::new().unwrap());
    let mut load =
        Load::prepare_given(role, &workload, steps, &[], &waker, Some(connections)).unwrap();
    load.open(monotonic_ns());
    load
}

fn dialing(
    server: SocketAddr,
    life: &Life,
    count: u64,
    flows: u32,
    tell: Option<TellConnections>,
) -> Load {
    let dial = Dial { tell, ..Dial::new(server, sockets_with(SocketOptions::default())) };
    let step = Step::Connect(Box::new(churn(life, count / u64::from(flows))));
    load(Role::Client, step, count, flows, Connections::Dial(dial))
}

fn listener() -> (Arc<Socket>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (Arc::new(Socket::from(listener)), address)
}

fn accepting(listener: Arc<Socket>, life: &Life, tell: Option<TellConnections>) -> Load {
    let accept = Accept {
        tells: Tells { each: tell, ..Tells::default() },
        at_once: 8,
        ..Accept::new(listener)
    };
    let step = Step::Accept(Box::new(churn(life, u64::MAX)));
    load(Role::Server, step, 1_000_000, 1, Connections::Accept(accept))
}

fn await_end(load: &mut Load) {
    let began = Instant::now();
    while !load.all_ended() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", load.counts());
        load.tick(monotonic_ns());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What both ends told of so many connections, the errors of the client, and the time that it took.
fn run(
    client: &Life,
    server: &Life,
    count: u64,
    flows: u32,
) -> (Vec<Told>, Vec<Told>, BTreeMap<String, u64>, Duration) {
    let (listener, address) = listener();
    let ((told, tell), (told_there, tell_there)) = (tellings(), tellings());
    let serving = accepting(listener, server, tell_there);
    let began = Instant::now();
    let mut load = dialing(address, client, count, flows, tell);
    await_end(&mut load);
    let elapsed = began.elapsed();
    let (_, report) = load.finish(monotonic_ns());
    let limit = Instant::now() + Duration::from_secs(10);
    while told_there.lock().unwrap().len() < count as usize && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(serving);
    let take = |told: &Tellings| std::mem::take(&mut *told.lock().unwrap());
    (take(&told), take(&told_there), report.errors, elapsed)
}

fn checked(pattern: BytePattern, stride: u64) -> LifeContent {
    let (send_offset, receive_offset) = if stride > 0 { (0, 7919) } else { (0, 0) };
    LifeContent::Pattern { pattern, send_offset, receive_offset, stride, verify: true }
}

const DONE: Text = Text::Fixed { bytes: "DONE" };

/// A life in the way of ctsTraffic: the server sends an id, and `DONE` when all is through.
fn announced(step: LifeStep, close: Close) -> Life {
    let steps =
        vec![LifeStep::ReceiveText { text: Text::Id }, step, LifeStep::ReceiveText { text: DONE }];
    let content = checked(BytePattern::Count, 0);
    let unit_bytes = Some(Size::Range { low_bytes: 1000, high_bytes: 70_000 });
    Life { content, unit_bytes, draws: Draws::Each, ..Life::new(steps, close) }
}

#[test]
fn every_pattern_of_transfers_arrives_whole_and_verified() {
    let bytes = Size::Fixed(3_000_001);
    let turns = LifeStep::Alternate {
        bytes,
        send_bytes: 1 << 20,
        receive_bytes: 1 << 20,
        sends_first: true,
    };
    for (step, sent, received) in [
        (LifeStep::Send { bytes }, 3_000_001, 0),
        (LifeStep::Receive { bytes }, 0, 3_000_001),
        (LifeStep::Duplex { bytes }, 1_500_001, 1_500_001),
        (turns, 1_951_425, 1_048_576),
    ] {
        for (close, other) in
            [(Close::Graceful, Close::AfterPeer), (Close::Reset, Close::AfterReset)]
        {
            let client = announced(step, close);
            let (told, told_there, errors, _) = run(&client, &client.mirrored(other), 6, 3);
            assert_eq!((told.len(), told_there.len(), errors), (6, 6, BTreeMap::new()), "{step:?}");
            for one in &told {
                assert_eq!(
                    (one.sent, one.received, one.failure),
                    (sent, received, None),
                    "{step:?}"
                );
                assert_eq!(one.id.len(), 36);
                let (own, server) = one.ports.unwrap();
                assert!(told_there.iter().any(|there| there.ports == Some((server, own))));
            }
            let moved =
                |one: &Told| (one.sent, one.received, one.failure) == (received, sent, None);
            assert!(told_there.iter().all(moved), "{told_there:?}");
        }
    }
}

#[test]
fn sizes_drawn_from_a_seed_agree_at_both_ends() {
    let bytes = Size::Range { low_bytes: 1, high_bytes: 300_000 };
    let steps = vec![LifeStep::Duplex { bytes }, LifeStep::Receive { bytes }];
    let client = Life {
        content: checked(BytePattern::Native, 0),
        unit_bytes: Some(Size::Fixed(7000)),
        ..Life::new(steps, Close::Graceful)
    };
    // Where nothing says a connection's number, both ends take it for the first.
    let (told, _, errors, _) = run(&client, &client.mirrored(Close::AfterPeer), 1, 1);
    assert_eq!((told.len(), told[0].failure, errors), (1, None, BTreeMap::new()));
}

#[test]
fn a_wrong_byte_is_found_at_its_offset() {
    let (listener, address) = listener();
    let (told, tell) = tellings();
    let life = announced(LifeStep::Send { bytes: Size::Fixed(100_000) }, Close::Graceful);
    let serving = accepting(listener, &life.mirrored(Close::AfterPeer), tell);
    let mut peer = TcpStream::connect(address).unwrap();
    let mut id = [0; 37];
    peer.read_exact(&mut id).unwrap();
    let count = |from: u32| (from..).flat_map(|n| ((n % 0x8000) as u16).to_le_bytes());
    let mut bytes: Vec<u8> = count(0).take(100_000).collect();
    bytes[70_001] ^= 0x40;
    peer.write_all(&bytes).unwrap();
    // The server resets a connection that fails.
    assert!(peer.read(&mut id).is_err());
    drop(serving);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    let Some(Failure::Fault(LifeFault::Corrupt(difference))) = told[0].failure else { panic!() };
    assert_eq!((difference.offset, difference.found ^ difference.expected), (70_001, 0x40));
}

/// What the server tells of a peer that sends these bytes after the id, and then finishes, or goes by a reset.
fn server_tells(bytes: usize, resets: bool) -> Told {
    let (listener, address) = listener();
    let (told, tell) = tellings();
    let life = announced(LifeStep::Send { bytes: Size::Fixed(1000) }, Close::Graceful);
    let serving = accepting(listener, &life.mirrored(Close::AfterPeer), tell);
    let mut peer = TcpStream::connect(address).unwrap();
    let mut id = [0; 37];
    peer.read_exact(&mut id).unwrap();
    let count: Vec<u8> = (0_u16..).flat_map(u16::to_le_bytes).take(bytes).collect();
    peer.write_all(&count).unwrap();
    if bytes >= 1000 {
        peer.read_exact(&mut id[..4]).unwrap();
        assert_eq!(&id[..4], b"DONE");
    }
    if resets {
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop(peer);
    let limit = Instant::now() + Duration::from_secs(10);
    while told.lock().unwrap().is_empty() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(serving);
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 1);
    told[0].clone()
}

#[test]
fn too_few_bytes_too_many_and_a_reset_in_the_midst_are_told_apart() {
    assert_eq!(server_tells(999, false).failure, Some(Failure::EndedEarly));
    assert_eq!(server_tells(0, false).failure, Some(Failure::EndedEarly));
    assert_eq!(server_tells(999, true).failure, Some(Failure::System(libc::ECONNRESET)));
    assert_eq!(server_tells(1001, false).failure, Some(Failure::Fault(LifeFault::Excess)));
    assert_eq!((server_tells(1000, false).failure, server_tells(1000, true).failure), (None, None));
}

/// What the client tells of a server that sends these bytes and then finishes.
fn client_tells(bytes: &[u8]) -> Told {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, tell) = tellings();
    let life = announced(LifeStep::Receive { bytes: Size::Fixed(4) }, Close::Graceful);
    let mut load = dialing(address, &life, 1, 1, tell);
    let (mut peer, _) = listener.accept().unwrap();
    // In pieces, which are put together.
    for piece in bytes.chunks(7) {
        if peer.write_all(piece).is_err() {
            // The client has seen enough.
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(peer);
    await_end(&mut load);
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 1);
    told[0].clone()
}

#[test]
fn a_server_that_breaks_off_or_says_something_else_has_failed() {
    let id = b"b060598b-3bdb-4b90-9b3b-cfc0a15e636b\0";
    let whole = [&id[..], &[0, 0, 1, 0], b"DONE"].concat();
    assert_eq!(client_tells(&whole).failure, None);
    assert_eq!(client_tells(&whole[..36]).failure, Some(Failure::EndedEarly));
    assert_eq!(client_tells(&whole[..39]).failure, Some(Failure::EndedEarly));
    assert_eq!(client_tells(&whole[..43]).failure, Some(Failure::EndedEarly));
    assert_eq!(
        client_tells(&[&whole[..41], b"DONT"].concat()).failure,
        Some(Failure::Fault(LifeFault::WrongText))
    );
    assert_eq!(
        client_tells(&[&whole[..], b"!"].concat()).failure,
        Some(Failure::Fault(LifeFault::Excess))
    );
    let wrong = client_tells(&[&id[..], &[0, 0, 2, 0], b"DONE"].concat());
    let Some(Failure::Fault(LifeFault::Corrupt(difference))) = wrong.failure else { panic!() };
    assert_eq!((difference.offset, difference.expected, difference.found), (2, 1, 2));
    assert_eq!((difference.extent_bytes, difference.wrong_bytes), (1, 1));
    assert_eq!(wrong.id.len(), 36);
}

#[test]
fn sends_keep_to_their_pace_and_connections_are_held() {
    let bytes = Size::Fixed(200_000);
    let steps = vec![LifeStep::Send { bytes }, LifeStep::Hold { time_ns: SECOND_NS / 5 }];
    let pace = LifePace::Rate { bytes_per_s: Size::Fixed(500_000), slice_ns: 50_000_000 };
    let unit_bytes = Some(Size::Fixed(5000));
    let client = Life { pace: Some(pace), unit_bytes, ..Life::new(steps, Close::Graceful) };
    // 350 ms and 200 ms.
    let (told, _, errors, elapsed) = run(&client, &client.mirrored(Close::AfterPeer), 4, 4);
    assert!(told.iter().all(|one| one.sent == 200_000), "{told:?}");
    assert!(errors.is_empty(), "{errors:?}");
    assert!(elapsed >= Duration::from_millis(545), "{elapsed:?}");
}
