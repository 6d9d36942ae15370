//! Every test from the command line, read as wrappers read it.

use std::io::Read as _;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

use super::server_process::{Netserver, netperf, netperf_of, netperf_with, value};

/// The numbers of the last line that has any.
fn numbers(stdout: &str) -> Vec<f64> {
    let numbers = |line: &str| line.split_whitespace().map(|word| word.parse().ok()).collect();
    stdout.lines().rev().find_map(numbers).unwrap_or_default()
}

fn figure(stdout: &str, name: &str) -> f64 {
    value(stdout, name).parse().unwrap()
}

#[test]
fn bulk_is_counted_alike_at_both_ends() {
    let server = Netserver::start("");
    for (test, sent, received) in [
        ("TCP_STREAM", "LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"),
        ("TCP_SENDFILE", "LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"),
        ("TCP_MAERTS", "REMOTE_BYTES_SENT", "LOCAL_BYTES_RECVD"),
    ] {
        let ended = server.netperf(&format!(
            "-P 0 -t {test} -l -3000000 -- -m 10000,10000 -k {sent},{received},THROUGHPUT"
        ));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        let out = &ended.stdout;
        assert_eq!(value(out, sent), value(out, received), "{test}");
        assert!(figure(out, received) >= 3e6, "{test}: {out}");
        assert!(figure(out, "THROUGHPUT") > 0.0, "{test}: {out}");
    }
}

