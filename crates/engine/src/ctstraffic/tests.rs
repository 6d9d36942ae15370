use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::media::receiver::ReceiverSettings;
use linerate_wire::ctstraffic::media::shape::StreamShape;

use super::*;
use crate::event::Cancel;

const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
const WAIT: Duration = Duration::from_secs(20);

/// A second of 50 frames of 1000 bytes in datagrams of up to 300: 300, 300, 300, 100.
fn shape() -> StreamShape {
    StreamShape::derive(400_000, 50, 1, 300).unwrap()
}

fn server_plan() -> MediaServerPlan {
    MediaServerPlan {
        listen: vec![LOOPBACK.into()],
        shape: shape(),
        limit: None,
        max_rate_bps: None,
        max_address_rate_bps: None,
        spins: false,
        sockets: Sockets::default(),
        cpus: Vec::new(),
        times: MediaTimes { status_ns: 100_000_000, ..MediaTimes::default() },
    }
}

fn client_plan(server: SocketAddr, streams: u32) -> MediaClientPlan {
    MediaClientPlan {
        route: Arc::new(move |_| MediaRoute { server, local: None }),
        routes: 1,
        streams,
        total: Some(streams.into()),
        receiver: ReceiverSettings {
            shape: shape(),
            buffered_frames: shape().buffered_frames(1).unwrap(),
            is_strict: false,
        },
        verifies_data: true,
        tells_jitter: true,
        sockets: Sockets::default(),
        cpus: Vec::new(),
        times: MediaTimes { status_ns: 100_000_000, ..MediaTimes::default() },
    }
}

/// A server in a thread of its own.
struct Running {
    address: SocketAddr,
    events: Receiver<MediaEvent>,
    cancel: Cancel,
    thread: JoinHandle<MediaRun>,
}

impl Running {
    fn start(plan: MediaServerPlan) -> Self {
        let (sender, events) = channel();
        let cancel = Cancel::default();
        let stop = cancel.clone();
        let thread = thread::spawn(move || {
            let mut tell = |event| drop(sender.send(event));
            run_media_server(&plan, &mut tell, &stop).unwrap()
        });
        let Ok(MediaEvent::Listening(address)) = events.recv_timeout(WAIT) else { panic!() };
        Self { address, events, cancel, thread }
    }

    fn stop(self) -> (MediaRun, Vec<MediaEvent>) {
        self.cancel.request();
        let run = self.thread.join().unwrap();
        (run, self.events.iter().collect())
    }
}

fn run_client(plan: &MediaClientPlan) -> (MediaRun, Vec<MediaEvent>) {
    let mut events = Vec::new();
    let run = run_media_client(plan, &mut |event| events.push(event), &Cancel::default());
    (run.unwrap(), events)
}

