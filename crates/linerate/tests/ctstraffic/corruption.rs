//! Bits that are flipped on the way, by a proxy.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;

use crate::fixture::{Folder, PORT, own_address, run_client, start_server};

/// Bytes of each connection.
const TOTAL: u64 = 400_000;

/// Copies one direction, with one bit flipped at this offset.
fn copy(mut from: TcpStream, mut to: TcpStream, flip_at: Option<u64>) {
    let (mut buffer, mut offset) = (vec![0; 10_000], 0);
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if let Some(at) = flip_at.and_then(|at| at.checked_sub(offset))
            && let Some(byte) = buffer[..length].get_mut(at as usize)
        {
            *byte ^= 0x20;
        }
        offset += length as u64;
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _gone = to.shutdown(Shutdown::Write);
}

/// Every fourth connection has one bit flipped, on the way to the server; its offset in the data.
fn flip_at(number: u64) -> Option<u64> {
    (number % 4 == 1).then(|| (number * 104_729) % TOTAL)
}

fn proxy(listener: TcpListener, server: Ipv4Addr, connections: u64) {
    for number in 0..connections {
        let client = listener.accept().unwrap().0;
        let server = TcpStream::connect((server, PORT)).unwrap();
        let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || copy(forth, server, flip_at(number)));
        thread::spawn(move || copy(back, client, None));
    }
}

#[test]
fn every_flipped_bit_is_found_at_its_offset_and_the_others_go_on() {
    let (server_address, address, folder) = (own_address(), own_address(), Folder::new());
    let words = format!(
        "-transfer:{TOTAL} -serverexitlimit:40 -connectionfilename:server.csv -errorfilename:errors.txt"
    );
    let server = start_server(server_address, &words, &folder);
    let listener = TcpListener::bind((address, PORT)).unwrap();
    let relaying = thread::spawn(move || proxy(listener, server_address, 40));
    let words = format!("-transfer:{TOTAL} -connections:4 -iterations:10 -shutdown:rude");
    let client = run_client(address, &words, &folder);
    relaying.join().unwrap();
    let server = server.wait();
    assert_eq!((server.exit_code, server.totals()), (10, [30, 0, 10]), "{server:?}");
    assert_eq!(client.totals()[0], 30, "{client:?}");
    let errors = folder.read("errors.txt");
    let wrong: Vec<&str> = errors.lines().filter(|line| line.contains("wrong data")).collect();
    assert_eq!(wrong.len(), 10, "{errors}");
    for at in (0..40).filter_map(flip_at) {
        let number = (at / 2) % 0x8000;
        let byte = if at.is_multiple_of(2) { number & 0xff } else { number >> 8 };
        let found = byte ^ 0x20;
        let text = format!("byte {at} is {found:#04x}, expected {byte:#04x}; 1 of 1 bytes");
        let line = wrong.iter().find(|line| line.contains(&text));
        let line = line.unwrap_or_else(|| panic!("no '{text}' in {errors}"));
        // The line has the id of a connection that has failed.
        let id = line.split('[').nth(2).unwrap().split(']').next().unwrap();
        let row = folder.rows("server.csv").into_iter().find(|row| row[9] == id).unwrap();
        assert_eq!(row[8], "ErrorDataDidNotMatchBitPattern");
    }
}
