//! HTTP to a server that stands in the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use linerate_engine::event::Cancel;
use linerate_results::exchange::{Exchange, Request, SendError};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, Stream};

use super::client::authorization;
use super::{Http, Remote, Service, checked};
use crate::args::ServerArgs;

const SERVICE: Service = Service { variable: "NO_SUCH_VARIABLE", example: "https://h:1" };

/// Answers connections one after the other, each with one of these texts; an empty one is cut. What was asked comes out.
fn serve(answers: Vec<&'static str>) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, asked) = channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            told.send(read_request(&stream)).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (address, asked)
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    format!("{head}\n{}", String::from_utf8(body).unwrap())
}

fn remote(url: &str, authorization: Option<&str>) -> Remote {
    Remote {
        url: url.to_owned(),
        authorization: authorization.map(str::to_owned),
        authorities: Vec::new(),
        authority: "none".to_owned(),
    }
}

fn http(url: &str, authorization: Option<&str>) -> Http {
    Http::new(&remote(url, authorization), &Cancel::default()).unwrap()
}

#[test]
fn a_request_carries_body_kind_and_credential() {
    let (address, asked) = serve(vec![
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        "HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull",
        "",
    ]);
    let mut http = http(&format!("http://{address}/search"), Some("ApiKey abc"));
    let bulk = Request { method: "POST", path: "/_bulk", body: "{}\n{}\n" };
    let reply = http.send(&bulk).unwrap();
    assert_eq!((reply.status, reply.retry_after, reply.body.as_str()), (200, None, "{}"));
    let seen = asked.recv().unwrap().to_ascii_lowercase();
    for part in
        ["post /search/_bulk ", "authorization: apikey abc", "application/x-ndjson", "\n{}\n{}\n"]
    {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let reply = http.send(&Request { method: "GET", path: "/", body: "" }).unwrap();
    assert_eq!((reply.status, reply.body.as_str()), (429, "full"));
    assert_eq!(reply.retry_after.map(|time| time.as_secs()), Some(7));
    assert!(http.send(&Request { method: "GET", path: "/", body: "" }).is_err(), "cut");
}

#[test]
fn a_pause_ends_where_nothing_is_wanted() {
    let cancel = Cancel::default();
    cancel.request();
    let mut http = Http::new(&remote("http://h", None), &cancel).unwrap();
    assert!(!http.pause(std::time::Duration::from_secs(3600)));
}

#[test]
fn a_request_ends_where_nothing_is_wanted() {
    let cancel = Cancel::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut http = Http::new(&remote(&url, None), &cancel).unwrap();
    let (ended, end) = channel::<()>();
    let interrupt = cancel.clone();
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let seen = read_request(&stream);
        interrupt.request();
        // The server says nothing until the client has given up.
        let _closed = end.recv();
        (seen, listener)
    });
    let request = Request { method: "GET", path: "/silent", body: "" };
    assert_eq!(http.send(&request).unwrap_err().to_string(), "interrupted");
    drop(ended);
    let (seen, listener) = server.join().unwrap();
    assert!(seen.starts_with("GET /silent "), "{seen}");
    assert_eq!(http.send(&request).unwrap_err().to_string(), "interrupted");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nothing is asked any more");
}

#[test]
fn credentials_become_headers() {
    let header = |line: &str| authorization(line).unwrap_or_else(|why| format!("refused: {why}"));
    assert_eq!(header("Basic u:p\n"), "Basic dTpw");
    assert_eq!(header("bearer t"), "Bearer t");
    assert_eq!(header("ApiKey k=="), "ApiKey k==");
    for wrong in ["", "u:p", "Basic u", "Digest x", "Bearer ", "Bearer a\nb"] {
        assert!(header(wrong).starts_with("refused: "), "{wrong}");
    }
}