fn ends(events: &[MediaEvent]) -> Vec<MediaStreamEnd> {
    let end = |event: &MediaEvent| match event {
        MediaEvent::Finished(end) => Some((**end).clone()),
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

/// Frames whose last train is as long as one call may send: a full train of 46 datagrams, and a shorter one behind it.
#[test]
fn trains_that_end_with_a_short_datagram_arrive_whole() {
    let shape = StreamShape::derive(13_000_000, 25, 1, 1_400).unwrap();
    assert_eq!(shape.frame_bytes, 65_000);
    let server = Running::start(MediaServerPlan { shape, ..server_plan() });
    let plan = client_plan(server.address, 1);
    let receiver = ReceiverSettings {
        shape,
        buffered_frames: shape.buffered_frames(1).unwrap(),
        ..plan.receiver
    };
    let (run, _) = run_client(&MediaClientPlan { receiver, ..plan });
    assert_eq!(run.totals.counts.bits, 25 * 8 * 65_000);
    assert_eq!(run.totals.counts.completed, 25);
    server.stop();
}

/// A socket that plays one end by itself.
fn peer(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(WAIT)).unwrap();
    socket
}

/// A datagram of a frame, from the specification.
fn data(sequence: i64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(10_000_000_i64.to_le_bytes());
    bytes
        .extend((0..length - 26).map(|k| if k % 2 == 0 { (k / 2) as u8 } else { (k / 512) as u8 }));
    bytes
}

#[test]
fn streams_arrive_whole_and_both_ends_count_alike() {
    let server = Running::start(MediaServerPlan { limit: Some(3), ..server_plan() });
    let (run, events) = run_client(&client_plan(server.address, 3));
    let totals = run.totals;
    assert!(run.is_complete && run.open == 0);
    assert_eq!((totals.completed, totals.ended()), (3, 3));
    let counts = totals.counts;
    // A busy machine may drop datagrams, but not many.
    assert_eq!(counts.completed + counts.dropped, 150, "{counts:?}");
    assert!(counts.completed > 100 && counts.errors == 0, "{counts:?}");
    let frames = events.iter().filter(|event| matches!(event, MediaEvent::Jitter(_))).count();
    assert_eq!(frames, 150);
    let bits = |events: &[MediaEvent]| {
        let rows = events.iter().map(|event| match event {
            MediaEvent::Status(row) => row.counts.bits,
            _ => 0,
        });
        rows.sum::<u64>()
    };
    assert_eq!(bits(&events), counts.bits);
    let (served, served_events) = server.stop();
    assert_eq!(served.totals.completed, 3);
    assert_eq!(served.totals.counts.bits, 3 * 400_000);
    assert_eq!(bits(&served_events), served.totals.counts.bits);
    let ids = |events: &[MediaEvent]| {
        let mut ids: Vec<_> = ends(events).iter().map(|end| end.id.unwrap().text()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&events), ids(&served_events));
}

#[test]
fn a_server_sends_what_the_protocol_says() {
    let server = Running::start(server_plan());
    let client = peer(server.address);
    client.send(b"HELLO").unwrap();
    client.send(b"START!").unwrap();
    client.send(b"START").unwrap();
    client.send(b"START").unwrap();
    let mut bytes = [0; 2000];
    let length = client.recv(&mut bytes).unwrap();
    assert_eq!((length, &bytes[..2], bytes[38]), (39, &[0, 0x10][..], 0));
    for sequence in 1..=50 {
        for expected in [300, 300, 300, 100] {
            let length = client.recv(&mut bytes).unwrap();
            assert_eq!(length, expected);
            let right = data(sequence, expected);
            assert_eq!(bytes[..10], right[..10]);
            assert_eq!(bytes[18..length], right[18..]);
        }
    }
    thread::sleep(Duration::from_millis(100));
    let (run, events) = server.stop();
    let counts = run.totals.counts;
    assert_eq!((run.totals.completed, counts.repeated, counts.errors), (1, 1, 2));
    let bad = events.iter().filter(|event| matches!(event, MediaEvent::BadDatagram { .. }));
    assert_eq!(bad.count(), 2);
    let [end] = &ends(&events)[..] else { panic!() };
    assert_eq!((end.counts.bits, end.fault), (400_000, None));
    assert!((980_000_000..5_000_000_000).contains(&end.elapsed_ns), "{}", end.elapsed_ns);
}

#[test]
fn a_server_keeps_its_rates() {
    for (plan, asked) in [
        (MediaServerPlan { max_rate_bps: Some(900_000), ..server_plan() }, 3),
        (MediaServerPlan { max_address_rate_bps: Some(1_199_999), ..server_plan() }, 4),
    ] {
        let server = Running::start(plan);
        let clients: Vec<_> = (0..asked).map(|_| peer(server.address)).collect();
        for client in &clients {
            client.send(b"START").unwrap();
        }
        thread::sleep(Duration::from_millis(500));
        let (run, events) = server.stop();
        assert_eq!((run.open, run.totals.refused), (2, asked - 2));
        let refusal = events.iter().find_map(|event| match event {
            MediaEvent::BadDatagram { error, .. } => Some(*error),
            _ => None,
        });
        let expected = match asked {
            3 => MediaError::OverRate(900_000),
            _ => MediaError::OverAddressRate(1_199_999),
        };
        assert_eq!(refusal, Some(expected));
    }
}

#[test]
fn a_server_that_anybody_reaches_needs_a_limit() {
    let listen = vec![SocketAddr::from(([0; 4], 0))];
    let times = MediaTimes { time_limit: Some(Duration::from_millis(1)), ..server_plan().times };
    let plan = MediaServerPlan { listen, times, ..server_plan() };
    let error = run_media_server(&plan, &mut |_| {}, &Cancel::default()).unwrap_err().to_string();
    assert!(error.contains("--max-rate"), "{error}");
    let limited = MediaServerPlan { max_rate_bps: Some(1), ..plan };
    let run = run_media_server(&limited, &mut |_| {}, &Cancel::default()).unwrap();
    assert!(!run.is_complete);
}

/// What becomes of a client whose server sends this for the first frame, then all others.
fn served_with(first: &[Vec<u8>], is_strict: bool) -> MediaStreamEnd {
    let server = UdpSocket::bind(LOOPBACK).unwrap();
    server.set_read_timeout(Some(WAIT)).unwrap();
    let mut plan = client_plan(server.local_addr().unwrap(), 1);
    plan.receiver.is_strict = is_strict;
    let first = first.to_vec();
    let sending = thread::spawn(move || {
        let mut bytes = [0; 100];
        let (length, client) = server.recv_from(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"START");
        // Anybody else's datagrams don't count.
        let other = UdpSocket::bind(LOOPBACK).unwrap();
        other.send_to(b"", client).unwrap();
        other.send_to(&data(2, 300), client).unwrap();
        first.iter().for_each(|datagram| drop(server.send_to(datagram, client)));
        for sequence in 2..=50 {
            for length in [300, 300, 300, 100] {
                let _client_may_have_failed = server.send_to(&data(sequence, length), client);
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    let (_, events) = run_client(&plan);
    sending.join().unwrap();
    let [end] = &ends(&events)[..] else { panic!() };
    end.clone()
}

#[test]
fn bad_datagrams_are_counted_and_fail_streams_at_their_end_and_strict_ones_at_once() {
    let whole = [300, 300, 300, 100].map(|length| data(1, length)).to_vec();
    let mut wrong = data(1, 300);
    wrong[200] ^= 4;
    for (bad, is_wrong_data) in
        [(vec![], false), (vec![7; 30], false), (data(1, 26)[..25].to_vec(), false), (wrong, true)]
    {
        let sent = [vec![bad], whole.clone()].concat();
        let goes_on = served_with(&sent, false);
        assert_eq!(goes_on.counts.errors, 1, "{goes_on:?}");
        assert!(goes_on.counts.completed >= 40 && goes_on.counts.repeated == 0, "{goes_on:?}");
        let end = served_with(&sent, true);
        assert_eq!(goes_on.fault, end.fault);
        match end.fault {
            Some(Fault::DataDidNotMatchBitPattern(wrong)) if is_wrong_data => {
                assert_eq!((wrong.offset, wrong.wrong_bytes), (174, 1));
            }
            Some(Fault::NotAllDataTransferred) if !is_wrong_data => {}
            fault => panic!("{fault:?}"),
        }
    }
}

#[test]
fn a_datagram_that_is_too_long_fails_a_stream() {
    let end = served_with(&[data(1, 301)], false);
    assert_eq!(end.fault, Some(Fault::Network(libc::EMSGSIZE)));
}

#[test]
fn a_client_without_a_server_fails_with_all_frames_dropped() {
    let nobody = UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let (run, events) = run_client(&client_plan(nobody, 2));
    assert_eq!((run.totals.protocol_errors, run.totals.counts.dropped), (2, 100));
    assert!(ends(&events).iter().all(|end| end.fault == Some(Fault::NotAllDataTransferred)));
}

#[test]
fn a_time_limit_ends_a_client() {
    let server = Running::start(server_plan());
    let times = MediaTimes { time_limit: Some(Duration::from_millis(300)), ..server_plan().times };
    let plan = MediaClientPlan { total: None, times, ..client_plan(server.address, 2) };
    let (run, events) = run_client(&plan);
    assert!(!run.is_complete);
    assert_eq!((run.open, run.totals.ended()), (2, 0));
    assert!(events.iter().any(|event| matches!(event, MediaEvent::TimeIsUp)));
    server.stop();
}

#[test]
fn a_server_of_all_addresses_answers_from_the_one_that_was_asked() {
    let plan = MediaServerPlan {
        listen: vec![SocketAddr::from(([0; 4], 0)), SocketAddr::from(([0_u16; 8], 0))],
        limit: Some(2),
        max_rate_bps: Some(u64::MAX),
        ..server_plan()
    };
    let server = Running::start(plan);
    let Ok(MediaEvent::Listening(ipv6)) = server.events.recv_timeout(WAIT) else { panic!() };
    let asked = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 7), server.address.port()));
    let asked_ipv6 = SocketAddr::from((Ipv6Addr::LOCALHOST, ipv6.port()));
    for asked in [asked, asked_ipv6] {
        let (run, events) = run_client(&client_plan(asked, 1));
        assert_eq!(run.totals.completed, 1, "{events:?}");
        assert!(run.totals.counts.completed >= 40, "{run:?}");
    }
    let (_, events) = server.stop();
    let locals: Vec<_> = ends(&events).iter().map(|end| end.addresses.0).collect();
    assert_eq!(locals, [asked, asked_ipv6]);
}

#[test]
fn a_socket_has_a_stream_from_each_address_of_a_server() {
    let plan = MediaServerPlan {
        listen: vec![SocketAddr::from(([0; 4], 0))],
        max_rate_bps: Some(u64::MAX),
        ..server_plan()
    };
    let server = Running::start(plan);
    let client = UdpSocket::bind(LOOPBACK).unwrap();
    client.set_read_timeout(Some(WAIT)).unwrap();
    let port = server.address.port();
    let asked = [7, 8].map(|last| SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), port)));
    for address in asked {
        client.send_to(b"START", address).unwrap();
    }
    let mut ids = Vec::new();
    while ids.len() < 2 {
        let mut bytes = [0; 2000];
        let (length, from) = client.recv_from(&mut bytes).unwrap();
        if length == 39 {
            ids.push(from);
        }
    }
    assert_eq!(ids, asked);
    let (run, _) = server.stop();
    assert_eq!((run.open, run.totals.counts.repeated), (2, 0));
}

