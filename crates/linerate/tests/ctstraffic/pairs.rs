//! Our client with our server, and each with a peer that isn't ours.

use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::fixture::{Folder, PORT, own_address, run_client, start, start_server};
use crate::peer::{be_client, be_server, turns};

const PATTERNS: [&str; 4] = ["push", "pull", "pushpull", "duplex"];

/// Bytes that a client and a server send in a connection of 300,001.
fn amounts(pattern: &str) -> (u64, u64) {
    let turns = turns(pattern, 300_001, 70_000, 30_000);
    turns.iter().fold((0, 0), |(a, b), (more_a, more_b)| (a + more_a, b + more_b))
}

fn words(pattern: &str) -> String {
    let turns = if pattern == "pushpull" { "-pushbytes:70000 -pullbytes:30000" } else { "" };
    format!("-pattern:{pattern} -transfer:300001 {turns}")
}

#[test]
fn our_ends_agree_in_every_pattern_verification_and_shutdown() {
    for pattern in PATTERNS {
        for (verify, shutdown) in
            [("data", "graceful"), ("data", "rude"), ("connection", "graceful"), ("data", "random")]
        {
            let (address, folder) = (own_address(), Folder::new());
            let words = format!("{} -verify:{verify}", words(pattern));
            let limits = "-serverexitlimit:6 -connectionfilename:server.csv";
            let server = start_server(address, &format!("{words} {limits}"), &folder);
            let limits = "-connections:3 -iterations:2 -connectionfilename:client.csv";
            let client = format!("{words} {limits} -shutdown:{shutdown}");
            let client = run_client(address, &client, &folder);
            let server = server.wait();
            assert_eq!((client.exit_code, server.exit_code), (0, 0), "{client:?} {server:?}");
            assert_eq!((client.totals(), server.totals()), ([6, 0, 0], [6, 0, 0]));
            let (sent, received) = amounts(pattern);
            let (mut here, mut there) = (folder.rows("client.csv"), folder.rows("server.csv"));
            for rows in [&mut here, &mut there] {
                rows.sort_by(|a, b| a[9].cmp(&b[9]));
            }
            assert_eq!((here.len(), there.len()), (6, 6));
            for (here, there) in here.iter().zip(&there) {
                assert_eq!((&here[3], &here[5]), (&sent.to_string(), &received.to_string()));
                assert_eq!((&here[3], &here[5]), (&there[5], &there[3]));
                // One's own address is the other's peer, and both know the id.
                assert_eq!((&here[1], &here[2], &here[9]), (&there[2], &there[1], &there[9]));
                assert_eq!((&*here[8], &*there[8]), ("Succeeded", "Succeeded"));
            }
        }
    }
}

#[test]
fn our_server_serves_a_peer_in_every_pattern() {
    for pattern in PATTERNS {
        let (address, folder) = (own_address(), Folder::new());
        let limits = "-serverexitlimit:2 -connectionfilename:server.csv";
        let server = start_server(address, &format!("{} {limits}", words(pattern)), &folder);
        let turns = turns(pattern, 300_001, 70_000, 30_000);
        for rude in [false, true] {
            let id = be_client(TcpStream::connect((address, PORT)).unwrap(), pattern, &turns, rude);
            assert_eq!(id.as_bytes()[14], b'4', "a random UUID: {id}");
        }
        let server = server.wait();
        assert_eq!((server.exit_code, server.totals()), (0, [2, 0, 0]), "{server:?}");
        assert_eq!(folder.rows("server.csv").len(), 2);
    }
}

#[test]
fn our_client_takes_a_peers_texts_whole_or_in_pieces_in_every_pattern() {
    for pattern in PATTERNS {
        let (address, folder) = (own_address(), Folder::new());
        let listener = TcpListener::bind((address, PORT)).unwrap();
        let serving = thread::spawn(move || {
            let turns = turns(pattern, 300_001, 70_000, 30_000);
            for split in [false, true] {
                be_server(listener.accept().unwrap().0, pattern, &turns, split);
            }
        });
        let client = format!("{} -connections:1 -iterations:2", words(pattern));
        let client = run_client(address, &client, &folder);
        serving.join().unwrap();
        assert_eq!((client.exit_code, client.totals()), (0, [2, 0, 0]), "{client:?}");
    }
}

#[test]
fn several_servers_and_local_addresses_are_used_in_turn() {
    let (addresses, folder) = ([own_address(), own_address()], Folder::new());
    let [first, second] = addresses;
    let words = "-transfer:1000 -serverexitlimit:4";
    let servers = addresses.map(|address| start_server(address, words, &folder));
    let binds = [own_address(), own_address()];
    let client = format!(
        "-target:{first} -target:{second} -bind:{} -bind:{} -transfer:1000 -connections:2 \
         -iterations:4 -connectionfilename:client.csv -localport:[21000,21999]",
        binds[0], binds[1]
    );
    let client = start(&client, &folder).wait();
    assert_eq!(client.exit_code, 0, "{client:?}");
    for server in servers {
        assert_eq!(server.wait().totals(), [4, 0, 0]);
    }
    let rows = folder.rows("client.csv");
    for address in [first, second] {
        let ends = format!("{address}:");
        assert_eq!(rows.iter().filter(|row| row[2].starts_with(&ends)).count(), 4);
    }
    for bind in binds {
        let ends = format!("{bind}:");
        assert_eq!(rows.iter().filter(|row| row[1].starts_with(&ends)).count(), 4);
    }
    let port = |row: &Vec<String>| row[1].rsplit(':').next().unwrap().parse::<u16>().unwrap();
    assert!(rows.iter().all(|row| (21_000..=21_999).contains(&port(row))), "{rows:?}");
}

#[test]
fn many_short_connections_reset_without_an_error() {
    let (address, folder) = (own_address(), Folder::new());
    let server = start_server(address, "-transfer:64 -consoleverbosity:0", &folder);
    let client = "-transfer:64 -connections:100 -shutdown:rude -timelimit:4000 -consoleverbosity:0";
    let client = run_client(address, client, &folder);
    let server = server.interrupt();
    let ([done, network, data], there) = (client.totals(), server.totals());
    assert_eq!((client.exit_code, network, data), (0, 0, 0), "{client:?}");
    // Those under way when the time was up are completed at no end, or at one.
    assert!(done > 500 && there[0] + 100 >= done, "{client:?} {server:?}");
}
