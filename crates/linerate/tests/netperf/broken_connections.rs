//! Data connections that break in mid-test: what was counted until then is no result.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::omni;
use linerate_wire::netperf::test::{Results, Setup};
use rustix::net::sockopt::set_socket_linger;

use crate::server_process::netperf;
use crate::service::PATIENCE;

/// How a data connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    Reset,
    Close,
}

/// So long data goes before.
const UNTIL_BREAK: Duration = Duration::from_millis(300);

/// Answers what comes, or takes it, or sends, and breaks.
fn break_amid(mut data: TcpStream, test: &str, how: Break) {
    data.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (began, mut bytes) = (Instant::now(), vec![0; 1 << 16]);
    while began.elapsed() < UNTIL_BREAK {
        if test == "TCP_MAERTS" {
            data.write_all(&bytes).unwrap();
        } else if data.read(&mut bytes).is_ok() && test == "TCP_RR" {
            data.write_all(&bytes[..1]).unwrap();
        }
    }
    if how == Break::Reset {
        set_socket_linger(&data, Some(Duration::ZERO)).unwrap();
    }
}

/// A server of one test whose data connection breaks, and which then sends its results as if nothing had been.
fn serve(test: &'static str, how: Break) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        control.set_read_timeout(Some(PATIENCE)).unwrap();
        control.read_exact(&mut vec![0; Form::Long.message_bytes()]).unwrap();
        let data = TcpListener::bind("127.0.0.1:0").unwrap();
        let setup = Setup { data_port: data.local_addr().unwrap().port(), ..Setup::default() };
        control.write_all(&omni::encode_setup(Form::Long, &setup).into_bytes()).unwrap();
        break_amid(data.accept().unwrap().0, test, how);
        let results =
            Results { bytes_received: 1_000_000, elapsed_s: Some(0.3), ..Results::default() };
        control.write_all(&omni::encode_results(Form::Long, &results).into_bytes()).unwrap();
        // Until the client has left.
        drop(control.read(&mut [0]));
    });
    (port, thread)
}

/// Tests against a server whose data connection breaks; the figure that is told beside the failure ends with `counted`.
fn assert_void(test: &'static str, how: Break, counted: &str, length: &str) {
    let (port, server) = serve(test, how);
    let ended = netperf(&format!("-H 127.0.0.1 -p {port} -P 0 -t {test} {length}"));
    server.join().unwrap();
    let told = format!("{test} {how:?} {length}: {}{}", ended.stdout, ended.stderr);
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (1, ""), "{told}");
    let sentence = ended.stderr.lines().last().unwrap_or_default();
    assert!(sentence.contains("the data connection broke ("), "{told}");
    assert!(sentence.contains(" s, when ") && sentence.contains(counted), "{told}");
}

#[test]
fn a_data_connection_that_breaks_leaves_no_result() {
    std::thread::scope(|scope| {
        for (test, how, counted) in [
            ("TCP_STREAM", Break::Reset, "bytes were sent"),
            ("TCP_STREAM", Break::Close, "bytes were sent"),
            ("TCP_SENDFILE", Break::Reset, "bytes were sent"),
            ("TCP_MAERTS", Break::Reset, "received"),
            ("TCP_RR", Break::Reset, "transactions were done"),
            ("TCP_RR", Break::Close, "transactions were done"),
        ] {
            scope.spawn(move || {
                for length in ["-l 20", "-l -2000000000", "-l 20 -i 3,3 -I 99,5"] {
                    assert_void(test, how, counted, length);
                }
            });
        }
    });
}
