//! ctsTraffic over emulated paths: what the ends find is what the emulator's record has, bit for bit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::ctstraffic::{CLIENT_V4, End, count, frames, run_stream};
use crate::emulator::Emulator;
use crate::network::{Network, SERVER_V4};
use crate::skipped::skip;

/// Bytes that an end sends in a connection.
const EACH: u64 = 100_000;
/// Bytes before a server's data.
const ID_BYTES: u64 = 37;
const CONNECTIONS: usize = 60;

const FLIPS: &str = "
    [both]
    delay = '5ms'
    corrupt = { bit_error_rate = 1e-6, repair_checksums = true, least_packet = 1400 }
";

const DISORDER: &str = "
    [both]
    delay = '5ms'
    loss = '1%'
    duplicate = '2%'
    reorder = { share = '3%', by = '4ms' }
";

fn with_link(description: &str, test: impl FnOnce(Emulator)) {
    match Emulator::start(description) {
        Ok(emulator) => test(emulator),
        Err(why) => skip(&why),
    }
}

/// The bits that differ, by the offset of their byte.
type Differences = BTreeMap<u64, u8>;

/// Flips in the data of each connection: on the way to the server, and to the client. By the client's port.
fn flipped(report: &Value) -> BTreeMap<u16, [Differences; 2]> {
    let mut flipped: BTreeMap<u16, [Differences; 2]> = BTreeMap::new();
    for (way, direction, port, before) in
        [(0, "to_right", "source_port", 0), (1, "to_left", "destination_port", ID_BYTES)]
    {
        for flip in report[direction]["flips"].as_array().into_iter().flatten() {
            let offset = flip["stream_offset_bytes"].as_u64().unwrap().checked_sub(before);
            // What is no data is left out.
            let Some(offset) = offset.filter(|offset| *offset < EACH) else { continue };
            let ways = flipped.entry(flip[port].as_u64().unwrap() as u16).or_default();
            *ways[way].entry(offset).or_default() ^= 1 << flip["bit"].as_u64().unwrap();
        }
    }
    flipped
}

/// An offset and the bits that differ there, of `byte 70001 is 0x31, expected 0x11; ...`.
fn parse_difference(text: &str) -> (u64, u8) {
    let words: Vec<&str> = text.split("byte ").nth(1).unwrap().split_whitespace().collect();
    let number = |word: &str| {
        let digits = word.trim_start_matches("0x").trim_end_matches([',', ';']);
        u8::from_str_radix(digits, 16).unwrap()
    };
    (words[0].parse().unwrap(), number(words[2]) ^ number(words[4]))
}

fn port(cell: &str) -> u16 {
    cell.trim().rsplit_once(':').unwrap().1.parse().unwrap()
}

/// What both ends of a load left.
struct Transferred {
    /// The server and the client, and where each one's rows have the client's address.
    ends: [(End, usize); 2],
}

/// A load of connections, whose local ports begin behind this one.
fn transfer(network: &Network, pattern: &str, first_port: u16) -> Transferred {
    let (bytes, turns) = match pattern {
        "duplex" => (2 * EACH, ""),
        "pushpull" => (2 * EACH, "-pushbytes:30000 -pullbytes:20000"),
        _ => (EACH, ""),
    };
    let files = "-connectionfilename:c.csv -errorfilename:e.txt -tcpinfofilename:info.csv";
    let words = format!("-pattern:{pattern} -transfer:{bytes} {turns} {files}");
    let limit = format!("{words} -serverexitlimit:{CONNECTIONS}");
    let mut server = End::serve(&network.server, SERVER_V4, &limit);
    let ports = format!("-localport:[{first_port},{}]", first_port + 99);
    let words = format!("-target:{SERVER_V4} {words} {ports} -connections:10 -iterations:6 --json");
    let mut client = End::start(&network.client, &words);
    client.finish();
    server.finish();
    Transferred { ends: [(server, 2), (client, 1)] }
}

