//! A reader of the console that is slower than connections come and go.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::fixture::{Folder, own_address, start_server};

#[test]
fn a_slow_reader_delays_neither_rows_nor_the_time_limit() {
    let (address, folder) = (own_address(), Folder::new());
    let server = start_server(address, "-transfer:64 -consoleverbosity:0", &folder);
    let words = format!("-target:{address} -connections:20 -transfer:64 -consoleverbosity:5");
    let mut client = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("ctstraffic")
        .args(words.split(' '))
        .args(["-statusupdate:200", "-timelimit:2000"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let (mut rows, mut read) = (0, 0);
    for line in lines.map(Result::unwrap) {
        let is_row = line.split_whitespace().count() == 7 && line.ends_with(char::is_numeric);
        rows += usize::from(is_row);
        read += 1;
        // Less than a thousand lines a second, of ten thousands.
        thread::sleep(Duration::from_millis(1));
    }
    let took = began.elapsed();
    assert_eq!(client.wait().unwrap().code(), Some(0));
    assert!(took < Duration::from_secs(8), "{took:?} for {read} lines");
    assert!(rows >= 5, "{rows} rows of {read} lines in {took:?}");
    server.interrupt();
}
