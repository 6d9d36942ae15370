//! A client that gives up sends its state first, and its server doesn't treat that as an error.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{ServePlan, TestPlan, run};
use linerate_wire::iperf3::{Code, Parameters};
use serde_json::Value;

use super::cli::for_all;
use super::hostile_peers::{agree, control_connection, message, read, rest, short};
use super::load::{Running, plan};
use super::programs::{LIMIT, Process, Program, has_original, serve};

/// A client that has come so far, and gives up.
fn leave(port: u16, stage: u8) {
    let (mut control, cookie) = control_connection(port, b'a' + stage);
    assert_eq!(read(&mut control, 1), [9]);
    let mut stream = None;
    if stage > 0 {
        control.write_all(&message("{\"tcp\":true,\"time\":60}")).unwrap();
        assert_eq!(read(&mut control, 1), [10]);
    }
    if stage > 1 {
        let stream = stream.insert(TcpStream::connect(("127.0.0.1", port)).unwrap());
        stream.write_all(&cookie).unwrap();
        assert_eq!(read(&mut control, 2), [1, 2]);
    }
    if stage > 2 {
        control.write_all(&[4]).unwrap();
        assert_eq!(read(&mut control, 1), [13]);
    }
    control.write_all(&[16]).unwrap();
    control.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(rest(&mut control).is_empty(), "{stage}");
}

#[test]
fn a_client_that_leaves_in_order_is_no_failure_of_the_test() {
    let server = Running::start(ServePlan::default());
    for stage in 0..4 {
        leave(server.port, stage);
        let told = server.ended.recv_timeout(LIMIT).unwrap();
        assert!(told.is_none(), "{stage}: {told:?}");
    }
    let (mut server, port) = serve(Program::Ours, "-J");
    leave(port, 2);
    let document: Value = serde_json::from_str(&server.text()).unwrap();
    assert_eq!((document["error"].is_null(), server.complaint().as_str()), (true, ""));
    assert_eq!(document["end"], serde_json::json!({}));
}

#[test]
fn a_client_that_gives_up_sends_client_done_before_it_closes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut control = agree(&listener);
        let _stream = listener.accept().unwrap();
        control.write_all(&[1, 2]).unwrap();
        let mut said = Vec::new();
        control.read_to_end(&mut said).unwrap();
        said
    });
    let asked = Parameters { reverse: true, ..short() };
    let receive_timeout = Duration::from_millis(300);
    let asked = TestPlan { receive_timeout, ..plan("127.0.0.1", port, asked) };
    let failure = run(&asked, &mut (), &Cancel::default()).unwrap_err();
    assert_eq!((failure.code, server.join().unwrap()), (Code::NO_MESSAGE, vec![16]));
}

#[test]
fn an_original_server_prints_no_error_when_a_client_gives_up() {
    if !has_original() {
        return;
    }
    // The third stream's port is none.
    for_all(vec![Program::Original, Program::Ours], |program| {
        let (mut server, port) = serve(program, "-J");
        let line = format!("-c 127.0.0.1 -p {port} --cport 65534 -P 3");
        let mut client = Process::start(&mut Program::Ours.command(&line));
        let text = server.text();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert!(document["error"].is_null(), "{text}");
        assert_eq!((server.complaint().as_str(), client.wait()), ("", 1));
    });
}
