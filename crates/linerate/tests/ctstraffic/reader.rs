//! The rules by which Microsoft's Network-Performance-Visualization reads status files, in our words, over our files.
//!
//! The reader is a script that turns a csv file into objects, one for each row, with the head's names:
//!
//! 1. A file whose name has `pathcost` in it is another tool's. One without a column `In-Flight` is skipped.
//! 2. Quotes at either end of a line are taken off. Cells are divided by commas.
//! 3. The means of `SendBps` and `RecvBps` say which is the throughput: the former where it is greater.
//! 4. The first rows (warm-up) and the last ones (cool-down) are left out as the user asks, and then those before the
//!    first whose throughput isn't the text `0`.
//! 5. Each cell becomes a decimal number of Gbit/s. Zeros at the end are left out.
//! 6. The sessions are the greatest number of `In-Flight`.

use std::fs;

use crate::fixture::{Folder, own_address, run_client, start, start_server};

/// What the reader takes out of a file.
struct Series {
    sessions: u64,
    column: &'static str,
    gbps: Vec<f64>,
}

/// The text of a file: UTF-16 where it begins with the mark, else UTF-8.
fn content(folder: &Folder, name: &str) -> String {
    let bytes = fs::read(folder.path(name)).unwrap();
    match bytes.strip_prefix(&[0xff, 0xfe]) {
        Some(units) => {
            let units = units.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            String::from_utf16(&units.collect::<Vec<_>>()).unwrap()
        }
        None => String::from_utf8(bytes).unwrap(),
    }
}

fn read(name: &str, text: &str, warm_up: usize, cool_down: usize) -> Option<Series> {
    if name.to_lowercase().contains("pathcost") {
        return None;
    }
    let mut rows = text.lines().map(|line| {
        let line = line.strip_prefix('"').unwrap_or(line);
        line.strip_suffix('"').unwrap_or(line).split(',').collect::<Vec<_>>()
    });
    let head = rows.next()?;
    let rows: Vec<Vec<&str>> = rows.filter(|row| row != &[""]).collect();
    let column = |name: &str| {
        let place = head.iter().position(|cell| *cell == name)?;
        rows.iter().map(|row| row.get(place).copied()).collect::<Option<Vec<&str>>>()
    };
    let in_flight = column("In-Flight")?;
    let number = |cell: &&str| cell.parse::<f64>().unwrap();
    let mean = |cells: &[&str]| cells.iter().map(number).sum::<f64>() / cells.len() as f64;
    let (sent, received) = (column("SendBps")?, column("RecvBps")?);
    let (name, cells) = match mean(&sent) > mean(&received) {
        true => ("SendBps", sent),
        false => ("RecvBps", received),
    };
    let last = cells.len().saturating_sub(cool_down);
    let used = cells.get(warm_up..last).unwrap_or_default();
    let mut gbps: Vec<f64> =
        used.iter().skip_while(|cell| **cell == "0").map(|cell| number(cell) * 8.0 / 1e9).collect();
    while gbps.last() == Some(&0.0) {
        gbps.pop();
    }
    let sessions = in_flight.iter().map(|cell| cell.parse().unwrap()).max()?;
    Some(Series { sessions, column: name, gbps })
}

#[test]
fn the_reader_is_the_originals() {
    let text = "TimeSlice,SendBps,RecvBps,In-Flight,Completed,NetError,DataError\n\
                0.001,0,0,0,0,0,0\n1.001,0,0,2,0,0,0\n2.001,125000000,7,3,0,0,0\n\
                3.001,0,0,3,0,0,0\n4.001,250000000,0,2,0,0,0\n5.001,0,0,0,5,0,0\n";
    let series = read("status.csv", text, 0, 0).unwrap();
    assert_eq!((series.sessions, series.column, series.gbps), (3, "SendBps", vec![1.0, 0.0, 2.0]));
    assert_eq!(read("status.csv", text, 4, 0).unwrap().gbps, [2.0]);
    assert_eq!(read("status.csv", text, 0, 2).unwrap().gbps, [1.0]);
    assert!(read("my.PathCost.csv", text, 0, 0).is_none());
    assert!(read("status.csv", &text.replace("In-Flight", "Streams"), 0, 0).is_none());
}

#[test]
fn status_files_of_transfers_have_their_throughput_and_sessions() {
    for (pattern, encoding) in [("push", ""), ("pull", "--utf16")] {
        let (address, folder) = (own_address(), Folder::new());
        let words = format!("-pattern:{pattern} -transfer:1000000 -ratelimit:1000000");
        let words = format!("{words} -statusupdate:200 {encoding}");
        let server = format!("{words} -serverexitlimit:3 -statusfilename:tcp.there.csv");
        let server = start_server(address, &server, &folder);
        let client = format!("{words} -connections:3 -iterations:1 -statusfilename:tcp.here.csv");
        let client = run_client(address, &client, &folder);
        assert_eq!((client.exit_code, server.wait().exit_code), (0, 0), "{client:?}");
        for (name, sends) in
            [("tcp.here.csv", pattern == "push"), ("tcp.there.csv", pattern == "pull")]
        {
            let series = read(name, &content(&folder, name), 0, 0).unwrap();
            let expected = if sends { "SendBps" } else { "RecvBps" };
            assert_eq!((series.column, series.sessions), (expected, 3), "{name}");
            // Three connections of 8 Mbit/s, in rows of a fifth of a second. The first row is short and has the
            // first tenth of a second's bytes. Neither end has rows of nothing.
            let gbps = &series.gbps;
            assert!(gbps.len() >= 3 && gbps[0] > 0.0 && gbps[gbps.len() - 1] > 0.0, "{gbps:?}");
            let mut sorted = gbps.clone();
            sorted.sort_by(f64::total_cmp);
            let median = sorted[sorted.len() / 2];
            assert!((0.005..0.1).contains(&median), "{name}: {gbps:?}");
        }
    }
}

#[test]
fn a_status_file_of_streams_is_skipped() {
    let (address, folder) = (own_address(), Folder::new());
    let stream = "-protocol:udp -bitspersecond:80000 -framerate:10 -streamlength:1 -timelimit:500";
    let words = format!("-listen:{address} {stream} -statusfilename:udp.csv -statusupdate:100");
    assert_eq!(start(&words, &folder).wait().exit_code, 254);
    let text = content(&folder, "udp.csv");
    assert!(text.lines().count() > 3, "{text}");
    assert!(read("udp.csv", &text, 0, 0).is_none(), "{text}");
}
