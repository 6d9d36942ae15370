//! The engine's server and clients against peers that are gone, silent, refused or hostile.

use crate::skipped::skip;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{RateLimit, ServePlan, TestPlan, run};
use linerate_wire::iperf3::{Code, Parameters, Protocol, Results};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::load::{Running, plan};
use super::programs::{Program, serve};

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn short() -> Parameters {
    Parameters { time_s: 0, num_bytes: 1 << 20, ..Parameters::default() }
}

/// A control connection that has said its cookie, and the server's first word.
pub(crate) fn control_connection(port: u16, letter: u8) -> (TcpStream, [u8; 37]) {
    let mut cookie = [letter; 37];
    cookie[36] = 0;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(&cookie).unwrap();
    (stream, cookie)
}

pub(crate) fn message(text: &str) -> Vec<u8> {
    [u32::try_from(text.len()).unwrap().to_be_bytes().as_slice(), text.as_bytes()].concat()
}

/// Reads so many bytes.
pub(crate) fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Reads a text behind its length.
pub(crate) fn read_message(stream: &mut TcpStream) -> Vec<u8> {
    let length = u32::from_be_bytes(read(stream, 4).try_into().unwrap());
    read(stream, length as usize)
}

/// The control connection of a client, in the place of a server that agrees to what it asks for and wants its streams.
pub(crate) fn agree(listener: &TcpListener) -> TcpStream {
    let (mut control, _) = listener.accept().unwrap();
    control.set_read_timeout(Some(LIMIT)).unwrap();
    read(&mut control, 37);
    control.write_all(&[9]).unwrap();
    read_message(&mut control);
    control.write_all(&[10]).unwrap();
    control
}

/// Everything until the end.
pub(crate) fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset ends it, too.
    let _reset = stream.read_to_end(&mut bytes);
    bytes
}

pub(crate) fn assert_serves(port: u16) {
    run(&plan("127.0.0.1", port, short()), &mut (), &Cancel::default()).unwrap();
}

/// The next test of the server that fails.
fn failure(server: &Running) -> Code {
    loop {
        if let Some(failure) = server.ended.recv_timeout(LIMIT).unwrap() {
            return failure.code;
        }
    }
}

#[test]
fn hostile_messages_are_refused_with_a_reason() {
    let server = Running::start(ServePlan::default());
    let refused = |words: &[u8], code: Code| {
        let (mut stream, _) = control_connection(server.port, b'h');
        assert_eq!(read(&mut stream, 1), [9]);
        stream.write_all(words).unwrap();
        let told = [vec![0xfe], code.number().to_be_bytes().to_vec(), vec![0; 4]].concat();
        assert_eq!(rest(&mut stream), told, "{code:?}");
        assert_eq!(failure(&server), code);
    };
    refused(&u32::MAX.to_be_bytes(), Code::RECEIVE_PARAMETERS);
    refused(&(8_u32 << 20).to_be_bytes(), Code::RECEIVE_PARAMETERS);
    refused(&message("{\"tcp\":tru"), Code::RECEIVE_PARAMETERS);
    refused(&message("{\"tcp\":true,\"parallel\":1048577}"), Code::NUM_STREAMS);
    refused(&message("{\"udp\":true,\"len\":1}"), Code::UDP_BLOCK_SIZE);
    refused(&message("{\"sctp\":true}"), Code::NO_SCTP);
    assert_serves(server.port);
}

