//! Two endpoints over loopback, in one thread, and pairs of machines in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_measure::{Pacing, Transport, Workload};
use socket2::{Domain, Socket, Type};

use super::connection::{Held, StreamRead};
use super::*;
use crate::control::{data_client, data_server, make_identity, server_tls};

mod asked;
mod bulk;
mod canaries;
mod lengths;
mod relayed;
mod simulated;
mod statistics;
mod streams;
mod world;
use relayed::Relayed;

pub(super) fn sides(settings: &Settings) -> (ClientSide, ServerSide) {
    sides_with(settings, (Extras::default(), Extras::default()))
}

fn sides_with(settings: &Settings, extras: (Extras, Extras)) -> (ClientSide, ServerSide) {
    let identity = make_identity().unwrap();
    let data = server_tls(&identity, &[], Vec::new()).unwrap();
    let certificate = identity.certificate_der.clone().into();
    let workload = Workload::rr(Transport::Quic);
    let tls = data_client(certificate, &workload, None).unwrap();
    let client = ClientSide::new(tls, settings, extras.0).unwrap();
    (client, ServerSide::new(data_server(&data, &workload), settings, extras.1).unwrap())
}

pub(super) fn socket() -> (Arc<Socket>, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (Arc::new(socket), address)
}

struct Pair {
    near: Endpoint,
    far: Endpoint,
    link: Link,
}

impl Pair {
    fn new(settings: &Settings) -> Self {
        Self::with(settings, (Extras::default(), Extras::default()))
    }

    fn with(settings: &Settings, extras: (Extras, Extras)) -> Self {
        let (client, server) = sides_with(settings, extras);
        let ((near, _), (far, address)) = (socket(), socket());
        let mut near = Endpoint::over(near, settings, None).unwrap();
        let far = Endpoint::over(far, settings, Some(&server)).unwrap();
        let link = near.connect(0, address, "linerate", &client).unwrap();
        Self { near, far, link }
    }

    /// Gives both ends turns until `done` says so; 20 s at most.
    fn run(&mut self, mut done: impl FnMut(&mut Endpoint, &mut Endpoint) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done(&mut self.near, &mut self.far) {
            assert!(Instant::now() < end, "nothing came of it");
            self.near.turn().unwrap();
            self.far.turn().unwrap();
        }
    }

    fn established(settings: &Settings) -> (Self, SharedConnection, SharedConnection) {
        Self::new(settings).establish()
    }

    fn establish(self) -> (Self, SharedConnection, SharedConnection) {
        let mut pair = self;
        let mut seen = (false, None);
        pair.run(|near, far| {
            while let Some((_, event)) = near.poll_event() {
                seen.0 |= event == Event::Established;
            }
            while let Some((link, event)) = far.poll_event() {
                if event == Event::Established {
                    seen.1 = Some(link);
                }
            }
            seen.0 && seen.1.is_some()
        });
        let near = pair.near.connection(pair.link).unwrap().clone();
        let far = pair.far.connection(seen.1.unwrap()).unwrap().clone();
        (pair, near, far)
    }
}

#[test]
fn a_stream_arrives_whole_and_in_order() {
    let (pair, near, far) = Pair::established(&Settings::default());
    send_three_megabytes(pair, &near, &far);
}

#[test]
fn streams_arrive_whether_packets_go_in_clear_or_not() {
    let clear = || Extras { clear_packets: true, ..Extras::default() };
    let plain = || Extras { parameters: vec![(0x1001, vec![1, 2, 3])], ..Extras::default() };
    for extras in [(clear(), clear()), (plain(), clear()), (clear(), plain())] {
        let (pair, near, far) = Pair::with(&Settings::default(), extras).establish();
        send_three_megabytes(pair, &near, &far);
    }
}

#[test]
fn a_client_shows_its_address_where_many_handshakes_are_not_done() {
    // One at most, and from a quarter of one on: this very first one.
    let settings = Settings { half_open_connections: 1, ..Settings::default() };
    for extras in [Extras::default(), Extras { clear_packets: true, ..Extras::default() }] {
        let (pair, near, far) = Pair::with(&settings, (extras.clone(), extras)).establish();
        send_three_megabytes(pair, &near, &far);
    }
}

#[test]
fn a_packet_in_clear_can_be_read_on_its_way() {
    let clear = || Extras { clear_packets: true, ..Extras::default() };
    for (extras, agreed) in [((clear(), clear()), true), ((clear(), Extras::default()), false)] {
        let mut pair = Relayed::new(&Settings::default(), extras, false);
        let (mut sent, mut arrived) = (false, Vec::<u8>::new());
        pair.run(|near, far| {
            if near.1 && !sent {
                let mut near = near.0.borrow_mut();
                let id = near.open_stream(Dir::Bi).unwrap();
                near.send(id, b"a word that anybody may read").unwrap();
                sent = true;
            }
            let mut far = far.borrow_mut();
            if let Some(id) = far.accept_stream(Dir::Bi) {
                let _none_yet = far.read(id, 100, &mut |piece| arrived.extend(piece));
            }
            !arrived.is_empty()
        });
        assert_eq!(arrived, b"a word that anybody may read");
        assert_eq!(pair.up.seen.windows(8).any(|part| part == b"anybody "), agreed);
    }
}

