//! Peers that want a server to fail, and ports that somebody else has.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::fixture::{
    Folder, PORT, await_lines, await_listener, own_address, run_client, start, start_command,
    start_server,
};
use crate::peer::{be_client, data};

const TURNS: [(u64, u64); 1] = [(1000, 0)];

/// A server that may have so many open files.
fn limited_server(files: u32, words: &str) -> (crate::fixture::Running, std::net::Ipv4Addr) {
    let address = own_address();
    let program = env!("CARGO_BIN_EXE_linerate");
    let line = format!("ulimit -n {files}; exec {program} ctstraffic -listen:{address} {words}");
    let mut command = Command::new("bash");
    command.args(["-c", &line]);
    let server = start_command(command, &line);
    await_listener((address, PORT).into());
    (server, address)
}

#[test]
fn a_crowd_of_silent_clients_ends_no_connection_that_stands() {
    let (server, address) = limited_server(120, "-transfer:1000");
    let standing: Vec<_> = (0..3).map(|_| TcpStream::connect((address, PORT)).unwrap()).collect();
    let crowd: Vec<_> = (0..200).map(|_| TcpStream::connect((address, PORT)).unwrap()).collect();
    thread::sleep(Duration::from_millis(500));
    for one in standing {
        be_client(one, "push", &TURNS, false);
    }
    drop(crowd);
    // Those that come when the crowd has gone are served.
    be_client(TcpStream::connect((address, PORT)).unwrap(), "push", &TURNS, true);
    // The reset is on its way.
    thread::sleep(Duration::from_millis(500));
    let ended = server.interrupt();
    assert_eq!(ended.totals()[0], 4, "{ended:?}");
}

/// Each file table of the server has room for fewer.
#[test]
fn silent_connections_keep_nobody_out_and_end_by_the_idle_time_out() {
    let (server, address) = limited_server(60, "-transfer:1000 --idle-timeout:500");
    let crowd: Vec<_> = (0..150).map(|_| TcpStream::connect((address, PORT)).unwrap()).collect();
    be_client(TcpStream::connect((address, PORT)).unwrap(), "push", &TURNS, false);
    for mut one in crowd {
        one.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let (mut id, mut more) = ([0; 37], [0; 1]);
        one.read_exact(&mut id).unwrap();
        assert_eq!(one.read(&mut more).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let ended = server.interrupt();
    assert_eq!(ended.totals()[..2], [1, 150], "{ended:?}");
}

#[test]
fn local_ports_that_are_all_taken_are_tried_again() {
    let (address, own, folder) = (own_address(), own_address(), Folder::new());
    let server = start_server(address, "-transfer:1000 -serverexitlimit:1", &folder);
    let taken = TcpListener::bind((own, 22_222)).unwrap();
    let words = format!(
        "-target:{address} -bind:{own} -localport:22222 -transfer:1000 -connections:1 -iterations:1"
    );
    let client = start(&words, &folder);
    thread::sleep(Duration::from_millis(500));
    drop(taken);
    let client = client.wait();
    assert_eq!((client.exit_code, client.totals()), (0, [1, 0, 0]), "{client:?}");
    assert!(client.stdout.contains(&format!("[{own}:22222 - ")), "{client:?}");
    assert_eq!(server.wait().exit_code, 0);
}

#[test]
fn peers_that_never_read_cost_a_server_no_memory_and_keep_nobody_out() {
    // What a peer sends of a connection.
    for (pattern, bytes) in [("pull", 0), ("duplex", 4_000_000)] {
        let (address, folder) = (own_address(), Folder::new());
        // More than the kernel holds of a connection.
        let words = format!("-pattern:{pattern} -transfer:8000000");
        let own = "-sendbufvalue:100000 -connectionfilename:s.csv -consoleverbosity:0";
        let server = start_server(address, &format!("{words} {own}"), &folder);
        let client = format!("{words} -connections:4 -iterations:2");
        assert_eq!(run_client(address, &client, &folder).totals(), [8, 0, 0]);
        let before_bytes = server.resident_bytes();
        let sent = data(0, bytes);
        let crowd = (0..20).map(|_| {
            let mut peer = TcpStream::connect((address, PORT)).unwrap();
            peer.read_exact(&mut [0; 37]).unwrap();
            peer.write_all(&sent).unwrap();
            peer
        });
        let crowd: Vec<_> = crowd.collect();
        assert_eq!(run_client(address, &client, &folder).totals(), [8, 0, 0]);
        let more_bytes = server.resident_bytes().saturating_sub(before_bytes);
        assert!(more_bytes < 20 << 20, "{pattern}: {more_bytes} bytes more");
        // What they have not read is lost: their ends are resets.
        drop(crowd);
        await_lines(&folder.path("s.csv"), "10054", 20);
        let ended = server.interrupt();
        assert_eq!(ended.totals(), [16, 20, 0], "{pattern}: {ended:?}");
    }
}