#[test]
fn transactions_come_to_the_number_asked_for() {
    let server = Netserver::start("");
    for test in ["TCP_RR", "TCP_CRR", "TCP_CC"] {
        let ended = server.netperf(&format!("-P 0 -t {test} -l -200"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        let first = numbers(ended.stdout.lines().next().unwrap_or_default());
        assert_eq!(first.len(), 6, "{test}: {}", ended.stdout);
        assert!(first[5] > 0.0, "{test}: {}", ended.stdout);
    }
    let ended = server.netperf("-P 0 -t TCP_RR -l -200 -- -r 10,20 -b 3 -k all");
    let out = &ended.stdout;
    assert_eq!((figure(out, "REQUEST_SIZE"), figure(out, "RESPONSE_SIZE")), (10.0, 20.0));
    assert!(figure(out, "LOCAL_BYTES_SENT") >= 2000.0, "{out}");
    let in_order = ["MIN_LATENCY", "P50_LATENCY", "P99_LATENCY", "MAX_LATENCY"];
    assert!(in_order.map(|name| figure(out, name)).is_sorted(), "{out}");
}

#[test]
fn connections_come_at_the_pace_asked_for() {
    let server = Netserver::start("");
    for test in ["TCP_CRR", "TCP_CC"] {
        let figures = "-k ELAPSED_TIME,RT_LATENCY,MIN_LATENCY,MAX_LATENCY";
        let ended = server.netperf(&format!("-P 0 -t {test} -l -5 -b 2 -w 400m -- {figures}"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        let out = &ended.stdout;
        // The fifth one begins 800 ms after the first.
        assert!(figure(out, "ELAPSED_TIME") >= 0.79, "{test}: {out}");
        // A round trip isn't the pace; one that was held up is no longer than the longest.
        assert!(figure(out, "MIN_LATENCY") < 100_000.0, "{test}: {out}");
        assert!(figure(out, "RT_LATENCY") <= 1.01 * figure(out, "MAX_LATENCY"), "{test}: {out}");
    }
}

#[test]
fn connections_whose_port_is_the_servers_own_take_others() {
    let server = Netserver::start("");
    for test in ["TCP_CRR", "TCP_CC"] {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let ended = server.netperf(&format!("-P 0 -t {test} -l -50 -- -P {free} -k THROUGHPUT"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        assert!(figure(&ended.stdout, "THROUGHPUT") > 0.0, "{test}: {}", ended.stdout);
    }
}

#[test]
fn connections_that_come_and_go_have_an_address_and_a_segment_size() {
    let server = Netserver::start("");
    let figures = "-k SOURCE_ADDR,TRANSPORT_MSS,LOCAL_SEND_SIZE,LOCAL_RECV_SIZE";
    for (test, local, shown) in [
        ("TCP_CRR", "", "0.0.0.0"),
        ("TCP_CRR", "-L 127.0.0.2", "127.0.0.2"),
        ("TCP_CC", "", "0.0.0.0"),
    ] {
        let ended = server.netperf(&format!("-P 0 -t {test} -l -5 -- {local} {figures}"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        assert_eq!(value(&ended.stdout, "SOURCE_ADDR"), shown, "{test}");
        assert!(figure(&ended.stdout, "TRANSPORT_MSS") >= 536.0, "{test}: {}", ended.stdout);
        // Nobody asked for them: they are what requests and responses are.
        assert!(ended.stdout.ends_with("LOCAL_SEND_SIZE=0\nLOCAL_RECV_SIZE=0\n"), "{test}");
    }
}

#[test]
fn sizes_that_nobody_asked_for_are_0_at_this_end() {
    let server = Netserver::start("");
    for (test, sizes) in [
        ("-t TCP_STREAM -- -m 1000", [1000, 0]),
        ("-t TCP_MAERTS -- -M ,1000", [0, 1000]),
        ("-t UDP_STREAM -- -m 1000", [1000, 0]),
        ("-t TCP_RR -- -r 5,6", [0, 0]),
        ("-t UDP_RR -- -m 10 -M ,40", [10, 40]),
    ] {
        let figures = "-k LOCAL_SEND_SIZE,LOCAL_RECV_SIZE,REMOTE_CONG_CONTROL";
        let ended = server.netperf(&format!("-P 0 -l -10 {test} {figures}"));
        let [send, receive] = sizes;
        let shown = format!("LOCAL_SEND_SIZE={send}\nLOCAL_RECV_SIZE={receive}\n");
        assert!(ended.stdout.starts_with(&shown), "{test}: {}", ended.stdout);
        let congestion = value(&ended.stdout, "REMOTE_CONG_CONTROL");
        assert_eq!(congestion.is_empty(), test.starts_with("-t UDP"), "{test}: {congestion}");
    }
}

#[test]
fn connections_that_fail_come_at_the_pace_too() {
    // Bound, and not listened on.
    let deaf = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&deaf, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddrV4::try_from(getsockname(&deaf).unwrap()).unwrap();
    let port = address.port();
    let test = "-N -H 127.0.0.1 -P 0 -t TCP_CRR -l 1 -b 1 -w 300m";
    let ended = netperf(&format!("{test} -- -P ,{port} -k TRANSACTION_RATE"));
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("not one connection was made in "), "{}", ended.stderr);
    let told = ended.stderr.lines().find(|line| line.contains("failures of the kind")).unwrap();
    let count: u32 = told.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((1..=4).contains(&count), "{told}");
}

#[test]
fn datagrams_are_sent_and_asked() {
    let server = Netserver::start("");
    let ended = server.netperf("-P 0 -t UDP_STREAM -l 1 -- -m 1000 -R 1");
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    let lines: Vec<Vec<f64>> = ended.stdout.lines().map(numbers).collect();
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [6, 4, 0], "{}", ended.stdout);
    assert_eq!(lines[0][1], 1000.0);
    assert!(lines[0][3] >= lines[1][2] && lines[1][2] > 0.0, "{}", ended.stdout);
    let ended = server.netperf("-P 0 -t UDP_RR -l 1");
    assert!(numbers(ended.stdout.lines().next().unwrap_or_default())[5] > 0.0, "{}", ended.stdout);
}

#[test]
fn datagrams_come_to_the_number_asked_for() {
    let server = Netserver::start("");
    for test in ["-t UDP_RR -l -100 --", "-t omni -l -100 -- -d rr -T udp"] {
        let ended = server.netperf(&format!("-P 0 {test} -b 3 -k THROUGHPUT,LOCAL_SEND_CALLS"));
        assert_eq!(ended.exit_code, 0, "{test}: {}", ended.stderr);
        assert_eq!(value(&ended.stdout, "LOCAL_SEND_CALLS"), "100", "{test}: {}", ended.stdout);
        assert!(figure(&ended.stdout, "THROUGHPUT") > 0.0, "{test}: {}", ended.stdout);
    }
    let figures = "-k LOCAL_BYTES_SENT,REMOTE_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_RECVD";
    for (test, sent, received) in [
        ("-t UDP_STREAM -l -20001 -- -m 1000", "LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"),
        ("-t omni -l -20001 -- -d recv -T udp -m ,1000", "REMOTE_BYTES_SENT", "LOCAL_BYTES_RECVD"),
    ] {
        let ended = server.netperf(&format!("-P 0 {test} {figures}"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        // As many whole datagrams as it takes.
        assert_eq!(value(&ended.stdout, sent), "21000", "{test}: {}", ended.stdout);
        assert!((1.0..=21_000.0).contains(&figure(&ended.stdout, received)), "{}", ended.stdout);
    }
}

#[test]
fn every_call_of_bulk_is_timed_where_that_is_asked_for() {
    let server = Netserver::start("");
    for (test, calls) in [("TCP_STREAM", "SEND"), ("TCP_MAERTS", "RECV"), ("UDP_STREAM", "SEND")] {
        let ended = server.netperf(&format!(
            "-P 0 -v 2 -l 1 -t {test} -- -m 1000 -k LOCAL_{calls}_CALLS,MIN_LATENCY,P50_LATENCY,\
             P99_LATENCY,MAX_LATENCY"
        ));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        let out = &ended.stdout;
        let total = out.lines().find_map(|line| line.strip_prefix("HIST_TOTAL:")).unwrap();
        assert_eq!(total.trim(), value(out, &format!("LOCAL_{calls}_CALLS")), "{test}: {out}");
        let in_order = ["MIN_LATENCY", "P50_LATENCY", "P99_LATENCY", "MAX_LATENCY"];
        let in_order = in_order.map(|name| figure(out, name));
        assert!(in_order.is_sorted() && in_order[0] >= 0.0, "{test}: {out}");
    }
    let untimed = server.netperf("-P 0 -l -100000 -t TCP_STREAM -- -k THROUGHPUT");
    assert_eq!(untimed.stdout.lines().count(), 1, "{}", untimed.stdout);
}

#[test]
fn interim_results_and_processors_are_told_as_wrappers_read_them() {
    let server = Netserver::start("");
    let ended = server.netperf(
        "-P 0 -v 0 -D 0.2 -l 2 -t TCP_STREAM -- -k THROUGHPUT,LOCAL_CONG_CONTROL,ELAPSED_TIME",
    );
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    let out = &ended.stdout;
    assert!(figure(out, "NETPERF_INTERIM_RESULT[0]") > 0.0, "{out}");
    assert_eq!(value(out, "NETPERF_UNITS[0]"), "10^6bits/s");
    assert!(figure(out, "NETPERF_ENDING[1]") > figure(out, "NETPERF_ENDING[0]"), "{out}");
    let ended = server.netperf("-P 0 -c -C -l 1 -t TCP_RR -- -k all");
    let out = &ended.stdout;
    for name in ["LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL"] {
        assert!((0.0..=100.0).contains(&figure(out, name)), "{out}");
    }
    assert!(figure(out, "LOCAL_CPU_COUNT") >= 1.0, "{out}");
}

#[test]
fn iterations_stop_when_there_are_enough() {
    let server = Netserver::start("");
    let ended =
        server.netperf("-P 0 -I 95,0.0001 -i 4,3 -t TCP_RR -l -50 -- -k CONFIDENCE_ITERATION");
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (0, "CONFIDENCE_ITERATION=4\n"));
    assert!(ended.stderr.starts_with("!!! WARNING\n"), "{}", ended.stderr);
    let ended = server.netperf("-P 0 -I 95,0.0001 -i 3,3 -t TCP_RR -l -50");
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("!!! WARNING\n"), "{}", ended.stdout);
}

#[test]
fn informational_requests_are_answered_without_a_test() {
    let server = Netserver::start("");
    assert_eq!(server.netperf("-t LOC_CPU").stdout, "100");
    assert_eq!(server.netperf("-t REM_CPU").stdout, "100");
    let uuid = server.netperf("-t UUID").stdout;
    assert_eq!(
        (uuid.len(), uuid.matches('-').count(), uuid.as_bytes()[14]),
        (36, 4, b'4'),
        "{uuid}"
    );
    assert_eq!(server.netperf("-t UUID -- -u text").stdout, "text");
    let ended = server.netperf("-t TCP_MSS");
    assert!(ended.stdout.contains("Segment\nSize (bytes)\n\n"), "{}", ended.stdout);
}

#[test]
fn a_server_that_is_not_there_is_told_as_the_original_tells_it() {
    let port = {
        let server = Netserver::start("");
        server.port
    };
    let ended = netperf(&format!("-H 127.0.0.1 -4 -p {port}"));
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (255, ""));
    assert_eq!(
        ended.stdout,
        format!(
            "establish control: are you sure there is a netserver listening on 127.0.0.1 at port \
             {port}?\nestablish_control could not establish the control connection from 0.0.0.0 \
             port 0 address family AF_INET to 127.0.0.1 port {port} address family AF_INET\n"
        )
    );
    let ended = netperf("-H no-such-host.invalid");
    assert_eq!(ended.exit_code, 255);
    assert!(ended.stdout.contains("Netperf could not resolve no-such-host.invalid as a host name"));
}

#[test]
fn a_netserver_of_before_2_6_is_spoken_to_in_its_messages() {
    let server = Netserver::start("");
    for test in ["TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR"] {
        let words = format!("-H 127.0.0.1 -p {} -P 0 -l -500 -t {test}", server.port);
        let ended = netperf_of("2.4.5", &words);
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let words = format!("-H 127.0.0.1 -p {}", listener.local_addr().unwrap().port());
    let client = std::thread::spawn(move || netperf_of("2.5.0", &words).exit_code);
    let limit = Some(Duration::from_secs(20));
    set_socket_timeout(&listener, Timeout::Recv, limit).unwrap();
    let mut control = listener.accept().unwrap().0;
    control.set_read_timeout(limit).unwrap();
    let mut request = [0; 256];
    control.read_exact(&mut request).unwrap();
    // TCP_STREAM as it was before there was OMNI; nothing comes behind it.
    assert_eq!(request[..4], [0, 0, 0, 10]);
    control.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    // However it ends.
    let _end = control.read_to_end(&mut rest);
    assert_eq!(rest.len(), 0);
    assert_ne!(client.join().unwrap(), 0);
    let ended = netperf_of("1.0", "-H 127.0.0.1");
    assert_eq!((ended.exit_code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("it can be 2.4, 2.5, 2.6 or 2.7"), "{}", ended.stderr);
}

#[test]
fn a_passphrase_opens_the_server() {
    let server = Netserver::start("-Z sesame");
    assert_eq!(server.netperf("-Z sesame -t TCP_RR -l -10").exit_code, 0);
    let ended = server.netperf("-Z other -t TCP_RR -l -10");
    assert_ne!(ended.exit_code, 0, "{}", ended.stdout);
}

#[test]
fn dump_tcp_info_prints_the_kernels_figures_after_each_test() {
    let server = Netserver::start("");
    let names = [
        "tcpi_rto tcpi_ato tcpi_pmtu tcpi_rcv_ssthresh",
        "tcpi_rtt tcpi_rttvar tcpi_snd_ssthresh tpci_snd_cwnd",
        "tcpi_reordering tcpi_total_retrans",
    ];
    for (test, times) in [
        ("TCP_STREAM -l 1 -i 3,3", 3),
        ("TCP_MAERTS -l -100000", 1),
        ("TCP_SENDFILE -l -100000", 1),
        ("TCP_RR -l -10", 1),
        ("UDP_RR -l -10", 0),
        ("TCP_CRR -l -10", 0),
    ] {
        let options = format!("-H 127.0.0.1 -p {} -P 0 -t {test}", server.port);
        let ended = netperf_with("DUMP_TCP_INFO", &options);
        assert_eq!(ended.exit_code, 0, "{test}: {}", ended.stderr);
        let lines: Vec<Vec<&str>> = ended.stderr.lines().map(|l| l.split(' ').collect()).collect();
        let told = |line: &Vec<&str>| line.iter().step_by(2).copied().collect::<Vec<_>>().join(" ");
        assert_eq!(lines.iter().map(told).collect::<Vec<_>>(), names.repeat(times), "{test}");
        // The retransmission time-out and the path's MTU are never nothing.
        for line in lines.iter().filter(|line| line[0] == "tcpi_rto") {
            let numbers = [1, 5].map(|place| line[place].parse::<u32>().unwrap());
            assert!(numbers[0] >= 1000 && numbers[1] >= 576, "{test}: {line:?}");
        }
    }
    assert_eq!(server.netperf("-P 0 -t TCP_RR -l -10").stderr, "");
}
