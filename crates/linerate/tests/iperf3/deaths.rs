//! One end is gone, or stops, at a stage of a test; the other one notices, says so, and ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::ChildStdout;
use std::time::{Duration, Instant};

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Failure, ServePlan, run};
use linerate_wire::iperf3::{Code, Parameters, Protocol};
use rustix::process::{Pid, Signal, kill_process};

use super::cli::for_all;
use super::hostile_peers::{
    assert_serves, control_connection, message, nothing_counted, read, read_message,
};
use super::load::{Running, plan};
use super::programs::{LIMIT, Process, Program, has_original, serve};

/// Waits until a process has told its first interval. What comes later, nobody reads: it fits into the pipe.
pub(crate) fn await_interval(process: &mut Process) -> BufReader<ChildStdout> {
    let mut stdout = BufReader::new(process.0.stdout.take().unwrap());
    let told = stdout.by_ref().lines().map_while(Result::ok).any(|line| line.contains("bits/sec"));
    assert!(told, "there was no interval: {}", process.complaint());
    stdout
}

fn dies(words: &str, client_dies: bool) {
    let (mut server, port) = serve(Program::Ours, "-i 0.2");
    let words = format!("-c 127.0.0.1 -p {port} -t 60 -i 0.2 --forceflush {words}");
    let mut client = Process::start(&mut Program::Ours.command(&words));
    let _unread = await_interval(&mut client);
    let (dead, left, said) = if client_dies {
        (&mut client, &mut server, "the client has unexpectedly closed the connection")
    } else {
        (&mut server, &mut client, "error - control socket has closed unexpectedly")
    };
    dead.0.kill().unwrap();
    // A server of one test has had it.
    assert_eq!(left.wait(), i32::from(!client_dies), "{words}");
    assert_eq!(left.complaint(), format!("iperf3: {said}\n"), "{words}");
}

#[test]
fn survivor_ends_when_its_peer_is_killed() {
    let kinds = ["-b 20M", "-b 20M -R", "-b 20M --bidir", "-u -b 20M", "-u -b 20M -R", "-m -b 20M"];
    for_all(kinds.to_vec(), |words| {
        dies(words, true);
        dies(words, false);
    });
}

/// One end is stopped in the middle of a test; what the other one says then, and whether it was the client.
fn told_of_a_stop(
    left: Program,
    client_words: &str,
    server_words: &str,
    client_stops: bool,
) -> String {
    let other = Program::OursAs("3.12");
    let (server, client) = if client_stops { (left, other) } else { (other, left) };
    let (mut server, port) = serve(server, &format!("-i 0.2 --forceflush {server_words}"));
    let words = format!("-c 127.0.0.1 -p {port} -t 60 -i 0.2 --forceflush {client_words}");
    let mut client = Process::start(&mut client.command(&words));
    let (stopped, left) =
        if client_stops { (&mut client, &mut server) } else { (&mut server, &mut client) };
    let _unread = await_interval(left);
    kill_process(Pid::from_child(&stopped.0), Signal::STOP).unwrap();
    let _code = left.wait();
    stopped.0.kill().unwrap();
    left.complaint()
}

#[test]
fn a_time_out_is_told_once_and_in_the_originals_words() {
    let silent = "iperf3: error - idle timeout for receiving data\n";
    let unread = "iperf3: error - unable to write to stream socket: Connection timed out\n";
    // Longer than a busy machine keeps a test from its first interval.
    let ends = [
        ("-R -b 20M --rcv-timeout 5000", "", false, silent),
        ("-b 20M", "--rcv-timeout 5000", true, silent),
        ("-b 400M --snd-timeout 5000", "", false, unread),
        ("-R -b 400M", "--snd-timeout 5000", true, unread),
    ];
    let mut cells: Vec<_> = ends.map(|end| (Program::OursAs("3.12"), end)).to_vec();
    if has_original() {
        cells.extend(ends.map(|end| (Program::Original, end)));
    }
    for_all(cells, |(left, (client, server, client_stops, said))| {
        assert_eq!(told_of_a_stop(left, client, server, client_stops), said, "{client} | {server}");
    });
}

#[test]
fn a_server_that_does_not_answer_is_given_up_after_the_time_for_connecting() {
    let full = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let address = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(one) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
        waiting.push(one);
        assert!(waiting.len() < 100, "the backlog has no end");
    }
    let words = format!("-c 127.0.0.1 -p {} --connect-timeout 300", address.port());
    let mut programs = vec![Program::OursAs("3.12")];
    if has_original() {
        programs.push(Program::Original);
    }
    for program in programs {
        let start = Instant::now();
        let mut client = Process::start(&mut program.command(&words));
        assert_eq!(client.wait(), 1);
        let said = "iperf3: error - unable to connect to server: Connection timed out\n";
        assert_eq!(client.complaint(), said);
        assert!(start.elapsed() >= Duration::from_millis(300));
    }
}

fn asked(udp: bool) -> Parameters {
    let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
    Parameters { protocol, parallel: 2, block_bytes: 1000, ..Parameters::default() }
}

/// Opens a stream of a test; dropping the result closes it.
fn open_stream(port: u16, udp: bool, cookie: &[u8]) -> (Option<TcpStream>, Option<UdpSocket>) {
    if udp {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        socket.send(b"9876").unwrap();
        assert_eq!(socket.recv(&mut [0; 16]).unwrap(), 4);
        return (None, Some(socket));
    }
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(cookie).unwrap();
    (Some(stream), None)
}