impl Transferred {
    /// The results at each end, by the client's port.
    fn results(&self) -> [BTreeMap<u16, String>; 2] {
        self.ends.each_ref().map(|(end, column)| {
            let rows = end.rows("c.csv");
            rows.iter().map(|row| (port(&row[*column]), row[8].clone())).collect()
        })
    }

    /// The wrong data that each end found, by the client's port.
    fn found(&self) -> [BTreeMap<u16, (u64, u8)>; 2] {
        self.ends.each_ref().map(|(end, column)| {
            let (rows, errors) = (end.rows("c.csv"), end.read("e.txt"));
            let lines = errors.lines().filter(|line| line.contains("wrong data"));
            let each = lines.map(|line| {
                let id = line.split('[').nth(2).unwrap().split(']').next().unwrap();
                let row = rows.iter().find(|row| row[9] == id).unwrap();
                assert_eq!(row[8], "ErrorDataDidNotMatchBitPattern", "{line}");
                (port(&row[*column]), parse_difference(line))
            });
            each.collect()
        })
    }

    /// The client's ports of connections in which an end sent anything again.
    fn resent(&self) -> BTreeSet<u16> {
        let of_end = |(end, column): &(End, usize)| {
            let rows = end.rows("info.csv");
            let resent = rows.into_iter().filter(|row| !["", "0"].contains(&row[10].trim()));
            resent.map(|row| port(&row[*column])).collect::<Vec<_>>()
        };
        self.ends.iter().flat_map(of_end).collect()
    }

    /// Shows that the ends found what had flipped; how many connections failed.
    fn assert_found(&self, flips: &BTreeMap<u16, [Differences; 2]>) -> usize {
        let ([there, here], found, resent) = (self.results(), self.found(), self.resent());
        assert_eq!((there.len(), here.len()), (CONNECTIONS, CONNECTIONS));
        let (none, mut failed) = (Default::default(), 0);
        for (port, result) in &there {
            let flips = flips.get(port).unwrap_or(&none);
            let found = found.each_ref().map(|found| found.get(port));
            let is_sent_once = !resent.contains(port);
            for (flips, (offset, bits)) in
                flips.iter().zip(found).filter_map(|(flips, found)| Some((flips, found?)))
            {
                assert_eq!(flips.get(offset), Some(bits), "{port}: byte {offset} of {flips:?}");
                // The first wrong byte ends a connection. Of a segment that is sent again, one copy arrives.
                let first = flips.first_key_value().map(|(first, _)| first);
                assert!(!is_sent_once || first == Some(offset), "{port}: {offset} of {flips:?}");
            }
            let has_found = found.iter().any(Option::is_some);
            let has_flips = flips.iter().any(|flips| !flips.is_empty());
            assert!(!is_sent_once || has_found == has_flips, "{port}: {found:?} of {flips:?}");
            let succeeded = [result, &here[port]].iter().all(|result| **result == "Succeeded");
            assert_eq!(succeeded, !has_found, "{port}: {result} {}", here[port]);
            failed += usize::from(has_found);
        }
        failed
    }
}

#[test]
fn every_flipped_bit_of_a_transfer_is_found_at_its_offset() {
    with_link(FLIPS, |emulator| {
        let loads = [("push", 21_000), ("pull", 22_000), ("duplex", 23_000)]
            .map(|(pattern, first_port)| transfer(&emulator.network, pattern, first_port));
        let flips = flipped(&emulator.stop());
        for load in loads {
            // More than half of them have a flip, or nearly.
            assert!(load.assert_found(&flips) > 10, "{flips:?}");
        }
    });
}

#[test]
fn flips_are_found_and_nothing_else_where_segments_are_lost_doubled_and_reordered() {
    with_link(&format!("{DISORDER}{}", FLIPS.lines().nth(3).unwrap()), |emulator| {
        let load = transfer(&emulator.network, "duplex", 21_000);
        let flips = flipped(&emulator.stop());
        assert!(load.assert_found(&flips) > 10, "{flips:?}");
    });
}