#[test]
fn streams_are_as_many_as_a_servers_descriptors_carry() {
    // Processes of their own: what its tests have set aside is counted for all servers of one, and so is its limit.
    let answered = |limit: u64, parallel: u32| {
        let (server, port) = serve(Program::Ours, "");
        let limits = Rlimit { current: Some(limit), maximum: Some(limit) };
        prlimit(Some(Pid::from_child(&server.0)), Resource::Nofile, limits).unwrap();
        let (mut stream, _) = control_connection(port, b'o');
        assert_eq!(read(&mut stream, 1), [9]);
        let asked = format!("{{\"tcp\":true,\"parallel\":{parallel}}}");
        stream.write_all(&message(&asked)).unwrap();
        match read(&mut stream, 1)[0] {
            10 => vec![10],
            word => [vec![word], rest(&mut stream)].concat(),
        }
    };
    // The error is that of the number of streams, and the system's: too many open files.
    let refused = [0xfe, 0, 0, 0, 6, 0, 0, 0, 24];
    assert_eq!(answered(1000, 500), [10]);
    assert_eq!(answered(1000, 501), refused);
    assert_eq!(answered(1000, 1 << 20), refused);
    let most = getrlimit(Resource::Nofile).maximum;
    if most.is_some_and(|most| most < 10_601) {
        skip(&format!("a process may have {most:?} descriptors here"));
    } else {
        assert_eq!(answered(10_601, 10_001), [10]);
        assert_eq!(answered(10_601, 10_002), refused);
    }
}

#[test]
fn announced_streams_that_never_come_do_not_delay_others() {
    let server = Running::start(ServePlan::default());
    let guests: Vec<TcpStream> = (b'a'..=b'j')
        .map(|letter| {
            let (mut stream, _) = control_connection(server.port, letter);
            assert_eq!(read(&mut stream, 1), [9]);
            stream.write_all(&message("{\"tcp\":true,\"parallel\":1500}")).unwrap();
            assert_eq!(read(&mut stream, 1), [10]);
            stream
        })
        .collect();
    assert_serves(server.port);
    drop(guests);
    assert_eq!(failure(&server), Code::CONTROL_CLOSED);
}

#[test]
fn streams_with_a_wrong_cookie_join_no_test() {
    let server = Running::start(ServePlan::default());
    let (mut stream, _) = control_connection(server.port, b's');
    assert_eq!(read(&mut stream, 1), [9]);
    stream.write_all(&message("{\"tcp\":true,\"time\":5}")).unwrap();
    assert_eq!(read(&mut stream, 1), [10]);
    // Another cookie is another test, which is asked for its parameters.
    let (mut other, _) = control_connection(server.port, b't');
    assert_eq!(read(&mut other, 1), [9]);
    // A greeting where nobody makes streams of datagrams is not answered.
    let greeter = UdpSocket::bind("127.0.0.1:0").unwrap();
    greeter.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    greeter.send_to(b"9876", ("127.0.0.1", server.port)).unwrap();
    assert!(greeter.recv(&mut [0; 16]).is_err());
    // The first test still has no stream.
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(stream.read_exact(&mut [0]).is_err());
    assert_serves(server.port);
}

#[test]
fn streams_of_datagrams_begin_with_four_bytes_of_any_release() {
    let server = Running::start(ServePlan::default());
    let (mut stream, _) = control_connection(server.port, b'd');
    assert_eq!(read(&mut stream, 1), [9]);
    stream.write_all(&message("{\"udp\":true,\"time\":5,\"len\":100,\"parallel\":2}")).unwrap();
    assert_eq!(read(&mut stream, 1), [10]);
    let greet = |greeting: &[u8]| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", server.port)).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        // Data that comes late for a stream which has ended.
        socket.send(&[1; 100]).unwrap();
        socket.send(greeting).unwrap();
        let mut answer = [0; 16];
        let length = socket.recv(&mut answer).unwrap();
        (socket, answer[..length].to_vec())
    };
    let old = greet(&[0x15, 0xcd, 0x5b, 0x07]);
    assert_eq!(old.1, [0xb1, 0x68, 0xde, 0x3a]);
    let new = greet(b"9876");
    assert_eq!(new.1, b"6789");
    assert_eq!(read(&mut stream, 2), [1, 2]);
    // Two datagrams of one stream, of which the first was lost, and nothing of the other.
    let mut datagram = [0; 100];
    datagram[11] = 2;
    old.0.send(&datagram).unwrap();
    datagram[11] = 3;
    old.0.send(&datagram).unwrap();
    stream.write_all(&[4]).unwrap();
    assert_eq!(read(&mut stream, 1), [13]);
    stream.write_all(&nothing_counted()).unwrap();
    let counted = told_results(&mut stream);
    let [first, second] = &counted.streams[..] else { panic!("{counted:?}") };
    assert_eq!((first.id, first.packets, first.errors, first.bytes), (1, 3, 1, 200));
    assert_eq!((second.id, second.packets, second.bytes), (3, 0, 0));
}

