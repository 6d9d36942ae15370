//! Our client with our server.

use std::net::UdpSocket;
use std::time::Duration;

use rustix::process::Signal;

use super::fixture::{Ended, Running, Server, command, without_numbers};
use super::patterns::{read_client, read_server, read_time};
use super::skipped::skip;

/// The lines of a client's intervals.
fn intervals(ended: &Ended) -> Vec<&str> {
    ended.stdout.lines().filter(|line| line.starts_with("second ")).collect()
}

fn total(text: &str, line: &str, name: &str) -> u64 {
    let line = text.lines().find(|one| one.contains(line)).unwrap_or_else(|| panic!("{text}"));
    let (_, rest) = line.split_once(name).unwrap();
    rest.split(',').next().unwrap().trim().parse().unwrap()
}

#[test]
fn scripts_read_the_lines_of_both_ends() {
    let server = Server::start("-i 0.1 --print-raw");
    let ended = server.client("-t 1 -i 0.1 --print-raw");
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    let (mut bytes, mut packets) = (0, 0);
    for (index, line) in intervals(&ended).into_iter().enumerate() {
        let (second, rate, prefix, came, in_packets) = read_client(line).expect(line);
        assert!((second - 0.1 * (index as f64 + 1.0)).abs() < 1e-9, "{line}");
        assert_eq!((prefix.as_str(), rate.fract()), ("", 0.0), "{line}");
        (bytes, packets) = (bytes + came, packets + in_packets);
    }
    assert!(bytes > 0 && packets > 0, "{}", ended.stdout);
    assert!(total(&ended.stdout, "total:", "bytes received: ") >= bytes);
    assert!(total(&ended.stdout, "total:", "packets received: ") >= packets);
    for beginning in ["connection establishment time:", "time to first byte:"] {
        let line = ended.stdout.lines().find(|line| line.starts_with(beginning)).unwrap();
        assert!(read_time(line, beginning).is_some_and(|ms| ms < 30_000.0), "{line}");
    }
    let (served, _folder) = server.stop();
    let told = served.stdout.lines().filter(|line| line.contains(" second "));
    let told: Vec<_> = told.map(|line| read_server(line).expect(line)).collect();
    assert!(!told.is_empty() && told.iter().all(|(_, window, ..)| *window > 0), "{told:?}");
    let sent = total(&served.stdout, "total: bytes sent", "bytes sent: ");
    assert!(sent >= total(&ended.stdout, "total:", "bytes received: "));
}

#[test]
fn both_ends_print_the_fork_s_lines_in_its_order() {
    let server = Server::start("");
    let ended = server.client("-t 2 --cc cubic -w 20");
    let port = server.port;
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let mut lines = ended.stdout.lines();
    let start =
        format!("starting client with host 127.0.0.1, port {port}, runtime 2s, cc cubic, iw 20");
    assert_eq!(lines.next(), Some(start.as_str()));
    let connecting = format!("establishing connection to 127.0.0.1:{port}");
    assert_eq!(lines.next(), Some(connecting.as_str()));
    let rest: Vec<String> = lines.map(without_numbers).collect();
    assert_eq!(rest[..2], ["connection establishment time: #ms", "time to first byte: #ms"]);
    assert_eq!(rest.last().unwrap(), "total: bytes received: #, packets received: #");
    let (served, _folder) = server.stop();
    let text = without_numbers(&served.stdout);
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!(first, "starting server with pid #, port #, cc reno, iw #");
    let told: Vec<&str> =
        rest.lines().filter(|line| !line.contains("connection # second")).collect();
    assert_eq!(
        told,
        [
            "got new connection from #.#.#.#:#",
            "new server binding #",
            "binding # src connected to #.#.#.#:#",
            "connection # connection establishment time: #ms",
            "binding # stream # opened",
            "binding # request received, sending data",
            "binding # closed by remote: transport close: code=#x#; frame=#; reason=runtime_reached",
            "binding # closed",
            "connection # total: bytes sent: #, packets sent: #, packets lost: #",
            "binding # disconnected, cleaning up",
            "binding # removed",
        ]
    );
    assert_eq!(served.exit_code, 130);
}

#[test]
fn an_address_in_brackets_is_no_name() {
    if UdpSocket::bind("[::1]:0").is_err() {
        return skip("this machine has no IPv6");
    }
    let server = Server::start_on("[::1]");
    for host in ["::1", "[::1]"] {
        let ended = server.client_to(host, "-e");
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{host}");
    }
}

#[test]
fn the_first_byte_ends_a_client_that_measures_no_more() {
    let server = Server::start("");
    let ended = server.client("-e");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let lines: Vec<String> = ended.stdout.lines().skip(2).map(without_numbers).collect();
    assert_eq!(lines, ["connection establishment time: #ms", "time to first byte: #ms"]);
}

#[test]
fn either_version_and_any_number_of_clients_are_served_at_once() {
    let each = ["-t 1 --quic-version draft-29", "-t 1 --quic-version rfc-1", "-t 1 -g"];
    // A close that finds the socket of a busy server full is lost, and its client is gone: such a run says nothing.
    let closes = (0..30).map(|_| {
        let server = Server::start("-g");
        thread_scope(&server, &each);
        let (served, _folder) = server.stop();
        assert!(served.stdout.starts_with("using UDP GSO, requires kernel >= 4.18\n"));
        served.stdout.matches("reason=runtime_reached").count()
    });
    assert!(closes.into_iter().any(|count| count == each.len()));
}

fn thread_scope(server: &Server, each: &[&str]) {
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            each.iter().map(|words| scope.spawn(|| server.client(words))).collect();
        for client in clients {
            let ended = client.join().unwrap();
            assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
            assert!(total(&ended.stdout, "total:", "bytes received: ") > 0);
        }
    });
}

#[test]
fn ctrl_c_ends_a_client_with_its_total() {
    let server = Server::start("");
    let words = format!("-c 127.0.0.1 -p {} -t 1000 -i 0.1", server.port);
    let client = Running::start(command(&words, server.folder.path()));
    std::thread::sleep(Duration::from_secs(1));
    let ended = client.signal(Signal::INT);
    assert_eq!(ended.exit_code, 130);
    assert!(ended.stdout.lines().last().unwrap().starts_with("total: "), "{}", ended.stdout);
}

#[test]
fn a_server_that_is_stopped_tells_its_clients() {
    let server = Server::start("");
    let words = format!("-c 127.0.0.1 -p {} -t 1000", server.port);
    let client = Running::start(command(&words, server.folder.path()));
    std::thread::sleep(Duration::from_secs(1));
    let (served, _folder) = server.stop();
    assert!(
        served.stdout.contains("binding 0 closed: the server was stopped\n"),
        "{}",
        served.stdout
    );
    let ended = client.wait();
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("was lost: "), "{}", ended.stderr);
}

#[test]
fn secrets_of_both_ends_are_appended_to_their_files() {
    let server = Server::start("-l server.keys");
    let ended = server.client("-e --log-tls client.keys");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let (_served, folder) = server.stop();
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.retain(|line| line.contains("_TRAFFIC_SECRET"));
        lines.sort();
        lines
    };
    let (ours, theirs) = (read("client.keys"), read("server.keys"));
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 4, "{ours:?}");
}