#[test]
fn a_close_can_be_the_transports() {
    for (client_closes, clear_packets) in
        [(true, false), (false, false), (true, true), (false, true)]
    {
        let extras = Extras { transport_close: true, clear_packets, ..Extras::default() };
        let (mut pair, near, far) =
            Pair::with(&Settings::default(), (extras.clone(), extras)).establish();
        let closing = if client_closes { &near } else { &far };
        closing.borrow_mut().close_as(true, 0, b"enough");
        let mut cause = None;
        pair.run(|near, far| {
            let other = if client_closes { far } else { near };
            while let Some((_, event)) = other.poll_event() {
                if let Event::Closed(why) = event {
                    cause = Some(why);
                }
            }
            cause.is_some()
        });
        let cause = cause.unwrap();
        assert_eq!(cause.code, None);
        let close = cause.close.unwrap();
        assert_eq!((close.frame, close.code, &*close.reason), (Some(0), 0, &b"enough"[..]));
    }
}

fn send_three_megabytes(mut pair: Pair, near: &SharedConnection, far: &SharedConnection) {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    let (mut sent, mut stream, mut received, mut finished) = (0, None, Vec::<u8>::new(), false);
    pair.run(|near_end, far_end| {
        while near_end.poll_event().is_some() {}
        while far_end.poll_event().is_some() {}
        let mut near = near.borrow_mut();
        if sent < bytes.len()
            && let Ok(more) = near.send(id, &bytes[sent..])
        {
            sent += more;
            if sent == bytes.len() {
                near.finish(id).unwrap();
            }
        }
        drop(near);
        let mut far = far.borrow_mut();
        stream = stream.or_else(|| far.accept_stream(Dir::Bi));
        if let Some(id) = stream
            && !finished
        {
            let read = far.read(id, usize::MAX, &mut |piece| received.extend(piece));
            finished = matches!(read, StreamRead::Finished(_));
        }
        finished
    });
    assert!(received == bytes);
    let status = near.borrow().status();
    assert!(status.sent_packets > 2_000 && status.mtu_bytes >= 1_200, "{status:?}");
}

#[test]
fn a_close_tells_its_code() {
    let (mut pair, near, _far) = Pair::established(&Settings::default());
    near.borrow_mut().close(77, b"enough");
    let mut cause = None;
    pair.run(|_, far| {
        while let Some((_, event)) = far.poll_event() {
            if let Event::Closed(why) = event {
                cause = Some(why);
            }
        }
        cause.is_some()
    });
    assert_eq!(cause.unwrap().code, Some(77));
    // Both forget it in time.
    pair.run(|near, far| near.open_connections() == 0 && far.open_connections() == 0);
}

#[test]
fn connections_that_begin_while_others_are_forgotten_are_established() {
    const CONNECTIONS: usize = 100;
    let settings = Settings::default();
    let (client, server) = sides(&settings);
    let ((near, _), (far, address)) = (socket(), socket());
    let mut near = Endpoint::over(near, &settings, None).unwrap();
    let mut far = Endpoint::over(far, &settings, Some(&server)).unwrap();
    let (mut begun, mut established, end) = (0, 0, Instant::now() + Duration::from_secs(20));
    while established < CONNECTIONS {
        assert!(Instant::now() < end, "{established} of {begun} are established");
        near.take_in().unwrap();
        while let Some((link, event)) = near.poll_event() {
            if event == Event::Established {
                established += 1;
                near.connection(link).unwrap().borrow_mut().close(0, b"");
            }
        }
        // As loads do: after packets have come, before others leave.
        if begun < CONNECTIONS && begun < established + 3 {
            near.connect(0, address, "linerate", &client).unwrap();
            begun += 1;
        }
        near.send_out().unwrap();
        far.turn().unwrap();
        while far.poll_event().is_some() {}
    }
    // None of them takes another's place.
    while near.open_connections() > 0 {
        assert!(Instant::now() < end, "{} are never forgotten", near.open_connections());
        near.turn().unwrap();
        far.turn().unwrap();
    }
}