/// Results of a client that counted nothing.
pub(crate) fn nothing_counted() -> Vec<u8> {
    let none = "\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0";
    message(&format!("{{{none},\"sender_has_retransmits\":0,\"streams\":[]}}"))
}

/// The results that a server tells next.
fn told_results(stream: &mut TcpStream) -> Results {
    Results::parse(&read_message(stream), 3).unwrap()
}

#[test]
fn a_server_ends_its_streams_before_it_wants_results() {
    // Releases up to 3.15 read on from a stream until a block is whole, or there is no more.
    let server = Running::start(ServePlan::default());
    for (letter, count, asked) in [(b'e', 1, ""), (b'f', 3, ",\"bandwidth\":20000000")] {
        let (mut stream, cookie) = control_connection(server.port, letter);
        assert_eq!(read(&mut stream, 1), [9]);
        let asked =
            format!("{{\"tcp\":true,\"time\":60,\"reverse\":true,\"parallel\":{count}{asked}}}");
        stream.write_all(&message(&asked)).unwrap();
        assert_eq!(read(&mut stream, 1), [10]);
        let mut data: Vec<TcpStream> = (0..count)
            .map(|_| {
                let mut one = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
                one.write_all(&cookie).unwrap();
                one.set_read_timeout(Some(LIMIT)).unwrap();
                one
            })
            .collect();
        assert_eq!(read(&mut stream, 2), [1, 2]);
        let mut received = vec![0; count];
        for (one, bytes) in data.iter_mut().zip(&mut received) {
            *bytes += read(one, 1000).len();
        }
        stream.write_all(&[4]).unwrap();
        for (one, bytes) in data.iter_mut().zip(&mut received) {
            let mut rest = Vec::new();
            *bytes += one.read_to_end(&mut rest).unwrap();
        }
        assert_eq!(read(&mut stream, 1), [13]);
        stream.write_all(&nothing_counted()).unwrap();
        let sent: Vec<u64> =
            told_results(&mut stream).streams.iter().map(|stream| stream.bytes).collect();
        let received: Vec<u64> = received.iter().map(|bytes| *bytes as u64).collect();
        assert_eq!(sent, received);
    }
}

#[test]
fn a_flow_label_needs_ipv6() {
    let server = Running::start(ServePlan::default());
    let labelled = Parameters { flow_label: Some(0x1234), ..short() };
    let comes = |host: &str| {
        run(&plan(host, server.port, labelled.clone()), &mut (), &Cancel::default())
            .map_err(|failure| failure.code)
    };
    assert!(comes("::1").is_ok());
    assert_eq!(comes("127.0.0.1").unwrap_err(), Code::SET_FLOW_LABEL);
}

#[test]
fn clients_beyond_the_limit_of_tests_are_told_busy() {
    let server = Running::start(ServePlan { most_tests: 1, ..ServePlan::default() });
    let (mut first, _) = control_connection(server.port, b'f');
    assert_eq!(read(&mut first, 1), [9]);
    let refused = run(&plan("127.0.0.1", server.port, short()), &mut (), &Cancel::default());
    assert_eq!(refused.unwrap_err().code, Code::ACCESS_DENIED);
    drop(first);
    assert_eq!(failure(&server), Code::CONTROL_CLOSED);
    assert_serves(server.port);
}