/// How long after the end of a stream: the client begins the next, the client's run ends, the server's run ends.
fn idle_after_ends() -> [u64; 3] {
    let times = MediaTimes { status_ns: 60_000_000_000, ..MediaTimes::default() };
    let server =
        Running::start(MediaServerPlan { limit: Some(2), times: times.clone(), ..server_plan() });
    let plan = MediaClientPlan { total: Some(2), times, ..client_plan(server.address, 1) };
    let (run, events) = run_client(&plan);
    let (served, served_events) = server.stop();
    let (first, last) = (ends(&events)[0].at_ns, ends(&events)[1].at_ns);
    let mut begins = events.iter().filter_map(|event| match event {
        MediaEvent::Established { at_ns, .. } => Some(*at_ns),
        _ => None,
    });
    let served_last = ends(&served_events)[1].at_ns;
    [begins.next_back().unwrap() - first, run.elapsed_ns - last, served.elapsed_ns - served_last]
}

#[test]
fn nothing_sleeps_between_the_end_of_a_stream_and_what_follows_it() {
    let runs: Vec<_> = (0..4).map(|_| thread::spawn(idle_after_ends)).collect();
    let idle: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
    // A loop without work sleeps 50 ms. Threads of a busy machine wait for processors, but not each time so long.
    for what in 0..3 {
        let least_ns = idle.iter().map(|idle| idle[what]).min().unwrap();
        assert!(least_ns < 20_000_000, "{idle:?}");
    }
}

