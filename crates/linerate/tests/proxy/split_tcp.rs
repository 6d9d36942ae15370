//! `linerate proxy --tcp`: connections that are split.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;
use rustix::process::Signal;

use super::fixture::Proxy;

/// A server that answers each connection with what it has received, turned round.
fn turning() -> (u16, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        for stream in listener.incoming().take(2) {
            let (mut stream, mut bytes) = (stream.unwrap(), Vec::new());
            stream.read_to_end(&mut bytes).unwrap();
            bytes.reverse();
            stream.write_all(&bytes).unwrap();
        }
    };
    (port, thread::spawn(serve))
}

#[test]
fn bytes_and_ends_pass_both_ways() {
    let (port, server) = turning();
    let proxy = Proxy::start_tcp(port, "");
    assert!(proxy.beginning.contains("TCP, to 127.0.0.1"), "{}", proxy.beginning);
    for count in [0, 3_000_000_u32] {
        let sent: Vec<u8> = (0..count).map(|n| (n / 7) as u8).collect();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
        let mut writer = client.try_clone().unwrap();
        let whole = sent.clone();
        let writes = thread::spawn(move || {
            writer.write_all(&whole).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut came = Vec::new();
        client.read_to_end(&mut came).unwrap();
        writes.join().unwrap();
        came.reverse();
        assert!(came == sent, "{} bytes came", came.len());
    }
    server.join().unwrap();
    let summary = proxy.stop(Signal::INT);
    assert!(summary.text.contains("2 connections, 0 refused, 0 failed"), "{}", summary.text);
    assert!(summary.text.contains("3.00 MB"), "{}", summary.text);
}

#[test]
fn a_slow_reader_holds_its_sender() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start_tcp(listener.local_addr().unwrap().port(), "--buffer 64Ki");
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    let (_unread, _) = listener.accept().unwrap();
    client.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut sent = 0;
    while let Ok(more) = client.write(&[7; 64 << 10]) {
        sent += more;
        // What the kernel's buffers of four sockets hold at most.
        assert!(sent < 64 << 20, "nothing holds it");
    }
    drop(client);
    let summary = proxy.stop(Signal::INT);
    assert_eq!(summary.exit_code, 0);
}

#[test]
fn a_target_that_is_down_resets_the_client() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let proxy = Proxy::start_tcp(port, "");
    let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let summary = proxy.stop(Signal::INT);
    let sentence = format!("can't connect to the target 127.0.0.1:{port}: Connection refused");
    assert!(summary.narration.contains(&sentence), "{}", summary.narration);
}

#[test]
fn a_target_that_speaks_first_is_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start_tcp(listener.local_addr().unwrap().port(), "");
    let greets = thread::spawn(move || {
        let greeted = listener.incoming().take(200).map(|stream| {
            let mut stream = stream.unwrap();
            stream.write_all(b"220 ready\n").unwrap();
            stream
        });
        greeted.collect::<Vec<_>>()
    });
    let clients: Vec<_> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", proxy.port)).unwrap()).collect();
    for (number, mut client) in (0..).zip(&clients) {
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut greeting = [0; 10];
        client.read_exact(&mut greeting).unwrap_or_else(|error| panic!("client {number}: {error}"));
    }
    greets.join().unwrap();
    proxy.stop(Signal::INT);
}

#[test]
fn a_reset_behind_a_fin_breaks_the_connection_to_the_target() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start_tcp(listener.local_addr().unwrap().port(), "");
    let client = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    let (mut target, _) = listener.accept().unwrap();
    target.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(target.read(&mut [0]).unwrap(), 0);
    sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
    let broken = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(50));
        sockopt::socket_error(&target).unwrap().is_err()
    });
    assert!(broken, "the target's connection still stands");
    proxy.stop(Signal::INT);
}

/// One thread, and a flow whose both ends outpace the proxy.
#[test]
fn a_bulk_flow_leaves_others_their_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start_tcp(listener.local_addr().unwrap().port(), "--threads 1");
    let mut bulk = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    let (mut sink, _) = listener.accept().unwrap();
    let sends = thread::spawn(move || while bulk.write_all(&[1; 256 << 10]).is_ok() {});
    let takes = thread::spawn(move || {
        let mut taken = vec![0; 1 << 20];
        while sink.read(&mut taken).is_ok_and(|length| length > 0) {}
    });
    for _ in 0..20 {
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut target, _) = listener.accept().unwrap();
        client.write_all(b"?").unwrap();
        target.read_exact(&mut [0]).unwrap();
        target.write_all(b"!").unwrap();
        client.read_exact(&mut [0]).unwrap();
    }
    let summary = proxy.stop(Signal::INT);
    assert!(summary.text.contains("21 connections, 0 refused, 0 failed"), "{}", summary.text);
    sends.join().unwrap();
    takes.join().unwrap();
}
