//! Runs of the original, replayed against each of our ends: what the other end sent then, segment by segment, with the
//! first bytes of each; what this end is to send; and what the original printed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use crate::fixture::{Ended, Folder, PORT, own_address, run_client, start_server};
use crate::peer::{data, reset};

/// The longest wait for the other end.
const WAIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

use Side::{Client as C, Server as S};

/// A segment: who sent it, how long it was, and how it begins in hexadecimal.
type Segment = (Side, usize, &'static str);

/// One connection of a run.
struct Recorded {
    /// The id that the original's server gave it.
    id: &'static str,
    /// The segments with data, in their order.
    segments: &'static [Segment],
    /// Whether the client reset it.
    is_rude: bool,
}

/// `-pattern:pushpull -pushbytes:1000 -pullbytes:3000 -buffer:700 -transfer:10001`.
const TURNS: Recorded = Recorded {
    id: "6266c08e-c0e0-419c-87a5-ed53641035c2",
    segments: &[
        (C, 700, "0000010002000300"),
        (C, 300, "5e015f0160016101"),
        (S, 700, "0000010002000300"),
        (S, 2300, "5e015f0160016101"),
        (C, 700, "f401f501f601f701"),
        (C, 300, "5203530354035503"),
        (S, 700, "dc05dd05de05df05"),
        (S, 2300, "3a073b073c073d07"),
        (C, 700, "e803e903ea03eb03"),
        (C, 300, "4605470548054905"),
        (S, 700, "b80bb90bba0bbb0b"),
        // The end of the last turn, and DONE with it.
        (S, 301, "160d170d180d190d"),
    ],
    is_rude: false,
};

/// `-transfer:100000 -shutdown:rude`, the first of two connections.
const RUDE: Recorded = Recorded {
    id: "8d599088-8abe-4261-ba90-cae19ad382a1",
    segments: &[
        (C, 32_768, "0000010002000300"),
        (C, 32_768, "0040014002400340"),
        (C, 34_464, "0000010002000300"),
    ],
    is_rude: true,
};

/// `-transfer:20000 -buffer:1000 -burstcount:4 -burstdelay:200`.
const BURSTS: Recorded = Recorded {
    id: "ffcb3be6-f542-4922-9bb8-351f263f19f0",
    segments: &[
        (C, 1000, "0000010002000300"),
        (C, 1000, "f401f501f601f701"),
        (C, 1000, "e803e903ea03eb03"),
        (C, 1000, "dc05dd05de05df05"),
        (C, 1000, "d007d107d207d307"),
        (C, 1000, "c409c509c609c709"),
        (C, 1000, "b80bb90bba0bbb0b"),
        (C, 1000, "ac0dad0dae0daf0d"),
        (C, 1000, "a00fa10fa20fa30f"),
        (C, 1000, "9411951196119711"),
        (C, 1000, "881389138a138b13"),
        (C, 1000, "7c157d157e157f15"),
        (C, 1000, "7017711772177317"),
        (C, 1000, "6419651966196719"),
        (C, 1000, "581b591b5a1b5b1b"),
        (C, 1000, "4c1d4d1d4e1d4f1d"),
        (C, 1000, "401f411f421f431f"),
        (C, 1000, "3421352136213721"),
        (C, 1000, "282329232a232b23"),
        (C, 1000, "1c251d251e251f25"),
    ],
    is_rude: false,
};

fn hexadecimal(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// The bytes of each segment: its beginning as it was captured, and the data that goes on from there.
fn bytes_of(segments: &[Segment]) -> Vec<(Side, Vec<u8>)> {
    let mut offsets = [0, 0];
    let one = |(from, length, first): &Segment| {
        let offset = &mut offsets[usize::from(*from == S)];
        let bytes = data(*offset, *length);
        assert!(bytes.starts_with(&hexadecimal(first)), "{first} at {offset}");
        *offset += *length as u64;
        (*from, bytes)
    };
    segments.iter().map(one).collect()
}

fn ready(peer: &TcpStream) {
    peer.set_read_timeout(Some(WAIT)).unwrap();
    peer.set_nodelay(true).unwrap();
}

fn expect(peer: &mut TcpStream, bytes: &[u8]) {
    let mut came = vec![0; bytes.len()];
    peer.read_exact(&mut came).unwrap();
    assert!(came == bytes, "other bytes than the original's");
}

/// What the original's client did, to our server. The id.
fn play_client(mut peer: TcpStream, recorded: &Recorded) -> String {
    ready(&peer);
    let mut id = [0; 37];
    peer.read_exact(&mut id).unwrap();
    assert_eq!(id[36], 0);
    for (from, bytes) in bytes_of(recorded.segments) {
        match from {
            C => peer.write_all(&bytes).unwrap(),
            S => expect(&mut peer, &bytes),
        }
    }
    expect(&mut peer, b"DONE");
    if recorded.is_rude {
        reset(peer);
    } else {
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    }
    String::from_utf8(id[..36].to_vec()).unwrap()
}

/// What the original's server did, to our client. When each of the client's segments had come.
fn play_server(mut peer: TcpStream, recorded: &Recorded) -> Vec<Instant> {
    ready(&peer);
    peer.write_all(&[recorded.id.as_bytes(), &[0]].concat()).unwrap();
    let mut came = Vec::new();
    for (from, bytes) in bytes_of(recorded.segments) {
        match from {
            C => {
                expect(&mut peer, &bytes);
                came.push(Instant::now());
            }
            S => peer.write_all(&bytes).unwrap(),
        }
    }
    peer.write_all(b"DONE").unwrap();
    let ended = peer.read(&mut [0]);
    match recorded.is_rude {
        true => assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset),
        false => assert_eq!(ended.unwrap(), 0),
    }
    came
}

/// The last line with this text, with `#` for figures that hang on the clock.
fn masked(ended: &Ended, text: &str) -> String {
    let line = ended.stdout.lines().rfind(|line| line.contains(text)).unwrap();
    let (mut masked, mut label) = (String::new(), "");
    for part in line.split_inclusive('[') {
        let Some((value, rest)) = part.split_once(']') else {
            masked.push_str(part);
            continue;
        };
        let is_timed = ["SendBps", "RecvBps", "Time", "BitsPerSecond"]
            .iter()
            .any(|name| label.trim_end_matches('[').trim_end().ends_with(name));
        masked.push_str(if is_timed { "#" } else { value });
        masked.push(']');
        masked.push_str(rest);
        label = rest;
    }
    masked
}

/// A run of these options with both of our ends in turn: what the client and the server print.
fn replay(
    recorded: &'static Recorded,
    words: &str,
    client_words: &str,
) -> (Ended, Ended, Vec<Instant>) {
    let (address, folder) = (own_address(), Folder::new());
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let serving = thread::spawn(move || play_server(listener.accept().unwrap().0, recorded));
    let client = format!("{words} {client_words} -connections:1 -iterations:1");
    let client = run_client(address, &client, &folder);
    let came = serving.join().unwrap();
    let (address, folder) = (own_address(), Folder::new());
    let server = start_server(address, &format!("{words} -serverexitlimit:1"), &folder);
    let id = play_client(TcpStream::connect((address, PORT)).unwrap(), recorded);
    let server = server.wait();
    for (ended, id) in [(&client, recorded.id), (&server, &*id)] {
        assert_eq!((ended.exit_code, ended.totals()), (0, [1, 0, 0]), "{ended:?}");
        assert!(ended.stdout.contains(&format!("[{id}]: SendBytes[")), "{ended:?}");
    }
    (client, server, came)
}

fn told(ended: &Ended, received: u64, sent: u64) {
    let text =
        format!("  Total Bytes Recv : {received}\n  Total Bytes Sent : {sent}\n  Total Time : ");
    assert!(ended.stdout.contains(&text), "{ended:?}");
}

#[test]
fn turns_are_the_originals_segment_by_segment() {
    let words = "-pattern:pushpull -pushbytes:1000 -pullbytes:3000 -buffer:700 -transfer:10001";
    let (client, server, _) = replay(&TURNS, words, "");
    told(&client, 7042, 3000);
    told(&server, 3000, 7042);
    let line = masked(&client, "TCP connection succeeded");
    let expected = "SendBytes[3000]  SendBps[#]  RecvBytes[7001]  RecvBps[#]  Time[#]";
    assert!(line.ends_with(expected), "{line}");
}

#[test]
fn a_reset_after_done_is_a_success_at_both_ends() {
    let (client, server, _) = replay(&RUDE, "-transfer:100000", "-shutdown:rude");
    told(&client, 41, 100_000);
    told(&server, 100_000, 41);
}

#[test]
fn bursts_pause_where_the_originals_do() {
    let words = "-transfer:20000 -buffer:1000 -burstcount:4 -burstdelay:200";
    let begun = Instant::now();
    let (client, server, came) = replay(&BURSTS, words, "");
    told(&client, 41, 20_000);
    told(&server, 20_000, 41);
    // The fourth send waits, and then every fourth one after it. A busy machine only makes segments later.
    for (pauses, late) in (1..).zip([3, 7, 11, 15, 19]) {
        let after = came[late] - begun;
        assert!(after >= pauses * Duration::from_millis(190), "{after:?} before segment {late}");
    }
}

/// `-transfer:3000001`, with two connections twice: the figures that the original printed.
#[test]
fn totals_of_four_connections_are_the_originals() {
    for (pattern, client_told, server_told) in
        [("push", (164, 12_000_004), (12_000_004, 164)), ("pull", (12_000_168, 0), (0, 12_000_168))]
    {
        let (address, folder) = (own_address(), Folder::new());
        let words = format!("-pattern:{pattern} -transfer:3000001");
        let server = start_server(address, &format!("{words} -serverexitlimit:4"), &folder);
        let client = run_client(address, &format!("{words} -connections:2 -iterations:2"), &folder);
        let server = server.wait();
        for (ended, (received, sent)) in [(&client, client_told), (&server, server_told)] {
            assert_eq!((ended.exit_code, ended.totals()), (0, [4, 0, 0]), "{ended:?}");
            told(ended, received, sent);
        }
    }
}

/// The client sends 100,000 bytes and takes the first four of a server that sends, too, for DONE.
#[test]
fn a_client_that_sends_to_a_sending_server_fails_as_the_original() {
    let (address, folder) = (own_address(), Folder::new());
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let serving = thread::spawn(move || {
        let mut peer = listener.accept().unwrap().0;
        ready(&peer);
        peer.write_all(b"cf2b3649-2a89-4b08-ab5b-389d6e06c31c\0").unwrap();
        peer.write_all(&data(0, 65_536)).unwrap();
        let mut came = Vec::new();
        let ended = peer.read_to_end(&mut came);
        assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    });
    let words =
        "-transfer:100000 -pattern:push -connections:1 -iterations:1 -connectionfilename:c.csv";
    let client = run_client(address, words, &folder);
    serving.join().unwrap();
    assert_eq!((client.exit_code, client.totals()), (1, [0, 0, 1]), "{client:?}");
    told(&client, 41, 100_000);
    let row = &folder.rows("c.csv")[0];
    let expected =
        ["100000", "0", "ErrorNotAllDataTransferred", "cf2b3649-2a89-4b08-ab5b-389d6e06c31c"];
    assert_eq!([&*row[3], &*row[5], &*row[8], &*row[9]], expected);
}

/// The client has half of what the server waits for, and leaves when its time is over.
#[test]
fn a_client_with_less_to_send_waits_and_its_server_misses_the_rest() {
    let (address, folder) = (own_address(), Folder::new());
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let serving = thread::spawn(move || {
        let mut peer = listener.accept().unwrap().0;
        ready(&peer);
        peer.write_all(b"c4bf0d25-c305-49cc-916e-a2ef321a37cc\0").unwrap();
        expect(&mut peer, &data(0, 100_000));
        assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    });
    let words = "-transfer:100000 -connections:1 -iterations:1 -timelimit:1000";
    let client = run_client(address, words, &folder);
    serving.join().unwrap();
    // The original's exit code is 0.
    assert_eq!((client.exit_code, client.totals()), (254, [0, 0, 0]), "{client:?}");
    told(&client, 37, 100_000);
    let words = "-transfer:200000 -serverexitlimit:1 -connectionfilename:s.csv";
    let server = start_server(address, words, &folder);
    let mut peer = TcpStream::connect((address, PORT)).unwrap();
    ready(&peer);
    peer.read_exact(&mut [0; 37]).unwrap();
    peer.write_all(&data(0, 100_000)).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let ended = peer.read(&mut [0]);
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let server = server.wait();
    assert_eq!((server.exit_code, server.totals()), (1, [0, 0, 1]), "{server:?}");
    let row = &folder.rows("s.csv")[0];
    assert_eq!([&*row[3], &*row[5], &*row[8]], ["0", "100000", "ErrorNotAllDataTransferred"]);
}

/// `-bitspersecond:2000000 -framerate:25 -streamlength:5`: frames of seven datagrams of 1,400 bytes and one of 200.
const STREAM: &str = "-protocol:udp -bitspersecond:2000000 -framerate:25 -streamlength:5";
const SPLIT: [usize; 8] = [1400, 1400, 1400, 1400, 1400, 1400, 1400, 200];
/// The datagram with the id, and the headers of the first frame.
const STREAM_ID: &str =
    "001064376230306333362d626230302d346635632d386262612d31356437396165313264313200";
const FIRST_FRAME: [&str; 8] = [
    "00000100000000000000613d6dc7010000008096980000000000",
    "00000100000000000000c4466dc7010000008096980000000000",
    "000001000000000000002d4a6dc7010000008096980000000000",
    "00000100000000000000dc4e6dc7010000008096980000000000",
    "00000100000000000000e0526dc7010000008096980000000000",
    "00000100000000000000a0586dc7010000008096980000000000",
    "00000100000000000000e05d6dc7010000008096980000000000",
    "000001000000000000008d616dc7010000008096980000000000",
];

/// A datagram as the original sent it: one of the first frame's headers, with the number and the time of this frame.
fn datagram(frame: u64, part: usize) -> Vec<u8> {
    let mut bytes = hexadecimal(FIRST_FRAME[part]);
    bytes[2..10].copy_from_slice(&frame.to_le_bytes());
    let ticks = u64::from_le_bytes(bytes[10..18].try_into().unwrap()) + (frame - 1) * 400_000;
    bytes[10..18].copy_from_slice(&ticks.to_le_bytes());
    bytes.extend(data(0, SPLIT[part] - 26));
    bytes
}

/// Waits for START, sends the id, then these frames, 40 ms apart.
fn play_stream(server: &UdpSocket, frames: u64, change: impl Fn(u64, usize, Vec<u8>) -> Vec<u8>) {
    server.set_read_timeout(Some(WAIT)).unwrap();
    let mut start = [0; 64];
    let (length, client) = server.recv_from(&mut start).unwrap();
    assert_eq!(&start[..length], b"START");
    server.send_to(&hexadecimal(STREAM_ID), client).unwrap();
    let began = Instant::now();
    for frame in 1..=frames {
        let due = Duration::from_millis(40 * frame);
        thread::sleep(due.saturating_sub(began.elapsed()));
        for part in 0..SPLIT.len() {
            // A client that has failed is gone.
            let _gone = server.send_to(&change(frame, part, datagram(frame, part)), client);
        }
    }
}

#[test]
fn a_stream_of_the_originals_is_received_as_the_original_does() {
    let (address, folder) = (own_address(), Folder::new());
    let server = UdpSocket::bind((address, PORT)).unwrap();
    let serving = thread::spawn(move || play_stream(&server, 125, |_, _, bytes| bytes));
    let words = format!("{STREAM} -iterations:1 -jitterfilename:j.csv -connectionfilename:c.csv");
    let client = run_client(address, &words, &folder);
    serving.join().unwrap();
    assert_eq!((client.exit_code, client.totals()), (0, [1, 0, 0]), "{client:?}");
    let summary = "  Total Bytes Recv : 1250000\n\
                   \x20 Total Successful Frames : 125 (100.000000)\n\
                   \x20 Total Dropped Frames : 0 (0.000000)\n\
                   \x20 Total Duplicate Frames : 0 (0.000000)\n\
                   \x20 Total Error Frames : 0 (0.000000)\n";
    assert!(client.stdout.contains(summary), "{client:?}");
    let line = masked(&client, "UDP connection succeeded");
    let expected = "[d7b00c36-bb00-4f5c-8bba-15d79ae12d12] : BitsPerSecond [#]  Completed [125]  Dropped [0]  \
                    Repeated [0]  Errors [0]";
    assert!(line.ends_with(expected), "{line}");
    // The sender's counter is that of the last datagram of a frame; the original writes it 65,536 times as large.
    let rows = folder.rows("j.csv");
    assert_eq!(rows.len(), 125);
    for (frame, row) in (1_u64..).zip(&rows) {
        let ticks = 0x0001_c76d_618d + (frame - 1) * 400_000;
        assert_eq!((&*row[1], &*row[2]), (&*ticks.to_string(), "10000000"), "{row:?}");
    }
}

#[test]
fn a_stream_has_the_originals_datagrams() {
    let (address, folder) = (own_address(), Folder::new());
    let words = STREAM.replace("streamlength:5", "streamlength:1");
    let words = format!("-listen:{address} {words} -serverexitlimit:1");
    let server = crate::fixture::start(&words, &folder);
    let client = UdpSocket::bind((address, 0)).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(540))).unwrap();
    client.connect(SocketAddr::from((address, PORT))).unwrap();
    let mut came = [0; 2000];
    let began = Instant::now();
    // START is sent again until there is an answer.
    let length = loop {
        assert!(began.elapsed() < WAIT, "no answer");
        let _not_yet = client.send(b"START");
        if let Ok(length) = client.recv(&mut came) {
            break length;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let id = hexadecimal(STREAM_ID);
    assert_eq!((length, &came[..2], came[38]), (id.len(), &id[..2], id[38]));
    client.set_read_timeout(Some(WAIT)).unwrap();
    for frame in 1..=25 {
        for part in 0..SPLIT.len() {
            let length = client.recv(&mut came).unwrap();
            let expected = datagram(frame, part);
            assert_eq!(length, expected.len());
            // All but the counter, which is this machine's.
            assert_eq!(came[..10], expected[..10], "frame {frame} part {part}");
            assert_eq!(came[18..length], expected[18..], "frame {frame} part {part}");
        }
    }
    assert_eq!(server.wait().exit_code, 0);
}

/// One datagram of the sixth frame was cut to 20 bytes on its way.
#[test]
fn a_datagram_that_was_cut_fails_a_stream_at_its_end_and_a_strict_one_at_once() {
    for strict in [true, false] {
        let (address, folder) = (own_address(), Folder::new());
        let server = UdpSocket::bind((address, PORT)).unwrap();
        let cut = |frame: u64, part: usize, mut bytes: Vec<u8>| {
            bytes.truncate(if (frame, part) == (6, 3) { 20 } else { bytes.len() });
            bytes
        };
        let serving = thread::spawn(move || play_stream(&server, 25, cut));
        let words = STREAM.replace("streamlength:5", "streamlength:1");
        let strictly = if strict { "--strict" } else { "" };
        let words = format!("{words} {strictly} -iterations:1 -connectionfilename:c.csv");
        let client = run_client(address, &words, &folder);
        serving.join().unwrap();
        let row = &folder.rows("c.csv")[0];
        if strict {
            assert_eq!((client.exit_code, client.totals()), (1, [0, 0, 1]), "{client:?}");
            let expected = ["0", "0", "0", "0", "ErrorNotAllDataTransferred"];
            assert_eq!([&*row[4], &*row[5], &*row[6], &*row[7], &*row[8]], expected);
        } else {
            assert_eq!((client.exit_code, client.totals()), (1, [0, 0, 1]), "{client:?}");
            let expected = ["24", "1", "0", "1", "ErrorNotAllDataTransferred"];
            assert_eq!([&*row[4], &*row[5], &*row[6], &*row[7], &*row[8]], expected);
        }
    }
}
