//! ctsTraffic between two hosts: over a slow link, with packets that are dropped, and a link that goes down.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::in_network;
use crate::network::{CLIENT_DEVICE, Network, SERVER_DEVICE, SERVER_V4, run};

pub(crate) const CLIENT_V4: &str = "10.77.0.1";
const LONGEST: Duration = Duration::from_secs(60);

/// One end in a namespace; what it prints goes to a file of its folder.
pub(crate) struct End {
    process: Child,
    folder: TempDir,
    words: String,
}

impl End {
    pub(crate) fn start(namespace: &str, words: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let file = |name: &str| File::create(folder.path().join(name)).unwrap();
        let program = ["netns", "exec", namespace, env!("CARGO_BIN_EXE_linerate"), "ctstraffic"];
        let process = Command::new("ip")
            .args(program)
            .args(words.split_whitespace())
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap();
        Self { process, folder, words: words.to_owned() }
    }

    /// A server, from when it listens.
    pub(crate) fn serve(namespace: &str, address: &str, words: &str) -> Self {
        let end = Self::start(namespace, &format!("-listen:{address} --json {words}"));
        let kind = if words.contains("-protocol:udp") { "-Hlnu" } else { "-Hlnt" };
        let shown = format!("{address}:4444");
        let listed = || run(&["ip", "netns", "exec", namespace, "ss", kind]).unwrap();
        let began = Instant::now();
        while !listed().contains(&shown) {
            assert!(began.elapsed() < LONGEST, "{words}: {}", end.read("stderr"));
            sleep(Duration::from_millis(10));
        }
        end
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The rows of a csv file, without its head, each as its cells.
    pub(crate) fn rows(&self, name: &str) -> Vec<Vec<String>> {
        let cells = |line: &str| line.split(',').map(str::to_owned).collect();
        self.read(name).lines().skip(1).map(cells).collect()
    }

    /// Its exit code and document.
    pub(crate) fn finish(&mut self) -> (i32, Value) {
        let began = Instant::now();
        let status = loop {
            match self.process.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(began.elapsed() < LONGEST, "{} did not end", self.words),
            }
            sleep(Duration::from_millis(10));
        };
        let document = serde_json::from_str(&self.read("stdout"));
        let document = document.unwrap_or_else(|error| panic!("{error}: {}", self.read("stderr")));
        (status.code().unwrap_or(-1), document)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn count(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {document}"))
}

/// The frames of a stream's client by kind: completed, dropped, repeated, errors.
pub(crate) fn frames(document: &Value) -> [u64; 4] {
    ["completed", "dropped", "repeated", "errors"]
        .map(|kind| count(document, &format!("/frames/{kind}")))
}

/// A second of a stream has 50 frames of 5,000 bytes.
const STREAM: &str = "-protocol:udp -bitspersecond:2000000 -framerate:50";

/// A stream from the client's host to the server's, whose rules judge what arrives: the server's document, then the
/// client with its exit code and document.
pub(crate) fn run_stream(
    network: &Network,
    stream: &str,
    client_words: &str,
) -> (Value, End, i32, Value) {
    let words = format!("{stream} --max-rate:100000000 -serverexitlimit:1");
    let mut server = End::serve(&network.client, CLIENT_V4, &words);
    let words = format!("-target:{CLIENT_V4} {stream} -iterations:1 --json {client_words}");
    let mut client = End::start(&network.server, &words);
    let (exit_code, document) = client.finish();
    (server.finish().1, client, exit_code, document)
}

#[test]
fn transfers_over_a_slow_link_are_whole_and_take_its_time() {
    in_network(|network| {
        network.limit_rate("20mbit", "50ms");
        for (pattern, pushed) in [("push", 4_000_000_u64), ("duplex", 2_000_000)] {
            let words = format!("-pattern:{pattern} -transfer:1000000 -consoleverbosity:0");
            let limit = format!("{words} -serverexitlimit:4");
            let mut server = End::serve(&network.server, SERVER_V4, &limit);
            let words = format!("-target:{SERVER_V4} {words} -connections:4 -iterations:1 --json");
            let (code, client) = End::start(&network.client, &words).finish();
            let (server_code, server) = server.finish();
            assert_eq!((code, server_code), (0, 0), "{client} {server}");
            assert_eq!((count(&client, "/completed"), count(&server, "/completed")), (4, 4));
            // Ids and DONE are counted, too.
            assert_eq!(count(&server, "/received_bytes"), pushed, "{server}");
            assert_eq!(count(&client, "/received_bytes"), 4_000_000 - pushed + 4 * 41, "{client}");
            // The link's bucket has 32 kB beyond its rate.
            let least_us = (pushed - 32_000) * 8 / 20;
            assert!(count(&server, "/elapsed_us") >= least_us, "{server}");
        }
    });
}

/// Drops some of the packets of a frame, of which the kernel may have several in one buffer.
fn dropping(which: &str) -> String {
    format!(
        "table inet linerate {{
            counter dropped {{ }}
            counter passed {{ }}
            chain arriving {{
                type filter hook input priority 0; policy accept;
                meta l4proto udp @th,64,16 == 0x0000 {which} counter name dropped drop
                meta l4proto udp @th,64,16 == 0x0000 counter name passed accept
            }}
        }}"
    )
}

