//! TLS: what was asked of keys is what connections have, and a client believes whom it should.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::ends::{Ended, Server, program};

#[test]
fn handshakes_over_tcp_are_what_was_asked_for() {
    let server = Server::start("");
    for (kind, flags) in [
        ("full", "--flows 3"),
        ("full", ""),
        ("resumed", "--flows 3"),
        ("resumed", "--close rst"),
        ("early", "--flows 3"),
        ("early", "--request 5000 --response 300000"),
        ("early", "--request 400k --flows 2 --rate 200"),
    ] {
        let words = format!("connect --tls --handshake {kind} --count 20 {flags}");
        let document = server.measure(&words).document(0);
        assert_eq!(document.count("transactions"), 20, "{words}");
        let handshakes = &document.report("client")["handshakes"];
        for other in ["full", "resumed", "early"] {
            let expected = if other == kind { 20 } else { 0 };
            assert_eq!(handshakes[other].as_u64(), Some(expected), "{words}: {handshakes}");
        }
    }
}

#[test]
fn a_client_that_is_answered_early_has_its_ticket_at_once() {
    let server = Server::start("--cpu 0");
    let elapsed_s = |kind: &str, close: &str| {
        let words = format!("connect --tls --count 20 --cpu 0 --handshake {kind} --close {close}");
        server.measure(&words).document(0).figure("elapsed_s")
    };
    for close in ["fin", "rst"] {
        // A server that reads the end of a handshake only when it next looks around takes some milliseconds
        // for each, which no handshake takes. Other programs can lengthen one run, but not only the early one of
        // every pair.
        let pairs = (0..10).map(|_| (elapsed_s("resumed", close), elapsed_s("early", close)));
        let mut too_long = Vec::new();
        let one_in_time = pairs.into_iter().any(|(resumed_s, early_s)| {
            too_long.push((resumed_s, early_s));
            early_s < 2.0 * resumed_s + 0.02
        });
        assert!(one_in_time, "{close}, seconds of resumed and early handshakes: {too_long:?}");
    }
}

#[test]
fn bytes_are_sealed_as_asked() {
    let server = Server::start("");
    for transport in ["tls", "quic"] {
        for cipher in ["aes128", "aes256", "chacha20"] {
            let words = format!("stream --{transport} --cipher {cipher} --bytes 1M --verify");
            let document = server.measure(&words).document(0);
            for role in ["client", "server"] {
                let socket = &document.report(role)["flows"][0]["socket"];
                assert_eq!(socket["cipher"], cipher, "{words}: {socket}");
            }
        }
        for words in ["rr --count 5 --alpn h2", "connect --count 3 --alpn perf"] {
            server.measure(&format!("{words} --{transport}")).document(0);
        }
    }
}