#[test]
fn a_close_leaves_whatever_holds_back_what_else_waits() {
    for pacing in [Pacing::On, Pacing::Off, Pacing::Rate { bps: 200_000 }] {
        let settings = Settings { pacing, ..Settings::default() };
        let (mut pair, near, _far) = Pair::established(&settings);
        let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
        near.borrow_mut().send(id, &[1; 100_000]).unwrap();
        // Nobody acknowledges anything meanwhile.
        let end = Instant::now() + Duration::from_secs(20);
        while !matches!(near.borrow().held(), Held::Congestion | Held::Pacing) {
            assert!(Instant::now() < end, "{pacing:?}: nothing holds it back");
            pair.near.turn().unwrap();
        }
        // An end that is done sends what it has, and closes.
        pair.near.close_all(77);
        pair.near.flush(Duration::from_secs(1));
        let mut cause = None;
        while cause.is_none() {
            assert!(Instant::now() < end, "{pacing:?}: it never left");
            pair.far.turn().unwrap();
            while let Some((_, event)) = pair.far.poll_event() {
                if let Event::Closed(why) = event {
                    cause = why.code;
                }
            }
        }
        assert_eq!(cause, Some(77), "{pacing:?}");
    }
}

#[test]
fn a_peer_that_is_gone_is_noticed() {
    let settings = Settings { idle: Duration::from_millis(600), ..Settings::default() };
    let (mut pair, _near, _far) = Pair::established(&settings);
    let mut cause = None;
    let end = Instant::now() + Duration::from_secs(20);
    while cause.is_none() {
        assert!(Instant::now() < end, "nobody noticed");
        pair.near.turn().unwrap();
        pair.near.wait(Duration::from_millis(50), None).unwrap();
        while let Some((_, event)) = pair.near.poll_event() {
            if let Event::Closed(why) = event {
                cause = Some(why.kind);
            }
        }
    }
    assert_eq!(cause, Some(std::io::ErrorKind::TimedOut));
}

#[test]
fn datagrams_that_are_not_quic_are_kept_apart() {
    let (_, server) = sides(&Settings::default());
    let ((near, _), (far, address)) = (socket(), socket());
    let far = Endpoint::over(far, &Settings::default(), Some(&server)).unwrap();
    let mut far = far.keeping_foreign();
    near.send_to(b"\x23 ours", &address.into()).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        assert!(Instant::now() < end, "it never came");
        far.turn().unwrap();
        if let Some((_, datagram)) = far.poll_foreign() {
            assert_eq!(&datagram[..], b"\x23 ours");
            return;
        }
    }
}

#[test]
fn an_unproved_address_gets_no_more_than_three_times_what_it_sent() {
    let settings = Settings::default();
    let (client, server) = sides(&settings);
    let ((near, _), (middle, address), (far, far_address)) = (socket(), socket(), socket());
    let mut near = Endpoint::over(near, &settings, None).unwrap();
    let mut far = Endpoint::over(far, &settings, Some(&server)).unwrap();
    near.connect(0, address, "linerate", &client).unwrap();
    near.turn().unwrap();
    // The client's first datagram reaches the server, and no answer ever reaches the client.
    middle.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut datagram = vec![0; 2_000];
    let rustix =
        rustix::net::recv(&*middle, datagram.as_mut_slice(), rustix::net::RecvFlags::empty());
    let length = rustix.unwrap().0;
    middle.send_to(&datagram[..length], &far_address.into()).unwrap();
    middle.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let (mut answered, mut rounds) = (0, 0);
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end && rounds < 2_000 {
        rounds += 1;
        far.turn().unwrap();
        if let Ok((bytes, _)) =
            rustix::net::recv(&*middle, datagram.as_mut_slice(), rustix::net::RecvFlags::empty())
        {
            answered += bytes;
        }
    }
    assert!(answered > 0 && answered <= 3 * length, "{answered} bytes for {length}");
}

#[test]
fn loss_repetition_reordering_and_wrong_bits_harm_nothing() {
    let extras = (Extras::default(), Extras::default());
    let mut pair = Relayed::new(&Settings::default(), extras, true);
    let bytes: Vec<u8> = (0..400_000_u32).map(|n| (n / 3) as u8).collect();
    let (mut id, mut sent, mut received) = (None, 0, Vec::<u8>::new());
    let mut stream = None;
    pair.run(|(near, established), far| {
        let mut near = near.borrow_mut();
        if established && id.is_none() {
            id = near.open_stream(Dir::Bi);
        }
        if let Some(id) = id
            && sent < bytes.len()
        {
            sent += near.send(id, &bytes[sent..]).unwrap_or(0);
            if sent == bytes.len() {
                near.finish(id).unwrap();
            }
        }
        let mut far = far.borrow_mut();
        stream = stream.or_else(|| far.accept_stream(Dir::Bi));
        stream.is_some_and(|id| {
            let read = far.read(id, usize::MAX, &mut |piece| received.extend(piece));
            matches!(read, StreamRead::Finished(_))
        })
    });
    assert!(received == bytes);
    let near = pair.near.connection(pair.link).unwrap();
    assert!(near.borrow().status().lost_packets > 0);
}
