//! Connections of ctsTraffic, more at once than a process may have open files.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::alone;
use crate::many::tcp_sockets;

const SERVER: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);
const PORT: u16 = 4444;
/// Each connection sends 100 bytes at once, and as many after this time, until when it is open.
const SLICE: Duration = Duration::from_secs(12);

/// ctsTraffic with these words, where a process may have so many open files.
fn start(open_files: u32, words: &str) -> Child {
    let line = format!("ulimit -n {open_files} && exec \"$0\" ctstraffic {words}");
    let mut command = Command::new("sh");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_linerate")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn threads(process: &Child) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", process.id())).map_or(0, Iterator::count)
}

/// What it wrote, once it has ended in order.
#[track_caller]
fn finish(process: Child) -> String {
    let output = process.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn await_server() {
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(SocketAddr::from((SERVER, PORT))).is_err() {
        assert!(Instant::now() < deadline, "the server doesn't listen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn twenty_thousand_connections_of_ctstraffic_are_open_where_a_process_may_have_4000_open_files() {
    let _one = alone();
    let words = "-transfer:200 -buffer:100 -consoleverbosity:1";
    let mut server = start(4000, &format!("-listen:{SERVER} {words}"));
    await_server();
    let slice_ms = SLICE.as_millis();
    let sources: String = (1..=4).map(|last| format!("-bind:127.1.1.{last} ")).collect();
    let mut client = start(
        4000,
        &format!(
            "-target:{SERVER} {sources} {words} -connections:20000 -iterations:1 -shutdown:rude \
             -ratelimit:{} -ratelimitperiod:{slice_ms}",
            100_000 / slice_ms
        ),
    );
    let (mut sockets, mut threads_of_ends) = (0, [0, 0]);
    while client.try_wait().unwrap().is_none() {
        sockets = tcp_sockets().max(sockets);
        let now = [threads(&client), threads(&server)];
        for (most, now) in threads_of_ends.iter_mut().zip(now) {
            *most = now.max(*most);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = finish(client);
    assert!(
        ended.contains("SuccessfulConnections [20000]   NetworkErrors [0]   ProtocolErrors [0]"),
        "{ended}"
    );
    // Both ends of each are this machine's.
    assert!(sockets >= 40_000, "{sockets} sockets at the peak");
    // Each has the conductor beside the threads that hold the connections.
    assert!(threads_of_ends.iter().all(|threads| *threads > 6), "{threads_of_ends:?}");
    assert!(server.try_wait().unwrap().is_none(), "the server has ended");
    kill_process(Pid::from_child(&server), Signal::INT).unwrap();
    let text = String::from_utf8(server.wait_with_output().unwrap().stdout).unwrap();
    assert!(text.contains("SuccessfulConnections [20000]"), "{text}");
}
