//! Another program answers on the server's port, or none does: the client reports which.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use linerate_wire::visible::is_visible;
use rustix::net::sockopt::set_socket_linger;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use serde_json::json;
use tempfile::TempDir;

use crate::conversation::Conversation;
use crate::document::Document;
use crate::ends::{Client, Server, holds_within};
use crate::front::relay;

/// So soon at the latest must the user know.
const SOON: Duration = Duration::from_secs(7);

/// What a client says that meets this server, which answers each connection in its way.
fn met(answer: impl Fn(TcpStream) + Send + 'static) -> Document {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(answer));
    let home = TempDir::new().unwrap();
    let ended = Client::start(home.path(), &format!("stream {host} --json --quiet")).finish();
    assert!(ended.took < SOON, "{:?}", ended.took);
    let document = ended.document(1);
    assert!(document.message().contains(&host.to_string()), "{}", document.message());
    assert!(ended.stderr.contains(document.message()), "{}", ended.stderr);
    document
}

#[track_caller]
fn assert_says(document: &Document, words: &[&str]) {
    for word in words {
        assert!(document.message().contains(word), "no {word:?} in: {}", document.message());
    }
}

/// Reads what the client says first.
fn hear(mut socket: &TcpStream) {
    let mut heard = [0; 4096];
    let _gone = socket.read(&mut heard);
}

#[test]
fn another_protocol_is_quoted() {
    let ssh = met(|mut socket| {
        let _gone = socket.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        hear(&socket);
    });
    assert_says(&ssh, &["isn't a linerate server", "SSH-2.0-OpenSSH_9.2", "check the port"]);
    let web = met(|mut socket| {
        hear(&socket);
        let _gone = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    });
    assert_says(&web, &["isn't a linerate server", "HTTP/1.1 400 Bad Request", "check the port"]);
    let noise = met(|mut socket| {
        let _gone = socket.write_all(b"\x1b[2J\x07\xff\x00\r\n\x7f");
        hear(&socket);
    });
    assert_says(&noise, &["isn't a linerate server"]);
    assert!(!noise.message().contains(char::is_control), "{:?}", noise.message());
}

#[test]
fn text_of_a_client_is_escaped_in_the_servers_log() {
    for words in ["", "--ndjson"] {
        let home = TempDir::new().unwrap();
        let server =
            Client::start(home.path(), &format!("serve --port 0 --bind 127.0.0.1 {words}"));
        let log = || server.stdout_so_far();
        let port_of = |log: String| {
            let behind = log.split_once("127.0.0.1:")?.1.to_owned();
            behind.split_once(|letter: char| !letter.is_ascii_digit())?.0.parse::<u16>().ok()
        };
        assert!(holds_within(SOON, || port_of(log()).is_some()), "{}", log());
        let port = port_of(log()).unwrap();
        // Each of them is told back by an error's text.
        let mut asking = Conversation::connect(port);
        asking.greet();
        let plan = r#"{"kind":{"name":"\u202e\u009bx"}}"#;
        asking.say(&json!({ "kind": "request", "plan": plan }));
        assert_eq!(asking.hear()["kind"], "refused");
        let mut talking = Conversation::connect(port);
        talking.greet();
        talking.say(&json!({ "kind": "\u{202e}\u{9b}y\n" }));
        assert!(holds_within(SOON, || log().contains("..x")), "{}", log());
        let shown = log();
        assert!(shown.chars().all(|c| c == '\n' || is_visible(c)), "{shown:?}");
    }
}

#[test]
fn a_silent_server_and_an_early_close_are_named() {
    let silent = met(|socket| {
        thread::spawn(move || {
            thread::sleep(SOON + SOON);
            drop(socket);
        });
    });
    assert_says(&silent, &["accepts connections but sends nothing"]);
    let closed = met(drop);
    assert_says(&closed, &["isn't a linerate server", "sent nothing"]);
    let reset = met(|socket| {
        hear(&socket);
        set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
    });
    assert_says(&reset, &["isn't a linerate server", "sent nothing"]);
}

#[test]
fn a_connection_that_is_cut_off_before_the_greeting_is_made_again() {
    let server = Server::start("");
    let (listener, server_port) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.port);
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (count, client) in listener.incoming().map_while(Result::ok).enumerate() {
            match count {
                0 => drop(client),
                // Reset, as what was said is unread.
                1..4 => thread::sleep(Duration::from_millis(10)),
                _ => relay(client, server_port),
            }
        }
    });
    let words = format!("rr 127.0.0.1:{port} --count 3 --server-key {}", server.fingerprint);
    let home = TempDir::new().unwrap();
    let ended = Client::start(home.path(), &format!("{words} --json --quiet")).finish();
    assert_eq!(ended.document(0).figure("transactions"), 3.0);
    assert!(ended.took >= Duration::from_millis(50 + 100 + 200 + 400), "{:?}", ended.took);
}

/// A TLS server with these protocols (ALPN), which greets and then waits.
fn met_tls(protocols: &[&[u8]]) -> Document {
    let identity = linerate_engine::make_identity().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.private_key_der));
    let chain = vec![CertificateDer::from(identity.certificate_der)];
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let config = Arc::new(config);
    met(move |mut socket| {
        let mut session = ServerConnection::new(Arc::clone(&config)).unwrap();
        while session.complete_io(&mut socket).is_ok() {}
    })
}

#[test]
fn another_tls_server_is_recognised() {
    assert_says(&met_tls(&[]), &["speaks TLS", "isn't a linerate server", "check the port"]);
    assert_says(&met_tls(&[b"http/1.1"]), &["isn't a linerate server", "it speaks TLS"]);
}

#[test]
fn closed_port_means_the_server_is_unreachable() {
    let home = TempDir::new().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hosts = [free.to_string(), format!("[::1]:{}", free.port()), "no-such.invalid".to_owned()];
    for host in hosts {
        let ended = Client::start(home.path(), &format!("rr {host} --json --quiet")).finish();
        let document = ended.document(3);
        assert_eq!(document.outcome(), "failed");
        let name = if host.contains("invalid") { "unknown" } else { "nothing listens there" };
        assert_says(&document, &[name]);
        assert!(ended.took < Duration::from_secs(30), "{:?}", ended.took);
    }
}

#[test]
fn a_server_that_speaks_no_common_version_says_which_it_does() {
    let server = Server::start("");
    let mut conversation = Conversation::connect(server.port);
    conversation.say(&json!({ "kind": "hello", "versions": [999], "software": "by hand" }));
    let answer = conversation.hear();
    assert_eq!(
        (answer["kind"].as_str(), answer["cause"].as_str()),
        (Some("refused"), Some("version"))
    );
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("999") && text.contains('1'), "{text}");
    server.await_record("refused");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = Server::start("");
    let words = format!("serve --port {}", server.port);
    let ended = Client::start(server.home(), &words).finish();
    assert_eq!(ended.exit_code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("port {} is taken", server.port)), "{}", ended.stderr);
    server.measure("rr --udp --count 3").document(0);
}
