//! Which tests a server takes, and when it ends by itself.

use std::io::Write;
use std::time::Duration;

use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{RateLimit, ServePlan, Server, ServerEvent};
use linerate_wire::iperf3::Code;

use super::hostile_peers::{assert_serves, control_connection, message, read, rest};
use super::load::Running;

#[test]
fn a_test_that_the_servers_own_options_forbid_is_refused() {
    let refused = |plan: ServePlan, asked: &str| {
        let server = Running::start(plan);
        let (mut stream, _) = control_connection(server.port, b'f');
        assert_eq!(read(&mut stream, 1), [9]);
        stream.write_all(&message(&format!("{{\"time\":1,{asked}}}"))).unwrap();
        match read(&mut stream, 1)[0] {
            10 => None,
            word => Some([vec![word], rest(&mut stream)].concat()),
        }
    };
    let told = |code: Code| Some([vec![0xfe, 0, 0, 0, code.number() as u8], vec![0; 4]].concat());
    let folder = tempfile::tempdir().unwrap();
    let file = Some(folder.path().join("file"));
    let into_file = || ServePlan { file: file.clone(), ..ServePlan::default() };
    assert_eq!(refused(into_file(), "\"udp\":true,\"len\":100"), told(Code::UDP_FILE));
    assert_eq!(refused(into_file(), "\"tcp\":true"), None);
    let limit = RateLimit { bps: 10_000_000, interval: Duration::from_secs(5) };
    let limited = || ServePlan { rate_limit: Some(limit), ..ServePlan::default() };
    for rate in ["bandwidth", "fqrate"] {
        let asked = |rest: &str| format!("\"tcp\":true,\"{rate}\":5000000{rest}");
        assert_eq!(refused(limited(), &asked(",\"parallel\":2")), None, "{rate}");
        let both = asked(",\"parallel\":2,\"bidirectional\":true");
        assert_eq!(refused(limited(), &both), told(Code::TOTAL_RATE), "{rate}");
        assert_eq!(refused(limited(), &asked(",\"parallel\":3")), told(Code::TOTAL_RATE), "{rate}");
    }
}

#[test]
fn a_server_whom_nobody_asks_says_once_that_it_listens() {
    let plan = ServePlan {
        port: 0,
        idle_timeout: Some(Duration::from_millis(50)),
        ..ServePlan::default()
    };
    let server = Server::bind(&plan).unwrap();
    let (cancel, mut told) = (Cancel::default(), Vec::new());
    let asked = cancel.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        asked.request();
    });
    server.serve(&|_| Box::new(()), &mut |event| told.push(event), &cancel).unwrap();
    stopper.join().unwrap();
    assert!(matches!(told[..], [ServerEvent::Listening { test_number: 1, .. }]), "{told:?}");
}

#[test]
fn a_server_of_one_test_ends_after_it() {
    let server = Running::start(ServePlan { one_off: true, ..ServePlan::default() });
    assert_serves(server.port);
    server.join().unwrap();
    let idle = Some(Duration::from_millis(200));
    let plan = ServePlan { one_off: true, idle_timeout: idle, ..ServePlan::default() };
    Running::start(plan).join().unwrap();
}