/// A client that goes when it has come so far.
fn visit(port: u16, stage: u8, udp: bool) {
    let (mut control, cookie) = control_connection(port, b'a' + stage);
    assert_eq!(read(&mut control, 1), [9]);
    let parameters = message(&asked(udp).render());
    let half = parameters.len() / 2;
    match stage {
        0 => return,
        1 => return control.write_all(&parameters[..half]).unwrap(),
        _ => control.write_all(&parameters).unwrap(),
    }
    assert_eq!(read(&mut control, 1), [10]);
    if stage == 2 {
        return;
    }
    let _first = open_stream(port, udp, &cookie);
    if stage == 3 {
        return;
    }
    let _second = open_stream(port, udp, &cookie);
    assert_eq!(read(&mut control, 2), [1, 2]);
    if stage == 4 {
        return;
    }
    control.write_all(&[4]).unwrap();
    assert_eq!(read(&mut control, 1), [13]);
    let results = nothing_counted();
    match stage {
        5 => {}
        6 => control.write_all(&results[..results.len() / 2]).unwrap(),
        _ => {
            control.write_all(&results).unwrap();
            let length = u32::from_be_bytes(read(&mut control, 4).try_into().unwrap());
            // The server's in part, or whole with the word behind them.
            let rest = if stage == 7 { 20 } else { length + 1 };
            read(&mut control, rest as usize);
        }
    }
}

#[test]
fn a_client_that_dies_in_any_stage_holds_up_nobody() {
    let server = Running::start(ServePlan::default());
    for stage in 0..9_u8 {
        for udp in [false, true] {
            visit(server.port, stage, udp);
            let told = server.ended.recv_timeout(LIMIT).unwrap().map(|failure| failure.code);
            // Once the server has sent all, the test has succeeded, with or without the client's last state. A client
            // that closes with unread data resets the connection.
            let late = stage >= 7;
            let reset =
                late && [Some(Code::CONTROL_WRITE), Some(Code::RECEIVE_MESSAGE)].contains(&told);
            let good = late && told.is_none();
            assert!(good || reset || told == Some(Code::CONTROL_CLOSED), "{stage} {udp}: {told:?}");
        }
        assert_serves(server.port);
        assert!(server.ended.recv_timeout(LIMIT).unwrap().is_none());
    }
}

/// A server that goes when it has come so far. Its streams' sockets go with it; `datagrams` are what those over UDP
/// come to.
fn serve_until(listener: &TcpListener, datagrams: Option<UdpSocket>, stage: u8) {
    let (mut control, _) = listener.accept().unwrap();
    read(&mut control, 37);
    if stage == 0 {
        return;
    }
    control.write_all(&[9]).unwrap();
    read_message(&mut control);
    if stage == 1 {
        return;
    }
    control.write_all(&[10]).unwrap();
    if stage == 2 {
        return;
    }
    let mut streams = Vec::new();
    if let Some(datagrams) = &datagrams {
        let (_, client) = datagrams.recv_from(&mut [0; 16]).unwrap();
        datagrams.send_to(b"6789", client).unwrap();
    } else {
        let (mut stream, _) = listener.accept().unwrap();
        read(&mut stream, 37);
        streams.push(stream);
    }
    match stage {
        3 => return,
        4 => return control.write_all(&[1]).unwrap(),
        _ => control.write_all(&[1, 2]).unwrap(),
    }
    if stage == 5 {
        return;
    }
    assert_eq!(read(&mut control, 1), [4]);
    if stage == 6 {
        return;
    }
    control.write_all(&[13]).unwrap();
    read_message(&mut control);
    if stage == 8 {
        let results = nothing_counted();
        control.write_all(&results[..results.len() / 2]).unwrap();
    }
}

/// Why a test with a server fails that goes when it has come so far.
fn left_alone(stage: u8, udp: bool) -> Failure {
    let (listener, datagrams, port) = tcp_and_udp();
    let datagrams = udp.then_some(datagrams);
    let thread = std::thread::spawn(move || serve_until(&listener, datagrams, stage));
    // Long, unless the client is to come to its end.
    let amount = if stage > 5 { 2000 } else { 0 };
    let parameters = Parameters {
        parallel: 1,
        time_s: if amount > 0 { 0 } else { 60 },
        num_bytes: amount,
        bandwidth_bps: 1_000_000,
        ..asked(udp)
    };
    let start = Instant::now();
    let failure = run(&plan("127.0.0.1", port, parameters), &mut (), &Cancel::default());
    assert!(start.elapsed() < LIMIT, "{stage} {udp}: {:?}", start.elapsed());
    thread.join().unwrap();
    failure.unwrap_err()
}

#[test]
fn a_server_that_dies_in_any_stage_ends_its_clients_test() {
    let stages = (0..9_u8).flat_map(|stage| [(stage, false), (stage, true)]).collect();
    for_all(stages, |(stage, udp)| {
        let failure = left_alone(stage, udp);
        // Where streams are to be made, their own end may be seen first.
        let of_stream = failure.code == Code::STREAM_CONNECT && stage == 2;
        assert!(failure.code == Code::CONTROL_CLOSED || of_stream, "{stage} {udp}: {failure:?}");
    });
}
use crate::both::tcp_and_udp;
