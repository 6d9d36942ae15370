//! The command lines of the example scripts that netperf ships, and of kits that call it, with short tests.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::server_process::{Ended, Netserver, netperf, value};

fn figure(ended: &Ended, name: &str) -> f64 {
    value(&ended.stdout, name).parse().unwrap()
}

/// Options of the scripts, each with its own sizes.
#[test]
fn the_command_lines_of_the_shipped_scripts_have_results() {
    let server = Netserver::start("");
    std::thread::scope(|scope| {
        for words in [
            // udp_rr_script
            "-l -50 -i 10,2 -I 99,10 -c 100 -C 100 -t UDP_RR -P 0 -- -r 100,200 -s -1 -S -1",
            // packet_byte_script
            "-l -50 -t TCP_RR -i 30,3 -I 99,5 -- -r 65483,1 -s -1 -S -1",
            "-l -100000 -t TCP_STREAM -i 30,3 -I 99,5 -- -m 65484 -s -1 -S -1 -D",
            "-l -50 -t TCP_CRR -i 30,3 -I 99,5 -- -s -1 -S -1",
            // tcp_rr_script
            "-l -50 -t TCP_RR -i 10,3 -I 99,5 -- -r 128,8192 -s 0 -S 0",
            // tcp_stream_script, tcp_range_script, udp_stream_script
            "-l -100000 -t TCP_STREAM -i 10,2 -I 99,5 -- -m 4096 -s 128K -S 128K",
            "-l -100000 -t TCP_STREAM -i 10,3 -I 99,10 -- -m 32768 -s 8192 -S 8192",
            "-l -100 -t TCP_STREAM -i 10,3 -I 99,5 -- -m 1 -s 32768 -S 32768",
            "-l 1 -i 3,2 -I 99,10 -t UDP_STREAM -- -m 1472 -s 32768 -S 32768",
            // snapshot_script
            "-l -50 -t UDP_RR -i 10,2 -I 99,10 -c 100 -C 100 -- -r 516,4",
            // arr_script
            "-t TCP_RR -l -50 -P0 -v0 -- -r 1,1 -s 8192 -S 8192",
            // find_max_burst.sh
            "-t UDP_RR -P 0 -l -50 -- -b 2 -D -o throughput -e 1 -s 1M -S 1M",
            // bloat.sh
            "-l -50 -t TCP_RR -D -0.5 -v 2 -- -r 1",
            "-l 1 -t TCP_STREAM -D 0.25 -v 2 -- -m 1K",
            // runemomniagg2.sh, runemomniaggdemo.sh
            "-P 0 -t omni -c -C -l 1 -i 3,3 -- -o all -H 127.0.0.1 -s 1M -S 1M -M ,64K",
            "-D 0.5 -c -C -f x -P 0 -t omni -l -50 -v 2 -- -r 1 -b 4 -e 1 -T udp -u text -k all",
            "-D 0.5 -c -C -f m -P 0 -t omni -l -50 -v 2 -- -r 64K -s 1M -S 1M -b 12 -o",
        ] {
            let server = &server;
            scope.spawn(move || {
                let ended = server.netperf(words);
                let told = format!("{words}: {}{}", ended.stdout, ended.stderr);
                // A short test may well not agree with its repetitions.
                let is_quiet = ended.stderr.is_empty() || ended.stderr.contains("!!! WARNING");
                assert!(ended.exit_code == 0 && is_quiet, "{told}");
                assert!(ended.stdout.contains(|c: char| c.is_ascii_digit()), "{told}");
            });
        }
    });
    for words in ["-t LOC_CPU", "-t REM_CPU", "-t TCP_MSS -P 0 -v 0", "-t uuid"] {
        let ended = netperf(&format!("-H 127.0.0.1 -p {} {words}", server.port));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{words}");
        assert!(!ended.stdout.trim().is_empty(), "{words}");
    }
}

/// As runemomniaggdemo.sh ends its tests.
#[test]
fn an_alarm_ends_a_test_with_its_result() {
    let server = Netserver::start("");
    for test in ["TCP_STREAM", "TCP_RR", "UDP_RR"] {
        let words = format!(
            "netperf -H 127.0.0.1 -p {} -D 0.1 -l 100 -P 0 -t {test} -- -k ELAPSED_TIME,THROUGHPUT",
            server.port
        );
        let mut child = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut stdout = String::new();
        output.read_line(&mut stdout).unwrap();
        assert!(stdout.starts_with("NETPERF_INTERIM_RESULT"), "{test}: {stdout}");
        kill_process(Pid::from_child(&child), Signal::ALARM).unwrap();
        output.read_to_string(&mut stdout).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{test}: {stdout}");
        let figure = |name| value(&stdout, name).parse::<f64>().unwrap();
        assert!(figure("THROUGHPUT") > 0.0, "{test}: {stdout}");
        assert!(figure("ELAPSED_TIME") < 60.0, "{test}: {stdout}");
    }
}

#[test]
fn a_socket_buffer_of_0_is_the_smallest_that_the_kernel_has() {
    let server = Netserver::start("");
    let sizes = "LSS_SIZE,LSR_SIZE,RSS_SIZE,RSR_SIZE";
    let of = |told: &str| {
        let ended =
            server.netperf(&format!("-P 0 -t TCP_RR -l -10 -- -s {told} -S {told} -k {sizes}"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{told}");
        ["LSS_SIZE", "LSR_SIZE", "RSS_SIZE", "RSR_SIZE"].map(|name| figure(&ended, name))
    };
    let [least, one, usual] = ["0", "1", "-1"].map(of);
    // The kernel has a least size, whatever is asked for.
    assert_eq!(least, one);
    assert_eq!((least[0], least[1]), (least[2], least[3]));
    assert!(usual[2] > least[2] && usual[3] > least[3], "{least:?} {usual:?}");
}

#[test]
fn the_segment_size_is_that_of_the_connection_and_not_what_was_asked_for() {
    let server = Netserver::start("");
    let sizes = ["TCP_STREAM", "TCP_MAERTS", "TCP_RR", "TCP_CRR", "TCP_SENDFILE"].map(|test| {
        let ended =
            server.netperf(&format!("-P 0 -t {test} -l -1000 -- -G 1000b -k TRANSPORT_MSS"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{test}");
        figure(&ended, "TRANSPORT_MSS")
    });
    let stamps = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").unwrap();
    // Timestamps take twelve bytes of each segment.
    let expected = if stamps.trim() == "0" { 1000.0 } else { 988.0 };
    assert_eq!(sizes, [expected; 5]);
}

#[test]
fn the_command_line_has_the_programs_path() {
    let server = Netserver::start("");
    let ended = server.netperf("-P 0 -t TCP_RR -l -10 -- -k COMMAND_LINE");
    let program = env!("CARGO_BIN_EXE_linerate");
    let expected = format!(
        "COMMAND_LINE=\"{program} netperf -H 127.0.0.1 -p {} -P 0 -t TCP_RR -l -10 -- -k COMMAND_LINE\"\n",
        server.port
    );
    assert_eq!((ended.exit_code, ended.stdout), (0, expected));
}