#[test]
fn transfers_over_a_path_that_loses_doubles_and_reorders_are_whole() {
    with_link(DISORDER, |emulator| {
        for (pattern, first_port) in
            [("push", 21_000), ("pull", 22_000), ("pushpull", 23_000), ("duplex", 24_000)]
        {
            let load = transfer(&emulator.network, pattern, first_port);
            let results = load.results();
            let all = results.iter().flat_map(BTreeMap::values);
            assert_eq!(all.filter(|result| *result == "Succeeded").count(), 2 * CONNECTIONS);
        }
        let report = emulator.stop();
        for counter in ["lost_at_random", "duplicated", "reordered"] {
            assert!(count(&report, &format!("/to_right/counters/{counter}")) > 0, "{report}");
        }
    });
}

/// A stream of so many seconds with 100 frames in each.
fn stream(frame_bytes: u32, seconds: u32) -> String {
    let bps = frame_bytes * 8 * 100;
    format!("-protocol:udp -bitspersecond:{bps} -framerate:100 -streamlength:{seconds}")
}

#[test]
fn datagrams_that_are_lost_or_doubled_make_their_frames_dropped_or_repeated() {
    // A frame's time is 10 ms.
    let disorder = DISORDER.replace("1%", "5%").replace("2%", "5%").replace("4ms", "24ms");
    with_link(&disorder, |emulator| {
        emulator.network.filter(
            "table inet linerate {
                counter came { }
                chain arriving {
                    type filter hook input priority 0; policy accept;
                    meta l4proto udp @th,64,16 == 0x0000 counter name came
                }
            }",
        );
        let files = "-bufferdepth:2 -jitterfilename:jitter.csv";
        let (server, client, exit_code, document) =
            run_stream(&emulator.network, &stream(1000, 4), files);
        let [completed, dropped, repeated, errors] = frames(&document);
        assert_eq!((exit_code, errors, completed + dropped + repeated), (0, 0, 400), "{document}");
        assert!(dropped > 0 && repeated > 0, "{document}");
        assert_eq!(count(&server, "/bits"), 400 * 8000);
        // Each repeated frame came twice.
        assert_eq!(emulator.network.counted("came"), completed + 2 * repeated, "{document}");
        assert_eq!(count(&document, "/bits"), 8000 * (completed + 2 * repeated), "{document}");
        let rows = client.rows("jitter.csv");
        assert_eq!(rows.len() as u64, completed + dropped);
        assert_eq!(rows.iter().filter(|row| row[1..5] == ["0"; 4]).count() as u64, dropped);
        let report = emulator.stop();
        let counted = |name| count(&report, &format!("/to_right/counters/{name}"));
        // The id's datagram isn't a frame's.
        assert!(counted("lost_at_random") >= dropped, "{report}");
        assert!(counted("duplicated") >= repeated && counted("reordered") > 0, "{report}");
    });
}

#[test]
fn datagrams_that_overtake_others_of_their_frame_or_the_next_change_nothing() {
    let path = "[both]\nreorder = { share = '30%', by = '30ms' }";
    with_link(path, |emulator| {
        let (_, _, exit_code, document) =
            run_stream(&emulator.network, &stream(5000, 1), "-bufferdepth:2");
        assert_eq!((exit_code, frames(&document)), (0, [100, 0, 0, 0]), "{document}");
        let report = emulator.stop();
        assert!(count(&report, "/to_right/counters/reordered") > 20, "{report}");
    });
}

/// Bytes of a datagram before its data, and where its kind and its frame's number stand.
const HEADER_BYTES: u64 = 26;
const KIND_BYTES: u64 = 2;

/// What became of one datagram by its flips.
#[derive(Default)]
struct Datagram {
    has_other_kind: bool,
    has_other_frame: bool,
    frame: u64,
    data: Differences,
}

