//! Servers whose sockets somebody else has opened for them, as systemd does (sd_listen_fds(3)).

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::both::tcp_and_udp;
use crate::document::Document;
use crate::ends::{LONGEST, as_ordinary_user, copy_for_every_user, holds_within, program};

/// A shell that becomes this program, with the two as descriptors 3 and 4 of `LISTEN_FDS`.
fn shell(home: &TempDir, first: OwnedFd, second: OwnedFd, count: u32, words: &str) -> Command {
    let program = copy_for_every_user(home.path());
    // setpriv(1) and exec keep the number of the process.
    let ordinary = as_ordinary_user(&program);
    let command: Vec<String> = std::iter::once(ordinary.get_program())
        .chain(ordinary.get_args())
        .map(|word| word.to_str().unwrap().to_owned())
        .collect();
    let line = format!(
        "exec 3<&0 4<&2 0</dev/null 2>{}; export LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES=a:b; exec {} {words}",
        home.path().join("stderr").display(),
        command.join(" ")
    );
    std::fs::create_dir(home.path().join("state")).unwrap();
    let writable = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(home.path().join("state"), writable).unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &line])
        .env("HOME", home.path().join("state"))
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::from(first))
        .stderr(Stdio::from(second));
    shell
}

/// A server that serves on sockets which it was handed; ended when dropped.
struct Activated {
    process: Child,
    home: TempDir,
    address: SocketAddr,
}

impl Activated {
    fn start(words: &str) -> Self {
        let (listener, datagrams, port) = tcp_and_udp();
        let home = TempDir::new().unwrap();
        let process = shell(&home, listener.into(), datagrams.into(), 2, words)
            .stdout(File::create(home.path().join("stdout")).unwrap())
            .spawn()
            .unwrap();
        Self { process, home, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) }
    }

    fn said(&self) -> String {
        let said =
            |name: &str| std::fs::read_to_string(self.home.path().join(name)).unwrap_or_default();
        said("stdout") + &said("stderr")
    }

    /// A client of this program's, run to its end.
    #[track_caller]
    fn measure(&self, words: &str) -> Output {
        let port = self.address.port().to_string();
        let words = words.replace("PORT", &port);
        let ended = program(self.home.path()).args(words.split_whitespace()).output().unwrap();
        assert!(ended.status.success(), "{words}: {ended:?} {}", self.said());
        ended
    }
}

impl Drop for Activated {
    fn drop(&mut self) {
        let _gone = kill_process(Pid::from_child(&self.process), Signal::KILL);
        let _gone = self.process.wait();
    }
}

#[test]
fn serve_takes_tcp_and_udp_that_another_user_has_opened() {
    let server = Activated::start("serve --ndjson");
    for load in ["stream", "rr --tls", "connect", "rr --udp", "rr --quic", "stream --udp --down"] {
        let client = server.measure(&format!(
            "{load} 127.0.0.1 --port PORT --time 200ms --insecure --json --quiet"
        ));
        let document = Document::parse(&String::from_utf8(client.stdout).unwrap());
        assert_eq!(document.outcome(), "complete", "{load}: {}", document.message());
    }
    let (listening, address) = (server.said(), server.address);
    assert!(listening.contains(&format!("\"address\":\"{address}\"")), "{listening}");
}

#[test]
fn the_servers_of_other_tools_take_them_too() {
    let server = Activated::start("iperf3 -s");
    for test in ["-t 1", "-u -t 1", "-R -t 1"] {
        server.measure(&format!("iperf3 -c 127.0.0.1 -p PORT {test}"));
    }
    let server = Activated::start("secnetperf");
    for test in ["", "-tcp:1"] {
        server.measure(&format!("secnetperf -target:127.0.0.1 -port:PORT -up:100000 {test}"));
    }
}

/// It would go to the background by itself.
#[test]
fn netserver_takes_a_listener_and_stays_in_the_foreground() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (home, second) = (TempDir::new().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let process = shell(&home, listener.into(), second.into(), 2, "netserver")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Activated { process, home, address };
    server.measure("netperf -H 127.0.0.1 -p PORT -t TCP_RR -l 1");
    assert_eq!(server.process.try_wait().unwrap(), None);
}

#[test]
fn sockets_of_a_wrong_kind_are_refused_with_a_reason() {
    let udp = || OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    let tcp = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let connected = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        OwnedFd::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap())
    };
    let unix = || {
        let directory = TempDir::new().unwrap();
        OwnedFd::from(UnixListener::bind(directory.path().join("socket")).unwrap())
    };
    let file = || OwnedFd::from(File::open(Path::new("/dev/null")).unwrap());
    let cases: [(&str, OwnedFd, OwnedFd, u32, &str); 9] = [
        ("serve", file(), tcp(), 2, "descriptor 3 of LISTEN_FDS is no socket"),
        ("serve", tcp(), unix(), 2, "descriptor 4 of LISTEN_FDS is no socket of IPv4 or IPv6"),
        ("serve", tcp(), connected(), 2, "descriptor 4 of LISTEN_FDS is neither a listening TCP"),
        ("serve", tcp(), udp(), 3, "descriptor 5 of LISTEN_FDS is not open"),
        ("serve", udp(), udp(), 2, "LISTEN_FDS has 0 listening TCP sockets"),
        ("serve", tcp(), udp(), 2, "this server has both on one port"),
        ("iperf3 -s", tcp(), tcp(), 2, "LISTEN_FDS has 2 listening TCP sockets"),
        ("netserver", tcp(), udp(), 2, "LISTEN_FDS has a UDP socket"),
        ("secnetperf", connected(), udp(), 2, "descriptor 3 of LISTEN_FDS is neither a listening"),
    ];
    for (words, first, second, count, sentence) in cases {
        let home = TempDir::new().unwrap();
        let output = shell(&home, first, second, count, words).output().unwrap();
        let said = std::fs::read_to_string(home.path().join("stderr")).unwrap();
        let said = said + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success(), "{words}: {said}");
        assert!(said.contains(sentence), "{words}: {said}");
    }
}

/// The variables of a parent that left them in place.
#[test]
fn sockets_of_another_process_are_left_alone() {
    let home = TempDir::new().unwrap();
    let mut server = program(home.path())
        .args(["serve", "--port", "0"])
        .env("LISTEN_PID", "1")
        .env("LISTEN_FDS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).unwrap();
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert!(holds_within(LONGEST, || server.try_wait().unwrap().is_some()));
    assert!(first.starts_with("listening on"), "{first}");
}