#[test]
fn frames_that_a_filter_drops_are_the_dropped_ones() {
    in_network(|network| {
        // A frame goes out as one train of datagrams, of which a filter drops all or none.
        network.filter(&dropping("numgen inc mod 10 < 3"));
        let stream = format!("{STREAM} -streamlength:2");
        let (server, client, exit_code, document) =
            run_stream(network, &stream, "-jitterfilename:jitter.csv");
        let (dropped, passed) = (network.counted("dropped"), network.counted("passed"));
        assert_eq!((dropped, passed), (30, 70));
        assert_eq!(frames(&document), [passed, dropped, 0, 0], "{document}");
        // Losses fail no stream, and the server never learns of them.
        assert_eq!((exit_code, count(&server, "/completed")), (0, 1), "{server}");
        assert_eq!((count(&server, "/bits"), count(&document, "/bits")), (4_000_000, 2_800_000));
        let rows = client.rows("jitter.csv");
        let lost: Vec<&str> =
            rows.iter().filter(|row| row[1..5] == ["0"; 4]).map(|row| &*row[0]).collect();
        assert_eq!(lost.len() as u64, dropped, "{lost:?}");
        assert_eq!(lost[..4], ["1", "2", "3", "11"], "{lost:?}");
    });
}

#[test]
fn a_frame_that_lacks_one_datagram_is_dropped() {
    in_network(|network| {
        // 1,401 bytes are datagrams of 1,374 and 27 bytes, which are 35 with UDP's header.
        network.filter(&dropping("udp length 35 numgen inc mod 5 == 0"));
        let stream = "-protocol:udp -bitspersecond:560400 -framerate:50 -streamlength:2";
        let (_, _, exit_code, document) = run_stream(network, stream, "");
        assert_eq!((network.counted("dropped"), network.counted("passed")), (20, 180));
        assert_eq!((exit_code, frames(&document)), (0, [80, 20, 0, 0]), "{document}");
    });
}

#[test]
fn datagrams_that_are_longer_than_the_path_carries_go_in_fragments() {
    in_network(|network| {
        network.set_mtu(1280);
        let stream = format!("{STREAM} -streamlength:1");
        let (_, _, exit_code, document) = run_stream(network, &stream, "");
        assert_eq!((exit_code, frames(&document)), (0, [50, 0, 0, 0]), "{document}");
    });
}

#[test]
fn a_stream_over_a_link_that_is_too_slow_counts_every_frame_once() {
    in_network(|network| {
        network.limit_rate("1mbit", "100ms");
        let stream = format!("{STREAM} -streamlength:3");
        let (server, _, exit_code, document) = run_stream(network, &stream, "");
        let [completed, dropped, repeated, errors] = frames(&document);
        assert_eq!((completed + dropped, repeated), (150, 0), "{document}");
        // Half of the bytes have room. A frame of which the queue drops one datagram isn't whole.
        assert!(completed >= 20 && dropped >= 60, "{document}");
        // What waits in the link's queue for 100 ms is no later than a second.
        assert_eq!((errors, exit_code), (0, 0), "{document}");
        // The queue is the server's own: it knows what was dropped, and what left has arrived.
        assert_eq!(count(&server, "/bits"), count(&document, "/bits"), "{server} {document}");
        assert!(count(&server, "/queue_drops") >= dropped, "{server} {document}");
        assert!(count(&server, "/bits") < 6_000_000, "{server}");
    });
}

#[test]
fn a_stream_outlives_a_link_that_goes_down_and_counts_what_it_missed() {
    in_network(|network| {
        // Where the kernel forgets the receiver's address with the link, it keeps 35 frames until it has it again.
        network.keep_server_neighbor();
        let stream = format!("{STREAM} -streamlength:4");
        let words = format!("{stream} --max-rate:100000000 -serverexitlimit:1");
        let mut server = End::serve(&network.client, CLIENT_V4, &words);
        let words =
            format!("-target:{CLIENT_V4} {stream} -iterations:1 --json -jitterfilename:jitter.csv");
        let mut client = End::start(&network.server, &words);
        sleep(Duration::from_secs(1));
        network.set_server_link("down");
        sleep(Duration::from_secs(1));
        network.set_server_link("up");
        let (exit_code, document) = client.finish();
        let [completed, dropped, repeated, errors] = frames(&document);
        assert_eq!((completed + dropped, repeated, errors), (200, 0, 0), "{document}");
        assert!((40..=120).contains(&dropped), "{document}");
        assert_eq!(exit_code, 0, "{document}");
        // The frames that are missing are one run of numbers.
        let rows = client.rows("jitter.csv");
        let lost: Vec<u64> = rows
            .iter()
            .filter(|row| row[1..5] == ["0"; 4])
            .map(|row| row[0].parse().unwrap())
            .collect();
        assert_eq!(lost.len() as u64, dropped);
        assert_eq!(lost[lost.len() - 1] - lost[0] + 1, dropped, "{lost:?}");
        assert_eq!(count(&server.finish().1, "/completed"), 1);
    });
}

