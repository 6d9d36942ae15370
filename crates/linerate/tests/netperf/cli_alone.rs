//! Tests without a netserver, and what buffers hold.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use super::server_process::{Netserver, netperf, value};

/// Takes one connection after the other, and hands on what came over each.
fn service(echoes: bool, connections: usize) -> (u16, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = thread::spawn(move || {
        let serve = |_| {
            let (mut connection, _) = listener.accept().unwrap();
            take(&mut connection, echoes)
        };
        (0..connections).map(serve).collect()
    });
    (port, served)
}

fn take(connection: &mut TcpStream, echoes: bool) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let length = connection.read(&mut buffer).unwrap();
        if length == 0 {
            return all;
        }
        all.extend_from_slice(&buffer[..length]);
        if echoes {
            connection.write_all(&buffer[..length]).unwrap();
        }
    }
}

#[test]
fn without_a_control_connection_what_was_sent_is_the_result() {
    let (port, served) = service(false, 1);
    let selected = "LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,REMOTE_RECV_THROUGHPUT,THROUGHPUT";
    let ended =
        netperf(&format!("-N -H 127.0.0.1 -P 0 -l -1000000 -- -m 10000 -P ,{port} -k {selected}"));
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("the other end's figures are missing"), "{}", ended.stderr);
    let out = &ended.stdout;
    assert_eq!(value(out, "LOCAL_BYTES_SENT"), "1000000");
    assert_eq!(value(out, "REMOTE_BYTES_RECVD"), "-1");
    assert_eq!(value(out, "REMOTE_RECV_THROUGHPUT"), "-1.00");
    assert!(value(out, "THROUGHPUT").parse::<f64>().unwrap() > 0.0, "{out}");
    assert_eq!(served.join().unwrap()[0].len(), 1_000_000);
}

#[test]
fn echo_service_answers_requests() {
    for (test, connections) in [("TCP_RR", 1), ("TCP_CRR", 5)] {
        let (port, served) = service(true, connections);
        let ended = netperf(&format!(
            "-N -H 127.0.0.1 -P 0 -t {test} -l -5 -- -r 100 -P ,{port} -k LOCAL_BYTES_RECVD"
        ));
        assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
        assert_eq!(value(&ended.stdout, "LOCAL_BYTES_RECVD"), "500", "{test}");
        let bytes: usize = served.join().unwrap().iter().map(Vec::len).sum();
        assert_eq!(bytes, 500, "{test}");
    }
}

#[test]
fn sender_repeats_the_files_content() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let content: Vec<u8> = (0..=250).collect();
    std::fs::write(&path, &content).unwrap();
    let path = path.display();
    for (test, width) in [("TCP_STREAM", 10), ("TCP_SENDFILE", 1)] {
        let (port, served) = service(false, 1);
        let ended = netperf(&format!(
            "-N -H 127.0.0.1 -P 0 -t {test} -F {path} -W {width} -l -5000 -- -m 1000 -P ,{port}"
        ));
        assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
        let expected: Vec<u8> = content.iter().copied().cycle().take(5000).collect();
        assert_eq!(served.join().unwrap()[0], expected, "{test}");
    }
    let ended = netperf(&format!("-N -H 127.0.0.1 -F {path}.not -- -P ,9"));
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("can't be used"), "{}", ended.stderr);
}

#[test]
fn buffers_that_are_written_to_are_sent_as_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, [0]).unwrap();
    let path = path.display();
    let (port, served) = service(false, 1);
    let ended = netperf(&format!(
        "-N -H 127.0.0.1 -P 0 -F {path} -k 3,0 -W 1 -l -30 -- -m 10 -P ,{port} -k \
         LOCAL_SEND_DIRTY_COUNT,LOCAL_RECV_DIRTY_COUNT,LOCAL_RECV_CLEAN_COUNT,REMOTE_SEND_DIRTY_COUNT"
    ));
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let out = &ended.stdout;
    let shown = ["LOCAL_SEND_DIRTY_COUNT", "LOCAL_RECV_DIRTY_COUNT", "LOCAL_RECV_CLEAN_COUNT"];
    assert_eq!(shown.map(|name| value(out, name)), ["3", "3", "0"]);
    assert_eq!(value(out, "REMOTE_SEND_DIRTY_COUNT"), "-1");
    let expected: Vec<u8> =
        (1..=3).flat_map(|send| (0..10).map(move |at| if at < 3 { send } else { 0 })).collect();
    assert_eq!(served.join().unwrap()[0], expected);
}

#[test]
fn every_test_goes_on_with_options_for_buffers_and_connections() {
    let server = Netserver::start("-n 7");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, b"content").unwrap();
    let path = path.display();
    for test in ["TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR"] {
        let ended = server.netperf(&format!(
            "-P 0 -C -t {test} -l -100 -F {path} -k 10,20 -K 30,40 -- -r 100 -F -H 127.0.0.0/8 -L \
             127.1.0.0/16 -k REMOTE_CPU_COUNT,DEST_ADDR"
        ));
        assert_eq!(ended.exit_code, 0, "{test}: {}", ended.stderr);
        assert_eq!(value(&ended.stdout, "REMOTE_CPU_COUNT"), "7", "{test}");
        assert!(value(&ended.stdout, "DEST_ADDR").starts_with("127."), "{}", ended.stdout);
    }
    for test in ["UDP_STREAM", "UDP_RR"] {
        let ended =
            server.netperf(&format!("-P 0 -t {test} -l 1 -F {path} -k 10 -K 20 -- -R 1 -r 100"));
        assert_eq!(ended.exit_code, 0, "{test}: {}", ended.stderr);
    }
}

#[test]
fn a_serial_server_has_its_clients_wait_for_each_other() {
    let server = Netserver::start("-f");
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..4).map(|_| scope.spawn(|| server.netperf("-P 0 -t TCP_RR -l -200"))).collect();
        for client in clients {
            let ended = client.join().unwrap();
            assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
        }
    });
}