/// The datagrams with flips of a stream.
fn flipped_datagrams(report: &Value) -> BTreeMap<u64, Datagram> {
    let mut datagrams: BTreeMap<u64, Datagram> = BTreeMap::new();
    for flip in report["to_right"]["flips"].as_array().into_iter().flatten() {
        let datagram = datagrams.entry(flip["packet"].as_u64().unwrap()).or_default();
        let offset = flip["payload_offset_bytes"].as_u64().unwrap();
        // The beginning with the flips before this one.
        let start = flip["payload_start"].as_str().unwrap();
        let digits = |at: usize| start.get(2 * at..2 * at + 2).unwrap();
        let byte = |at: usize| u64::from_str_radix(digits(at), 16).unwrap();
        datagram.frame = (2..10).rev().fold(0, |number, at| number << 8 | byte(at));
        match offset.checked_sub(HEADER_BYTES) {
            Some(offset) => {
                let bits = datagram.data.entry(offset).or_default();
                *bits ^= 1 << flip["bit"].as_u64().unwrap();
            }
            None if offset < KIND_BYTES => datagram.has_other_kind = true,
            // The rest is the sender's clock.
            None => datagram.has_other_frame |= offset < 10,
        }
    }
    datagrams
}

#[test]
fn every_flipped_bit_of_a_stream_is_found_in_its_frame_at_its_offset() {
    with_link(&FLIPS.replace("1e-6", "3e-6"), |emulator| {
        let (_, client, exit_code, document) =
            run_stream(&emulator.network, &stream(2800, 4), "-bufferdepth:2 -errorfilename:e.txt");
        let flipped = flipped_datagrams(&emulator.stop());
        let frames = frames(&document);
        let errors = client.read("e.txt");
        let wrong = errors.lines().filter(|line| line.contains("wrong data"));
        let found: BTreeSet<(u64, u64, u8)> = wrong
            .map(|line| {
                assert!(line.contains(CLIENT_V4), "the server's address: {line}");
                let frame = line.split("frame ").nth(1).unwrap().split(':').next().unwrap();
                let (offset, bits) = parse_difference(line);
                (frame.parse().unwrap(), offset, bits)
            })
            .collect();
        let (other, wrong): (Vec<&Datagram>, Vec<&Datagram>) =
            flipped.values().partition(|one| one.has_other_kind || one.data.is_empty());
        let expected: BTreeSet<(u64, u64, u8)> = wrong
            .iter()
            .map(|one| {
                let (offset, bits) = one.data.first_key_value().unwrap();
                (one.frame, *offset, *bits)
            })
            .collect();
        assert!(expected.len() > 10, "{expected:?}");
        // A second has few lines.
        let stderr = client.read("stderr");
        let untold = stderr.split(" bad datagrams have no line").next().unwrap();
        let untold = match stderr.len() == untold.len() {
            true => 0,
            false => untold.rsplit(' ').next().unwrap().parse::<usize>().unwrap(),
        };
        assert!(found.is_subset(&expected), "{found:?} of {expected:?}");
        assert!(found.len() + untold >= expected.len(), "{found:?} of {expected:?}: {stderr}");
        // A datagram that has become one of another kind or frame may be an error as well.
        let (least, most) = (wrong.len() as u64, flipped.len() as u64);
        assert!((least..=most).contains(&frames[3]), "{frames:?}: {} others", other.len());
        let has_other_frames = flipped.values().any(|one| one.has_other_frame);
        assert!(has_other_frames || frames[0] + frames[1] == 400, "{document}");
        let spoiled: BTreeSet<u64> = wrong.iter().map(|one| one.frame).collect();
        assert!(has_other_frames || frames[1] >= spoiled.len() as u64, "{document}");
        assert_eq!(exit_code, i32::from(frames[3] > 0), "{document}");
    });
}
