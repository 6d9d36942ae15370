//! Peers of media streams that want an end to fail: floods of START, and datagrams of any bytes.

use std::io::Read as _;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_measure::random::next_word;
use serde_json::Value;

use crate::fixture::{Folder, LIMIT, PORT, await_datagrams, own_address, start};
use crate::peer::data;

/// 50 frames of 5,000 bytes.
const STREAM: &str = "-protocol:udp -bitspersecond:2000000 -framerate:50 -streamlength:1";

fn start_server(address: Ipv4Addr, words: &str, folder: &Folder) -> crate::fixture::Running {
    let server = start(&format!("-listen:{address} {words}"), folder);
    await_datagrams((address, PORT).into());
    server
}

fn count(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {document}"))
}

/// Sockets of one address, which don't block.
fn sockets(address: Ipv4Addr, count: usize) -> Vec<UdpSocket> {
    let bind = |_| {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    (0..count).map(bind).collect()
}

/// Runs a client of another address that asks for a stream; it must have come.
fn assert_streams(server: Ipv4Addr, folder: &Folder) {
    let words =
        format!("-target:{server} -bind:{} {STREAM} -bufferdepth:3 -iterations:1", own_address());
    let ended = start(&words, folder).wait();
    assert_eq!((ended.exit_code, ended.totals()), (0, [1, 0, 0]), "{ended:?}");
}

#[test]
fn a_flood_of_starts_from_many_ports_gets_no_more_than_its_address_may_have() {
    let (address, folder) = (own_address(), Folder::new());
    // Ten streams, and three to one address.
    let words = format!("{STREAM} --max-rate:20000000 --max-address-rate:6000000 --json");
    let server = start_server(address, &words, &folder);
    let goes_on = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let crowd = sockets(own_address(), 500);
            while goes_on.load(Ordering::Relaxed) {
                for one in &crowd {
                    // The queue may be full.
                    let _lost = one.send_to(b"START", (address, PORT));
                }
                thread::sleep(Duration::from_millis(50));
            }
        });
        assert_streams(address, &folder);
        goes_on.store(false, Ordering::Relaxed);
    });
    let ended = server.interrupt();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(count(&document, "/refused") > 500, "{document}");
    // Some streams are over before the time is, and those that run may be ahead by a frame.
    let most = count(&document, "/elapsed_us") * 6 + 3 * 2_000_000 + 2_000_000;
    assert!(count(&document, "/bits") <= most, "{document}");
}

#[test]
fn datagrams_of_any_bytes_change_nothing_at_a_server() {
    let (address, folder) = (own_address(), Folder::new());
    let words = format!("{STREAM} -serverexitlimit:1 --json");
    let server = start_server(address, &words, &folder);
    let (stranger, mut state) = (UdpSocket::bind((own_address(), 0)).unwrap(), 1);
    for number in 0..5000 {
        let mut bytes = match number % 3 {
            0 => b"START".repeat(2),
            1 => b"start".to_vec(),
            _ => (0..next_word(&mut state) % 1500).map(|_| next_word(&mut state) as u8).collect(),
        };
        bytes.truncate((next_word(&mut state) % 1500) as usize);
        if bytes != b"START" {
            let _lost = stranger.send_to(&bytes, (address, PORT));
        }
        if number % 100 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    assert_streams(address, &folder);
    let ended = server.wait();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.exit_code, count(&document, "/completed")), (0, 1), "{document}");
    let errors = count(&document, "/frames/errors");
    assert!((100..=5000).contains(&errors), "{document}");
}

/// A datagram of a frame, whose numbers may be anything, and now and then its bytes.
fn strange_datagram(state: &mut u64) -> Vec<u8> {
    let numbers: [i64; 8] = [0, 1, -1, i64::MIN, i64::MAX, 10_000_000, 5, 11];
    let mut number = || numbers[(next_word(state) % 8) as usize];
    let header = [number(), number(), number()].map(i64::to_le_bytes).concat();
    let mut bytes = [&[0, 0][..], &header, &data(0, 974)].concat();
    match next_word(state) % 6 {
        0 => bytes.truncate((next_word(state) % 1000) as usize),
        1 => bytes[0] = next_word(state) as u8,
        2 => bytes[1] = 0x10,
        3 => bytes[(next_word(state) % 1000) as usize] ^= 1 << (next_word(state) % 8),
        _ => {}
    }
    bytes
}

#[test]
fn a_server_that_sends_any_datagrams_gives_a_client_ten_frames_of_some_kind() {
    let (address, folder) = (own_address(), Folder::new());
    let server = UdpSocket::bind((address, PORT)).unwrap();
    let words = format!(
        "-target:{address} -protocol:udp -bitspersecond:80000 -framerate:10 -streamlength:1 \
         -iterations:1 -jitterfilename:j.csv --json"
    );
    let client = start(&words, &folder);
    let (_, peer) = server.recv_from(&mut [0; 10]).unwrap();
    let mut state = 3;
    for number in 0..5000 {
        // The client may have gone.
        let _gone = server.send_to(&strange_datagram(&mut state), peer);
        if number % 5 == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let ended = client.wait();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    let frames = |kind: &str| count(&document, &format!("/frames/{kind}"));
    let all = frames("completed") + frames("dropped") + frames("repeated");
    assert_eq!((ended.exit_code, all), (1, 10), "{document}");
    assert!(frames("errors") > 0, "{document}");
    for row in folder.rows("j.csv") {
        assert_eq!(row.len(), 7, "{row:?}");
        assert!(row.iter().all(|cell| cell.parse::<f64>().is_ok_and(f64::is_finite)), "{row:?}");
    }
}

#[test]
fn a_stopped_output_loses_lines_of_streams_and_no_counts() {
    const STREAMS: usize = 1500;
    let address = own_address();
    let stream = "-protocol:udp -bitspersecond:800 -framerate:1 -streamlength:1";
    let words =
        format!("-listen:{address} {stream} -serverexitlimit:{STREAMS} -consoleverbosity:5");
    let mut server = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("ctstraffic")
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    await_datagrams((address, PORT).into());
    // Nobody reads what the server prints: two lines for each stream, of which a pipe holds some hundreds.
    let (mut crowd, began) = (sockets(own_address(), STREAMS), Instant::now());
    while !crowd.is_empty() {
        assert!(began.elapsed() < LIMIT, "{} have no stream", crowd.len());
        for (number, one) in crowd.iter().enumerate() {
            let _lost = one.send_to(b"START", (address, PORT));
            if number % 100 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        thread::sleep(Duration::from_millis(20));
        crowd.retain(|one| one.recv(&mut [0; 2000]).is_err());
    }
    let mut told = String::new();
    server.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let totals = format!("SuccessfulConnections [{STREAMS}]   NetworkErrors [0]");
    assert!(told.contains(&totals), "{}", told.lines().last().unwrap_or_default());
}