#[test]
fn tests_beyond_a_servers_limits_are_refused() {
    let refused = |limits: ServePlan, parameters: Parameters| {
        let server = Running::start(limits);
        let failure = run(&plan("::1", server.port, parameters), &mut (), &Cancel::default());
        let failure = failure.unwrap_err();
        assert!(failure.from_peer, "{failure:?}");
        failure.code
    };
    let longest = ServePlan { max_duration_s: Some(5), ..ServePlan::default() };
    assert_eq!(refused(longest.clone(), Parameters::default()), Code::MAX_DURATION);
    assert_eq!(refused(longest, short()), Code::MAX_DURATION);
    let limit = RateLimit { bps: 10_000_000, interval: Duration::from_millis(300) };
    let slow = ServePlan { rate_limit: Some(limit), ..ServePlan::default() };
    let asked = Parameters { bandwidth_bps: 6_000_000, parallel: 2, ..Parameters::default() };
    assert_eq!(refused(slow.clone(), asked), Code::TOTAL_RATE);
    // Unlimited at first sight, and too fast when it is measured.
    assert_eq!(refused(slow, Parameters::default()), Code::TOTAL_RATE);
}

/// A server that sends these bytes to each client, then stays silent or closes.
fn scripted(words: &'static [u8], stays: bool) -> TestPlan {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut cookie = [0; 37];
        stream.read_exact(&mut cookie).unwrap();
        stream.write_all(words).unwrap();
        if stays {
            // Until the client has gone.
            let _reset = stream.read_to_end(&mut Vec::new());
        }
    });
    plan("127.0.0.1", port, short())
}

#[test]
fn a_client_reports_why_its_test_ended() {
    let fails = |plan: &TestPlan| run(plan, &mut (), &Cancel::default()).unwrap_err().code;
    assert_eq!(fails(&scripted(&[0xff], false)), Code::ACCESS_DENIED);
    assert_eq!(fails(&scripted(&[9, 11], true)), Code::SERVER_TERMINATED);
    assert_eq!(fails(&scripted(&[9, 77], true)), Code::MESSAGE);
    assert_eq!(fails(&scripted(&[9, 0xfe, 0, 0, 0, 142], false)), Code::AUTHORIZATION);
    assert_eq!(fails(&scripted(&[], false)), Code::CONTROL_CLOSED);
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        plan("127.0.0.1", listener.local_addr().unwrap().port(), short())
    };
    assert_eq!(fails(&nobody), Code::CONNECT);
}

#[test]
fn an_interrupted_client_leaves_at_once() {
    for words in [[].as_slice(), &[9], &[9, 10]] {
        let plan = match words {
            [] => scripted(&[], true),
            [_] => scripted(&[9], true),
            _ => {
                let datagrams = Parameters { protocol: Protocol::Udp, ..short() };
                TestPlan { parameters: datagrams, ..scripted(&[9, 10], true) }
            }
        };
        let (cancel, start) = (Cancel::default(), Instant::now());
        let asked = cancel.clone();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            asked.request();
        });
        let failure = run(&plan, &mut (), &cancel).unwrap_err();
        // Where nothing answers the greeting, the kernel may say so first.
        let refused = failure.code == Code::STREAM_CONNECT;
        assert!(failure.interrupted || refused, "{failure:?}");
        assert!(start.elapsed() < LIMIT);
        stopper.join().unwrap();
    }
}

#[test]
fn a_receiver_that_gets_nothing_gives_up() {
    let limit = Duration::from_millis(300);
    let server = Running::start(ServePlan { receive_timeout: limit, ..ServePlan::default() });
    let (mut stream, cookie) = control_connection(server.port, b'r');
    assert_eq!(read(&mut stream, 1), [9]);
    stream.write_all(&message("{\"tcp\":true,\"time\":60}")).unwrap();
    assert_eq!(read(&mut stream, 1), [10]);
    let mut data = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    data.write_all(&cookie).unwrap();
    assert_eq!(read(&mut stream, 2), [1, 2]);
    assert_eq!(rest(&mut stream), [0xfe, 0, 0, 0, 144, 0, 0, 0, 0]);
    assert_eq!(failure(&server), Code::NO_MESSAGE);
}
