//! How runs end that don't just come to their end: by time, by force, by a datagram, by an address that somebody
//! else has.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::fixture::{Ended, Server, command, results, run, wait};

/// What the kernel ends a program with that has called abort.
const ABORTED: Option<i32> = Some(6);

fn start(words: &str) -> Child {
    command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs a server on a port of the kernel's choice until it ends by itself; how, and how soon.
fn run_server(words: &str) -> (Ended, Duration) {
    let (words, began) = (format!("-bind:127.0.0.1:0 {words}"), Instant::now());
    let ended = run(&words);
    (ended, began.elapsed())
}

#[test]
fn the_watchdog_aborts_what_runs_too_long_and_nothing_else() {
    let server = Server::start("-watchdog:30000");
    for carriage in ["", "-tcp:1"] {
        let began = Instant::now();
        let ended = server.client(&format!("{carriage} -down:30s -watchdog:600"));
        assert_eq!(ended.signal, ABORTED, "{carriage}: {}", ended.stdout);
        assert!(began.elapsed() >= Duration::from_millis(600), "{carriage}");
        assert!(began.elapsed() < Duration::from_secs(15), "{carriage}");
        assert_eq!(ended.stdout, "Started!\n\n", "{carriage}: no result, and no last line");
        let ended = server.client(&format!("{carriage} -down:1000 -watchdog:30000"));
        assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"], "{carriage}");
    }
    let (ended, took) = run_server("-watchdog:500");
    assert_eq!(ended.signal, ABORTED, "{}", ended.stdout);
    assert!(took >= Duration::from_millis(500), "{took:?}");
}

#[test]
fn an_interrupted_run_is_counted_over_the_time_that_passed() {
    let server = Server::start("");
    let per_s = |stdout: &str| {
        let line =
            stdout.lines().find_map(|line| line.strip_prefix("Result: ")?.strip_suffix(" RPS"));
        line.unwrap_or_else(|| panic!("no rate in {stdout}")).parse::<f64>().unwrap()
    };
    let whole = server.client("-tcp:1 -rstream:1 -prate:1 -up:512 -down:512 -run:1s");
    let client = start(&server.words("-tcp:1 -rstream:1 -prate:1 -up:512 -down:512 -run:60s"));
    std::thread::sleep(Duration::from_secs(1));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&client),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let cut = client.wait_with_output().unwrap();
    assert_eq!(cut.status.code(), Some(130));
    let (whole, cut) = (per_s(&whole.stdout), per_s(&String::from_utf8(cut.stdout).unwrap()));
    assert!(cut > whole / 10.0, "{cut} a second, {whole} in a whole run");
}

#[test]
fn a_failure_aborts_where_that_is_asked_for_and_a_success_does_not() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (words, status) in [
        (format!("-target:127.0.0.1 -port:{nobody} -tcp:1 -abortOnFailure"), 111),
        ("-bind:foo -abortonfailure".to_owned(), 22),
    ] {
        let ended = run(&words);
        assert_eq!(ended.signal, ABORTED, "{words}: {}", ended.stdout);
        let last = format!("App Main returning status {status}\n");
        assert!(ended.stdout.ends_with(&last), "{words}: {}", ended.stdout);
    }
    let server = Server::start("");
    let ended = server.client("-down:1000 -abortOnFailure");
    assert_eq!(results(&ended), ["Completed 1 connections and 1 streams!"]);
}

#[test]
fn a_server_ends_in_order_when_its_time_is_up() {
    let both = "-maxruntime:3000 -stats:1";
    for (words, carriage) in [("-maxruntime:3000", ""), (both, ""), (both, "-tcp:1")] {
        let began = Instant::now();
        let mut server = Server::start(words);
        // A client in the midst ends too.
        let client_words = server.words(&format!("{carriage} -down:30s"));
        let client = start(&client_words);
        let status = loop {
            match server.child.try_wait().unwrap() {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
            assert!(began.elapsed() < Duration::from_secs(15), "{words}: it doesn't end");
        };
        assert_eq!(status.code(), Some(0), "{words}");
        assert!(began.elapsed() >= Duration::from_millis(3000), "{words}");
        let ended = wait(client, &client_words);
        assert_eq!(ended.exit_code, 5, "{client_words}: {}", ended.stdout);
        // What it knew of a connection that it ended itself is told, too.
        let mut told = String::new();
        server.child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(told.contains("Connection Statistics:"), words.contains("-stats"), "{told}");
        assert!(began.elapsed() < Duration::from_secs(15), "{client_words}");
    }
    let (ended, _) = run_server("-maxruntime:200");
    assert_eq!((ended.exit_code, ended.signal), (0, None));
    assert_eq!(ended.stdout, "Started!\n\nApp Main returning status 0\n");
}

#[test]
fn an_address_that_somebody_else_has_is_98_and_one_that_is_nobodys_is_5() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mut tcp = TcpListener::bind(address).ok();
    let last = |status: i32| format!("App Main returning status {status}\n");
    for _ in 0..2 {
        // At first both are taken, then the port of UDP alone.
        let ended = run(&format!("-bind:{address}"));
        assert_eq!(ended.exit_code, 98, "{}", ended.stdout);
        assert!(!ended.stdout.contains("Started!"), "{}", ended.stdout);
        assert!(ended.stdout.ends_with(&last(98)), "{}", ended.stdout);
        drop(tcp.take());
    }
    // An address of documents (RFC 5737), which no machine has.
    for words in ["-bind:192.0.2.1", "-target:127.0.0.1 -bind:192.0.2.1 -down:1000"] {
        let ended = run(words);
        assert_eq!(ended.exit_code, 5, "{words}: {}", ended.stdout);
        assert!(ended.stdout.ends_with(&last(5)), "{words}: {}", ended.stdout);
    }
}

/// Whether nobody hears datagrams to this address, as the kernel says at once on one machine.
fn is_deaf(to: &str) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket.connect(to).unwrap();
    // Not what stops a server: only whether it comes.
    socket.send(b"hello").unwrap();
    socket.recv(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[test]
fn a_datagram_stops_a_server_that_lets_itself_be_stopped_on_loopback_alone() {
    const REQUEST: [u8; 16] = 0x57e6_15ff_264f_0e57_88ab_0796_b258_d11c_u128.to_be_bytes();
    let plain = Server::start("");
    assert!(is_deaf("127.0.0.1:9999"), "nobody has asked for that");
    let mut server = Server::start("--remote-stop");
    assert!(!is_deaf("127.0.0.1:9999"), "the server hears it");
    assert!(is_deaf("127.0.0.2:9999"), "it hears one address, which nobody elsewhere can reach");
    let (ended, _) = run_server("--remote-stop");
    assert_eq!(ended.exit_code, 98, "only one server can have that port: {}", ended.stdout);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for almost in [&REQUEST[..15], &[REQUEST.as_slice(), &[0]].concat(), &[0; 16]] {
        socket.send_to(almost, "127.0.0.1:9999").unwrap();
    }
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(server.child.try_wait().unwrap(), None, "nothing else stops it");
    socket.send_to(&REQUEST, "127.0.0.1:9999").unwrap();
    let end = Instant::now() + Duration::from_secs(15);
    while server.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "the datagram doesn't stop it");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.child.try_wait().unwrap().unwrap().code(), Some(0));
    // The other one has not heard of it.
    assert_eq!(results(&plain.client("-down:1000")), ["Completed 1 connections and 1 streams!"]);
}