#[test]
fn connections_over_a_link_that_goes_down_fail_by_name_and_the_run_goes_on() {
    in_network(|network| {
        let words = "-transfer:200000 -pattern:pull --idle-timeout:500";
        let _server = End::serve(&network.server, SERVER_V4, words);
        let words = format!(
            "-target:{SERVER_V4} {words} -connections:3 -timelimit:6000 -connectionfilename:c.csv --json"
        );
        let mut client = End::start(&network.client, &words);
        sleep(Duration::from_secs(1));
        network.set_server_link("down");
        sleep(Duration::from_secs(2));
        network.set_server_link("up");
        let (exit_code, document) = client.finish();
        let rows = client.rows("c.csv");
        let results: Vec<&str> = rows.iter().map(|row| &*row[8]).collect();
        let failed: Vec<&&str> = results.iter().filter(|result| **result != "Succeeded").collect();
        // A connection that stood, or was to, is silent for too long; or the host can't be found (ARP).
        let names = ["10060: Connection timed out", "10065: No route to host"];
        assert!(!failed.is_empty(), "{document}");
        assert!(failed.iter().all(|result| names.contains(result)), "{failed:?}");
        assert_eq!(count(&document, "/network_errors"), failed.len() as u64, "{document}");
        assert_eq!(count(&document, "/data_errors"), 0, "{document}");
        assert_eq!(exit_code as usize, failed.len(), "{document}");
        // Some came before, and some after.
        assert_eq!((results.first(), results.last()), (Some(&"Succeeded"), Some(&"Succeeded")));
    });
}

#[test]
fn both_protocols_reach_a_link_local_address_by_its_interface() {
    in_network(|network| {
        let (ours, theirs) = ("fe80::77", "fe80::88");
        for (namespace, device, address) in
            [(&network.client, CLIENT_DEVICE, ours), (&network.server, SERVER_DEVICE, theirs)]
        {
            let address = format!("{address}/64");
            run(&["ip", "-n", namespace, "addr", "add", &address, "dev", device, "nodad"]).unwrap();
        }
        let stream = format!("{STREAM} -streamlength:1");
        for (words, limit) in [("-transfer:1000", ""), (&*stream, "--max-rate:100000000")] {
            let listen = format!("-listen:{theirs}%{SERVER_DEVICE} {words} {limit} --json");
            let mut server = End::start(&network.server, &format!("{listen} -serverexitlimit:1"));
            // A START that comes too early is sent again; a connection isn't.
            sleep(Duration::from_secs(1));
            let words = format!(
                "-target:{theirs}%{CLIENT_DEVICE} {words} -connections:1 -iterations:1 --json \
                 -connectionfilename:c.csv"
            );
            let mut client = End::start(&network.client, &words);
            let (exit_code, document) = client.finish();
            assert_eq!((exit_code, count(&document, "/completed")), (0, 1), "{document}");
            assert_eq!(server.finish().0, 0);
        }
    });
}

#[test]
fn first_segments_that_are_sent_again_are_counted_in_the_file_of_tcp_info() {
    in_network(|network| {
        network.filter(
            "table inet linerate {
                counter dropped { }
                chain arriving {
                    type filter hook input priority 0; policy accept;
                    tcp flags & (syn | ack) == syn numgen inc mod 2 == 0 counter name dropped drop
                }
            }",
        );
        let words = "-transfer:1000 -tcpinfofilename:info.csv";
        let limit = format!("{words} -serverexitlimit:2");
        let mut server = End::serve(&network.server, SERVER_V4, &limit);
        let words = format!("-target:{SERVER_V4} {words} -connections:1 -iterations:2 --json");
        let mut client = End::start(&network.client, &words);
        let (exit_code, document) = client.finish();
        assert_eq!((exit_code, network.counted("dropped")), (0, 2), "{document}");
        server.finish();
        // The server's first segment, which answers the client's, was not lost.
        for (end, expected) in [(&client, ["1", "1"]), (&server, ["0", "0"])] {
            let rows = end.rows("info.csv");
            let again: Vec<&str> = rows.iter().map(|row| row[11].trim()).collect();
            assert_eq!(again, expected, "{rows:?}");
        }
    });
}