#[test]
fn loads_that_tls_cannot_carry_are_refused_with_a_reason() {
    let server = Server::start("");
    for (words, text) in [
        ("stream --tcp --cipher aes128", "without TLS"),
        ("connect --handshake resumed", "without TLS"),
        ("connect --tls --handshake early --close server", "let the client close"),
        ("rr --udp --alpn h2", "without TLS"),
    ] {
        let ended = server.measure(&format!("{words} --time 1s"));
        assert_eq!(ended.exit_code, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{words}: {}", ended.stderr);
    }
}

/// An authority, in a directory that also gets what it signs.
struct Authority {
    home: TempDir,
    parameters: CertificateParams,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Self {
        let home = TempDir::new().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        fs::write(home.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { home, parameters, key }
    }

    /// Signs `NAME.pem` with `NAME.key` for a host, good from one year to another; another authority
    /// stands in between.
    fn sign(&self, name: &str, host: &str, years: (i32, i32)) {
        let mut between = self.parameters.clone();
        between.distinguished_name.push(DnType::CommonName, "between");
        let between_key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.parameters, &self.key);
        let between_certificate = between.signed_by(&between_key, &issuer).unwrap();
        let mut leaf = CertificateParams::new(vec![host.to_owned()]).unwrap();
        leaf.not_before = date_time_ymd(years.0, 1, 1);
        leaf.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&between, &between_key);
        let certificate = leaf.signed_by(&key, &issuer).unwrap();
        let chain = certificate.pem() + &between_certificate.pem();
        fs::write(self.home.path().join(format!("{name}.pem")), chain).unwrap();
        fs::write(self.home.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn path(&self, file: &str) -> String {
        self.home.path().join(file).display().to_string()
    }

    fn server(&self, name: &str) -> Server {
        let (certificate, key) =
            (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        Server::start(&format!("--cert {certificate} --key {key}"))
    }
}

fn ask(server: &Server, flags: &str) -> Ended {
    server.start_client_of("127.0.0.1", &format!("rr --count 1 --json {flags}")).finish()
}

#[test]
fn an_authority_checks_the_chain_the_validity_and_the_name() {
    let (authority, stranger) = (Authority::new("ours"), Authority::new("theirs"));
    authority.sign("good", "127.0.0.1", (2020, 3000));
    authority.sign("late", "127.0.0.1", (2020, 2021));
    authority.sign("soon", "127.0.0.1", (2990, 3000));
    authority.sign("other", "elsewhere.example", (2020, 3000));
    let ca = authority.path("ca.pem");

    let server = authority.server("good");
    for transport in ["--tcp", "--tls", "--quic"] {
        ask(&server, &format!("--ca {ca} {transport}")).document(0);
    }
    assert!(!server.home().join("linerate/known_servers").exists());
    // Without an authority it is a server as any other.
    server.measure("rr --tls --count 1").document(0);

    let own = Server::start("");
    for (server, ca, why) in [
        (&server, stranger.path("ca.pem"), "its chain doesn't end"),
        (&authority.server("late"), ca.clone(), "expired"),
        (&authority.server("soon"), ca.clone(), "isn't valid yet"),
        (&authority.server("other"), ca.clone(), "another name than \"127.0.0.1\""),
        (&own, ca.clone(), "under the authority"),
    ] {
        let document = ask(server, &format!("--ca {ca}")).document(4);
        assert!(document.message().contains(why), "{why}: {}", document.message());
    }
}

#[test]
fn insecure_is_noted_in_the_result() {
    let server = Server::start("");
    let ended = ask(&server, "--insecure --quiet");
    let document = ended.document(0);
    let notes = document.json()["status"]["notes"].to_string();
    assert!(notes.contains("INSECURE"), "{notes}");
    assert!(ended.stderr.contains("INSECURE"), "{}", ended.stderr);
    assert!(!server.home().join("linerate/known_servers").exists());
}

fn refused(home: &Path, words: &str, exit_code: i32, text: &str) {
    let output = program(home).args(words.split_whitespace()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit_code), "{words}: {stderr}");
    assert!(stderr.contains(text), "{words}: no {text:?} in {stderr}");
}

#[test]
fn invalid_certificates_and_keys_are_refused_at_once() {
    let authority = Authority::new("ours");
    authority.sign("one", "127.0.0.1", (2020, 3000));
    authority.sign("two", "127.0.0.1", (2020, 3000));
    let home = authority.home.path();
    fs::write(home.join("empty"), "").unwrap();
    fs::write(home.join("noise"), [0_u8, 159, 146, 150].repeat(100)).unwrap();
    fs::write(home.join("cut"), &fs::read(home.join("one.pem")).unwrap()[..200]).unwrap();
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(home.join("garbage"), garbage).unwrap();
    for (flags, code, text) in [
        ("--cert one.pem --key two.key", 1, "doesn't belong to the certificate"),
        ("--cert one.key --key one.key", 1, "has no certificate in PEM"),
        ("--cert one.pem --key one.pem", 1, "0 unencrypted private keys"),
        ("--cert empty --key one.key", 1, "no certificate"),
        ("--cert noise --key one.key", 1, "noise"),
        ("--cert cut --key one.key", 1, "cut"),
        ("--cert garbage --key one.key", 1, "can't be read"),
        ("--cert nowhere --key one.key", 1, "nowhere"),
        ("--cert one.pem", 2, "--key"),
        ("--cert one.pem --key one.key --identity d", 2, "--identity"),
    ] {
        refused(home, &format!("serve --port 0 {flags}"), code, text);
    }
    for (flags, code, text) in [
        ("--ca nowhere", 1, "nowhere"),
        ("--ca empty", 1, "no certificate"),
        ("--ca garbage", 1, "are invalid"),
        ("--ca one.pem --insecure", 2, "--insecure"),
        ("--ca one.pem --server-key 00", 2, "--server-key"),
    ] {
        let server = Server::start("");
        let words = format!("rr 127.0.0.1:{} --count 1 {flags}", server.port);
        refused(home, &words, code, text);
    }
}