#[test]
fn addresses_are_checked() {
    let address = |url| checked(&SERVICE, "--index", url);
    assert_eq!(address("http://h:9200/").unwrap(), "http://h:9200");
    assert_eq!(address("https://h/search").unwrap(), "https://h/search");
    for credential in [
        "https://user:secret@h",
        "HTTPS://user:secret@h",
        "user:secret@h:9200",
        "http://user:sec/secret@h",
        "http:///user:secret@h",
    ] {
        let why = address(credential).unwrap_err();
        assert!(why.contains("--auth-file") && !why.contains("secret"), "{credential}: {why}");
    }
    for wrong in ["h:9200", "http://", "ftp://h", "http://h?x", "http://h o"] {
        assert!(address(wrong).unwrap_err().contains("--index"), "{wrong}");
    }
}

#[test]
fn files_that_are_missing_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let none = directory.path().join("none");
    let server = ServerArgs { ca: Some(none.clone()), auth_file: None };
    let why = Remote::new(&SERVICE, "--index", "https://h", &server).unwrap_err();
    assert!(why.contains("--ca") && why.contains("none"), "{why}");
    let why = Remote::new(&SERVICE, "--index", "http://h", &server).unwrap_err();
    assert!(why.contains("--ca needs an address of https"), "{why}");
    let server = ServerArgs { ca: None, auth_file: Some(none) };
    let why = Remote::new(&SERVICE, "--index", "http://h", &server).unwrap_err();
    assert!(why.contains("--auth-file"), "{why}");
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "no certificate").unwrap();
    let server = ServerArgs { ca: Some(empty), auth_file: None };
    let why = Remote::new(&SERVICE, "--index", "https://h", &server).unwrap_err();
    assert!(why.contains("no certificate in PEM"), "{why}");
}

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server with TLS whose certificate is for this name and from an authority; without one it is an authority's own. It
/// answers each client that takes the certificate.
fn serve_with_tls(name: &str, issuer: Option<&Issuer>) -> SocketAddr {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = match issuer {
        Some(issuer) => params.signed_by(&key, issuer).unwrap(),
        None => {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.self_signed(&key).unwrap()
        }
    };
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = Stream::new(&mut session, &mut stream);
            // A client that doesn't take the certificate goes.
            let mut head = [0; 4096];
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            let _gone = tls.read(&mut head).and_then(|_| tls.write_all(answer));
        }
    });
    address
}

/// A server without TLS, which takes no client for one of its own.
fn serve_in_clear() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _gone = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let _ended = stream.read_to_end(&mut Vec::new());
        }
    });
    address
}

/// What comes of a request to this address under the authority of a file.
fn ask_under(url: &str, ca: &Path) -> Result<String, SendError> {
    let server = ServerArgs { ca: Some(ca.to_owned()), auth_file: None };
    let remote = Remote::new(&SERVICE, "--index", url, &server).unwrap();
    let mut http = Http::new(&remote, &Cancel::default()).unwrap();
    http.send(&Request { method: "GET", path: "/", body: "" }).map(|reply| reply.body)
}

#[test]
fn a_server_is_taken_whose_certificate_comes_from_the_authority_of_ca() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, others) = (authority("ours"), authority("other"));
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, ours.pem()).unwrap();
    let url = |address: SocketAddr| format!("https://{address}");
    assert_eq!(ask_under(&url(serve_with_tls("127.0.0.1", Some(&ours))), &ca).unwrap(), "{}");
    let named = "its chain doesn't end with a certificate of --ca ";
    for (address, why) in [
        (serve_with_tls("127.0.0.1", Some(&others)), named),
        (serve_with_tls("other.example", Some(&ours)), "it is for another name than \"127.0.0.1\""),
        (serve_with_tls("127.0.0.1", None), "an authority's"),
        (serve_in_clear(), "answers without TLS"),
    ] {
        let ended = ask_under(&url(address), &ca);
        let Err(SendError::Untrusted(said)) = &ended else { panic!("{why}: {ended:?}") };
        assert!(said.contains(why) && said.contains(&url(address)), "{why}: {said}");
    }
}
