//! Peers that want a server to fail, and ports that somebody else has.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::fixture::{
    Folder, PORT, await_listener, own_address, start, start_command, start_server,
};
use crate::peer::be_client;

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
    let ended = server.interrupt();
    assert_eq!(ended.totals()[0], 4, "{ended:?}");
}

#[test]
fn an_idle_time_out_makes_room_for_others() {
    let (server, address) = limited_server(60, "-transfer:1000 --idle-timeout:500");
    let _crowd: Vec<_> = (0..100).map(|_| TcpStream::connect((address, PORT)).unwrap()).collect();
    be_client(TcpStream::connect((address, PORT)).unwrap(), "push", &TURNS, false);
    let ended = server.interrupt();
    assert_eq!(ended.totals()[0], 1, "{ended:?}");
    assert!(ended.totals()[1] >= 50, "{ended:?}");
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
