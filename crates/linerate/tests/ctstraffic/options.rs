//! Options that reach the connections: what the other end and the files see of them.

use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use crate::fixture::{Folder, await_listener, own_address, run_client, start, start_server};

#[test]
fn transfers_whose_ranges_both_ends_draw_fail_as_a_mismatch_or_succeed_and_the_run_goes_on() {
    let (address, folder) = (own_address(), Folder::new());
    // Idle connections are those whose client has less to send than its server awaits.
    let words = "-pattern:duplex -transfer:[10000,10200] --idle-timeout:300";
    let files = "-connectionfilename:server.csv -consoleverbosity:0";
    let server = start_server(address, &format!("{words} {files}"), &folder);
    let words = format!(
        "{words} -shutdown:random -connections:20 -iterations:3 -connectionfilename:client.csv"
    );
    let client = run_client(address, &words, &folder);
    let rows = folder.rows("client.csv");
    assert_eq!(rows.len(), 60, "{client:?}");
    let results = [
        "Succeeded",
        "ErrorNotAllDataTransferred",
        "ErrorTooMuchDataTransferred",
        "ErrorDataDidNotMatchBitPattern",
        "10054: Connection reset by peer",
        "10060: Connection timed out",
    ];
    assert!(rows.iter().all(|row| results.contains(&&*row[8])), "{rows:?}");
    let [completed, network, data] = client.totals();
    assert_eq!(completed + network + data, 60, "{client:?}");
    assert!(network + data > 30, "{client:?}");
    let ended = server.interrupt();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
}

#[test]
fn ranges_of_buffers_and_rates_change_no_byte() {
    let (address, folder) = (own_address(), Folder::new());
    let words = "-pattern:duplex -transfer:300001 -buffer:[100,9000] -ratelimit:[1000000,9000000]";
    let server = start_server(address, &format!("{words} -serverexitlimit:8"), &folder);
    let client = format!("{words} -connections:4 -iterations:2 -shutdown:random");
    let client = run_client(address, &client, &folder);
    let server = server.wait();
    assert_eq!((client.totals(), server.totals()), ([8, 0, 0], [8, 0, 0]), "{client:?}");
    let range = "[100, 9000] bytes";
    assert!(client.stdout.contains(range), "{client:?}");
}

#[test]
fn several_receives_of_connections_whose_data_is_not_verified_are_whole() {
    for pattern in ["push", "pull", "pushpull", "duplex"] {
        let (address, folder) = (own_address(), Folder::new());
        let words = format!(
            "-pattern:{pattern} -transfer:3000001 -verify:connection -prepostrecvs:3 -prepostsends:0"
        );
        let server = start_server(address, &format!("{words} -serverexitlimit:4"), &folder);
        let client = format!("{words} -connections:2 -iterations:2");
        let client = run_client(address, &client, &folder);
        let server = server.wait();
        assert_eq!((client.totals(), server.totals()), ([4, 0, 0], [4, 0, 0]), "{client:?}");
    }
}

#[test]
fn connections_by_name_end_by_a_reset() {
    let (address, folder) = (own_address(), Folder::new());
    let server = start_server(address, "-transfer:1000 -serverexitlimit:2", &folder);
    let words = "-transfer:1000 -conn:ConnectByName -connections:1 -iterations:2";
    let client = run_client(address, words, &folder);
    let server = server.wait();
    assert_eq!((client.totals(), server.totals()), ([2, 0, 0], [2, 0, 0]), "{client:?}");
    // A graceful end asked for beside it changes nothing: the client's ports are not kept (TIME_WAIT).
    let text = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let shown = format!("{:08X}:115C 06 ", u32::from_ne_bytes(address.octets()));
    assert!(!text.contains(&shown), "{text}");
}

#[test]
fn both_protocols_run_over_ipv6() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return;
    }
    let folder = Folder::new();
    let port = 20_000 + (std::process::id() % 10_000) as u16;
    let stream = "-protocol:udp -bitspersecond:800000 -framerate:50 -streamlength:1";
    for (words, client_words) in
        [("-pattern:duplex -transfer:100000", "-connections:1"), (stream, "-bufferdepth:3")]
    {
        let words = format!("{words} -port:{port}");
        let files = "-connectionfilename:server.csv -serverexitlimit:1";
        let server = start(&format!("-listen:::1 {words} {files}"), &folder);
        // A START that comes too early is sent again.
        if words.starts_with("-pattern") {
            await_listener(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        }
        let client = format!("-target:::1 {words} {client_words} -iterations:1");
        let client = start(&client, &folder).wait();
        assert_eq!((client.exit_code, client.totals()), (0, [1, 0, 0]), "{client:?}");
        assert!(client.stdout.contains(&format!("[::1]:{port}]")), "{client:?}");
        server.wait();
        assert_eq!(folder.rows("server.csv")[0][1], format!("[::1]:{port}"));
    }
}

#[test]
fn the_first_error_aborts_a_program_that_is_told_to_break() {
    let address = own_address();
    let ended = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["ctstraffic", &format!("-target:{address}"), "-onerror:break"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ended.status.signal().is_some(), "{ended:?}");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(errors.matches("connect failed (10061)").count(), 1, "{errors}");
}

#[test]
fn rows_and_errors_have_no_lines_of_connections_beside_them() {
    let (address, folder) = (own_address(), Folder::new());
    let words = "-connections:1 -iterations:2 -consoleverbosity:2";
    let client = run_client(address, words, &folder);
    assert!(client.stdout.contains("TimeSlice      SendBps"), "{client:?}");
    assert!(!client.stdout.contains("TCP connection"), "{client:?}");
    assert_eq!(client.stderr.matches("connect failed (10061)").count(), 2, "{client:?}");
}

#[test]
fn a_client_whose_datagrams_are_shorter_than_the_servers_fails() {
    let (address, folder) = (own_address(), Folder::new());
    let stream = "-protocol:udp -bitspersecond:2000000 -framerate:50 -streamlength:1";
    let server = format!("-listen:{address} {stream} -datagrambytesize:1400 -serverexitlimit:1");
    let server = start(&server, &folder);
    let client = format!("{stream} -datagrambytesize:1000 -bufferdepth:3 -iterations:1");
    let client = run_client(address, &client, &folder);
    assert_eq!((client.exit_code, client.totals()), (1, [0, 1, 0]), "{client:?}");
    assert!(client.stderr.contains("failed (10040) "), "{client:?}");
    assert_eq!(server.wait().totals(), [1, 0, 0]);
}

#[test]
fn threads_run_on_the_processors_of_the_named_node() {
    let Ok(list) = std::fs::read_to_string("/sys/devices/system/node/node0/cpulist") else {
        return;
    };
    let (address, folder) = (own_address(), Folder::new());
    let server = start_server(address, "-transfer:1000 -cpusetgroupid:0", &folder);
    let words = "-transfer:1000 -cpusetgroupid:0 -connections:2 -iterations:2";
    assert_eq!(run_client(address, words, &folder).totals(), [4, 0, 0]);
    assert!(server.thread_processors().contains(&list.trim().to_owned()), "{list}");
    server.interrupt();
    let words = "-transfer:1000 -cpusetgroupid:4000 -connections:1 -iterations:1";
    let refused = run_client(address, words, &folder);
    assert_eq!(refused.exit_code, 13, "{refused:?}");
    assert!(refused.stderr.contains("-CpuSetGroupId"), "{refused:?}");
}