/// A client of one stream from two local ports.
fn client_from(server: SocketAddr, ports: [u16; 2]) -> MediaClientPlan {
    let local =
        move |number: u64| SocketAddr::from((Ipv4Addr::LOCALHOST, ports[number as usize % 2]));
    let route = move |number| MediaRoute { server, local: Some(local(number)) };
    MediaClientPlan { route: Arc::new(route), routes: 2, ..client_plan(server, 1) }
}

#[test]
fn a_local_port_in_use_is_stepped_over_and_tried_again_when_all_are() {
    let server = Running::start(server_plan());
    let taken = [0; 2].map(|_| UdpSocket::bind(LOOPBACK).unwrap());
    let ports = [&taken[0], &taken[1]].map(|socket| socket.local_addr().unwrap().port());
    let [first, second] = taken;
    drop(second);
    let (run, events) = run_client(&client_from(server.address, ports));
    assert_eq!(run.totals.completed, 1, "{events:?}");
    assert_eq!(ends(&events)[0].addresses.0.port(), ports[1]);
    let second = UdpSocket::bind((Ipv4Addr::LOCALHOST, ports[1])).unwrap();
    let client = thread::spawn(move || run_client(&client_from(server.address, ports)));
    thread::sleep(Duration::from_millis(300));
    drop((first, second));
    let (run, events) = client.join().unwrap();
    assert_eq!((run.totals.completed, run.totals.ended()), (1, 1), "{events:?}");
}

