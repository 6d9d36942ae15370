//! What a client has of its own machine: ports, and a file for secrets.

use std::net::TcpListener;
use std::process::Stdio;

use super::fixture::{Server, command, wait};
use crate::quiet::free_port;

/// The ports that connections over TCP come from, and what the client says of them.
fn ports_of(words: &str, connections: usize) -> (Vec<u16>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let words = format!("-target:127.0.0.1 -port:{port} -tcp:1 -down:1000 {words}");
    let mut child = command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let ports = (0..connections).map(|_| listener.accept().unwrap().1.port()).collect();
    drop(listener);
    assert_eq!(wait(child, &words).exit_code, 111);
    (ports, std::io::read_to_string(stderr).unwrap())
}

#[test]
fn a_connection_over_tcp_comes_from_the_port_that_it_is_bound_to() {
    let (ours, other) = (free_port(), free_port());
    let (ports, told) = ports_of(&format!("-bind:127.0.0.1:{ours}"), 1);
    assert_eq!((ports, told.contains("-bind")), (vec![ours], false), "{told}");
    let two = format!("-bind:127.0.0.1:{ours},127.0.0.2:{other} -conns:2 -threads:2");
    let (mut ports, told) = ports_of(&two, 2);
    ports.sort_unstable();
    assert_eq!((ports, told.contains("-bind")), (vec![ours.min(other), ours.max(other)], false));
    // More than one can't have it.
    let (ports, told) = ports_of(&format!("-bind:127.0.0.1:{ours} -conns:2"), 2);
    assert!(!ports.contains(&ours) && told.contains("-bind has no port"), "{ports:?} {told}");
}

#[test]
fn the_secrets_of_quic_connections_go_where_the_environment_says() {
    let server = Server::start("");
    let home = tempfile::tempdir().unwrap();
    for (carriage, connections) in [("", 2), ("-tcp:1", 0)] {
        let path = home.path().join(format!("keys{carriage}"));
        let words = server.words(&format!("{carriage} -conns:2 -down:1000"));
        let output = command(&words).env("SSLKEYLOGFILE", &path).output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let secrets = text.lines().filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 "));
        assert_eq!(secrets.count(), connections, "{words}: {text}");
    }
}
