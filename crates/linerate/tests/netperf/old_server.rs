//! A netserver of before 2.6 as far as datagrams go, by the letter of 2.4.5: one of another length
//! than was asked for ends UDP_STREAM, and UDP_RR with an error.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_wire::netperf::classic::Classic;
use linerate_wire::netperf::message::{Form, Message};
use linerate_wire::netperf::test::{Results, Setup};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::server_process::{Netserver, netperf_of, value};

/// It stops by its own timer; here, when nothing has come for so long.
const SILENCE: Duration = Duration::from_millis(1500);

/// How long a client may keep it waiting.
const LONGEST: Duration = Duration::from_secs(20);

/// Serves one test; says how many datagrams came.
fn serve(listener: TcpListener, classic: Classic) -> JoinHandle<u32> {
    std::thread::spawn(move || {
        set_socket_timeout(&listener, Timeout::Recv, Some(LONGEST)).unwrap();
        let mut control = listener.accept().unwrap().0;
        control.set_read_timeout(Some(LONGEST)).unwrap();
        let mut request = [0; 256];
        control.read_exact(&mut request).unwrap();
        assert_eq!(request[..4], classic.code().to_be_bytes());
        let word = |index: usize| {
            let at = 8 + 4 * index;
            u32::from_be_bytes(request[at..at + 4].try_into().unwrap()) as usize
        };
        let wanted = if classic == Classic::UdpRr { word(6) } else { word(1) };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(SILENCE)).unwrap();
        let data_port = socket.local_addr().unwrap().port();
        let setup = classic.encode_setup(Form::Short, &Setup { data_port, ..Setup::default() });
        control.write_all(&setup.into_bytes()).unwrap();
        let (mut came, mut buffer) = (0, [0; 2000]);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            match classic {
                _ if length == wanted => came += 1,
                Classic::UdpRr => {
                    let error = Message::new(Form::Short, 0, 2).into_bytes();
                    control.write_all(&error).unwrap();
                    return came;
                }
                _ => break,
            }
            if classic == Classic::UdpRr {
                socket.send_to(&[0], from).unwrap();
            }
        }
        let results = Results {
            // The other way round, as it is told.
            bytes_received: u64::from(u32::MAX),
            receive_calls: came,
            transactions: came,
            elapsed_s: Some(1.0),
            ..Results::default()
        };
        let results = classic.encode_results(Form::Short, &results);
        control.write_all(&results.into_bytes()).unwrap();
        let _until_it_leaves = control.read_to_end(&mut Vec::new());
        came
    })
}

#[test]
fn an_old_netserver_is_sent_datagrams_of_the_size_that_it_was_told() {
    for (classic, test) in [(Classic::UdpStream, "UDP_STREAM"), (Classic::UdpRr, "UDP_RR")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = serve(listener, classic);
        let ended = netperf_of(
            "2.4.5",
            &format!(
                "-H 127.0.0.1 -p {port} -P 0 -t {test} -l 1 -- -m 1000 -R 1 \
                 -k REMOTE_RECV_CALLS,REMOTE_BYTES_RECVD,LOCAL_BYTES_RECVD"
            ),
        );
        let came = server.join().unwrap();
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}: {}", ended.stdout);
        assert!(came > 0, "{test}");
        let figure = |name: &str| value(&ended.stdout, name).parse::<u64>().unwrap();
        if classic == Classic::UdpStream {
            assert_eq!(figure("REMOTE_RECV_CALLS"), u64::from(came));
            assert_eq!(figure("REMOTE_BYTES_RECVD"), u64::from(came) * 1000);
        } else {
            assert!(figure("LOCAL_BYTES_RECVD") > 0, "{}", ended.stdout);
        }
    }
}

#[test]
fn an_old_netserver_is_not_told_of_two_sizes() {
    let server = Netserver::start("");
    let words = format!("-H 127.0.0.1 -p {} -t UDP_STREAM -l 1 -- -m 1000 -M 900", server.port);
    let ended = netperf_of("2.5", &words);
    assert_eq!(ended.exit_code, 1);
    assert!(ended.stderr.contains("900 bytes): leave out -M"), "{}", ended.stderr);
}
