//! `linerate proxy --tcp`: connections that are split.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

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
