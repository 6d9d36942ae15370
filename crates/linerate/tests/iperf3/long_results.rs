//! Results that are long and full of unknown fields cost their reader a few times their length.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::hostile_peers::{agree, control_connection, message, read, read_message};
use super::programs::{LIMIT, Process, Program, serve};

/// The most that a process had resident so far (VmHWM, proc(5)).
fn most_resident_bytes(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Results of nothing, with this field filled up to a length with values that take far more as a tree than as text.
fn filled(name: &str, length: usize) -> String {
    let value = "{\"\":0},";
    let head = format!(
        "{{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":0,\
         \"streams\":[{{\"id\":1,\"bytes\":1,\"retransmits\":-1,\"jitter\":0,\"errors\":0,\"packets\":0}}],\
         \"{name}\":["
    );
    let count = (length - head.len() - "0]}".len()) / value.len();
    format!("{head}{}0]}}", value.repeat(count))
}

#[test]
fn long_results_cost_a_server_a_few_times_their_length() {
    const LENGTH: usize = 1 << 20;
    for name in ["x", "server_output_json", "jitter"] {
        let (server, port) = serve(Program::Ours, "");
        let (mut stream, cookie) = control_connection(port, b'l');
        assert_eq!(read(&mut stream, 1), [9]);
        stream.write_all(&message("{\"tcp\":true,\"time\":60}")).unwrap();
        assert_eq!(read(&mut stream, 1), [10]);
        let mut data = TcpStream::connect(("127.0.0.1", port)).unwrap();
        data.write_all(&cookie).unwrap();
        assert_eq!(read(&mut stream, 2), [1, 2]);
        data.write_all(&[0; 1000]).unwrap();
        stream.write_all(&[4]).unwrap();
        assert_eq!(read(&mut stream, 1), [13]);
        let before = most_resident_bytes(&server);
        stream.write_all(&message(&filled(name, LENGTH))).unwrap();
        let length = u32::from_be_bytes(read(&mut stream, 4).try_into().unwrap());
        assert_eq!(read(&mut stream, length as usize + 1).last(), Some(&14));
        let grown = most_resident_bytes(&server) - before;
        assert!(grown < 16 * LENGTH as u64, "{name}: {grown} bytes");
    }
}

/// A client of a server that tells these results, and how much more it had resident behind them. It is looked at
/// before the server's last word, or when it has begun to print.
fn grown(words: &str, results: &str, prints: bool) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let words = format!("-c 127.0.0.1 -p {port} -b 1M -n 100K {words}");
    let mut client = Process::start(&mut Program::Ours.command(&words));
    let mut stream = agree(&listener);
    let (mut data, _) = listener.accept().unwrap();
    stream.write_all(&[1, 2]).unwrap();
    let reader = std::thread::spawn(move || data.read_to_end(&mut Vec::new()));
    assert_eq!(read(&mut stream, 1), [4]);
    stream.write_all(&[13]).unwrap();
    read_message(&mut stream);
    let before = most_resident_bytes(&client);
    stream.write_all(&message(results)).unwrap();
    if prints {
        stream.write_all(&[14]).unwrap();
        assert_eq!(read(&mut stream, 1), [16]);
    }
    // Until it has grown no more for a while.
    let (start, mut last) = (Instant::now(), (Instant::now(), before));
    while last.0.elapsed() < Duration::from_secs(1) && start.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(50));
        let now = most_resident_bytes(&client);
        if now != last.1 {
            last = (Instant::now(), now);
        }
    }
    let grown = last.1 - before;
    if !prints {
        stream.write_all(&[14]).unwrap();
    }
    drop(client.text());
    assert_eq!(client.wait(), 0);
    reader.join().unwrap().unwrap();
    grown
}

#[test]
fn long_results_cost_a_client_a_few_times_their_length() {
    const LENGTH: usize = 2 << 20;
    for (words, name, prints) in [
        ("", "x", false),
        ("-J", "server_output_json", false),
        // It stops printing where nobody reads its output.
        ("-J --get-server-output", "server_output_json", true),
        ("--json-stream --get-server-output", "server_output_json", true),
        ("--get-server-output", "server_output_json", true),
    ] {
        let grown = grown(words, &filled(name, LENGTH), prints);
        assert!(grown < 16 * LENGTH as u64, "{words} {name}: {grown} bytes");
    }
}
