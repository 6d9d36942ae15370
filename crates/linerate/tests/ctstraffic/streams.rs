//! Media streams over UDP: our client with our server, and the reflector's limits.

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use crate::fixture::{Ended, Folder, PORT, own_address, run_client, start};

const STREAM: &str = "-protocol:udp -bitspersecond:2000000 -framerate:50 -streamlength:1";

#[test]
fn a_stream_has_all_its_frames_and_files_at_both_ends() {
    let (address, folder) = (own_address(), Folder::new());
    let server = format!("-listen:{address} {STREAM} -serverexitlimit:1 -connectionfilename:s.csv");
    let server = start(&server, &folder);
    // A START that comes before the server listens is sent again.
    let files = "-jitterfilename:j.csv -connectionfilename:c.csv -statusfilename:status.csv";
    let client = format!("{STREAM} -iterations:1 -statusupdate:250 {files}");
    let client = run_client(address, &client, &folder);
    let server = server.wait();
    let frames = |ended: &Ended, text: &str| ended.stdout.contains(text);
    assert_eq!((client.exit_code, server.exit_code), (0, 0), "{client:?} {server:?}");
    assert!(frames(&client, "Total Successful Frames : 50 (100.000000)"), "{client:?}");
    let (here, there) = (folder.rows("c.csv"), folder.rows("s.csv"));
    assert_eq!((here.len(), there.len()), (1, 1));
    assert_eq!((&here[0][4], &here[0][8]), (&"50".to_owned(), &"Succeeded".to_owned()));
    // Both know the id, and each other's address.
    assert_eq!((&here[0][9], &here[0][2]), (&there[0][9], &there[0][1]));
    let numbers: Vec<_> = folder.rows("j.csv").iter().map(|row| row[0].clone()).collect();
    assert_eq!(numbers, (1..=50).map(|number| number.to_string()).collect::<Vec<_>>());
    let rows = folder.rows("status.csv");
    let completed = rows.iter().map(|row| row[3].parse::<u64>().unwrap());
    assert_eq!(completed.sum::<u64>(), 50, "{rows:?}");
}

#[test]
fn a_server_needs_a_limit_beyond_loopback_and_keeps_it() {
    let (address, folder) = (own_address(), Folder::new());
    let ended = start(&format!("-listen:* {STREAM}"), &folder).wait();
    assert_eq!(ended.exit_code, 255, "{ended:?}");
    assert!(ended.stderr.contains("give --max-rate"), "{ended:?}");
    let words = format!("-listen:{address} {STREAM} --max-rate:2000000 -timelimit:3000 --ndjson");
    let server = start(&words, &folder);
    let clients =
        [UdpSocket::bind((address, 0)), UdpSocket::bind((address, 0))].map(Result::unwrap);
    for _ in 0..20 {
        for client in &clients {
            let _nobody_yet = client.send_to(b"START", (address, PORT));
        }
        thread::sleep(Duration::from_millis(50));
    }
    let ended = server.wait();
    assert!(ended.stderr.contains("would exceed --max-rate:2000000"), "{ended:?}");
    let last: serde_json::Value =
        serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    assert!(last["refused"].as_u64().unwrap() >= 1, "{last}");
    // No more than one stream at a time.
    let most = 2_000_000 * 4;
    assert!(last["bits"].as_u64().unwrap() <= most, "{last}");
}