#[test]
fn the_call_that_failed_is_told() {
    let nowhere = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 0));
    let server = UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let route = move |_| MediaRoute { server, local: Some(nowhere) };
    let plan = MediaClientPlan { route: Arc::new(route), ..client_plan(server, 1) };
    let (_, events) = run_client(&plan);
    let [end] = &ends(&events)[..] else { panic!() };
    assert_eq!((end.call, end.fault), (Call::Bind, Some(Fault::Network(libc::EADDRNOTAVAIL))));
}

#[test]
fn a_bad_datagram_is_told_with_its_stream_and_frame() {
    let server = UdpSocket::bind(LOOPBACK).unwrap();
    server.set_read_timeout(Some(WAIT)).unwrap();
    let plan = client_plan(server.local_addr().unwrap(), 1);
    let id = "b060598b-3bdb-4b90-9b3b-cfc0a15e636b";
    let sending = thread::spawn(move || {
        let (_, client) = server.recv_from(&mut [0; 100]).unwrap();
        let mut wrong = data(7, 300);
        wrong[100] ^= 1;
        let named = [&[0, 0x10][..], id.as_bytes(), &[0]].concat();
        for datagram in [named, wrong, vec![9; 3]] {
            server.send_to(&datagram, client).unwrap();
        }
    });
    let (_, events) = run_client(&plan);
    sending.join().unwrap();
    let told = events.iter().filter_map(|event| match event {
        MediaEvent::BadDatagram { id, sequence, .. } => Some((id.unwrap().text(), *sequence)),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(id.to_owned(), Some(7)), (id.to_owned(), None)]);
}

#[test]
fn what_a_clients_socket_drops_is_counted() {
    // Frames of 100,000 bytes, and buffers for a few thousand.
    let shape = StreamShape::derive(40_000_000, 50, 1, 1400).unwrap();
    let server = Running::start(MediaServerPlan { shape, ..server_plan() });
    let mut plan = client_plan(server.address, 1);
    plan.receiver.shape = shape;
    plan.sockets.receive_buffer_bytes = Some(4096);
    let (run, events) = run_client(&plan);
    assert!(run.totals.counts.dropped > 0 && run.totals.socket_drops > 0, "{run:?}");
    assert_eq!(ends(&events)[0].socket_drops, Some(run.totals.socket_drops));
}
