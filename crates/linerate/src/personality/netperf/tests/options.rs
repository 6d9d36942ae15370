//! What each option comes to, and what is said of wrong ones.

use linerate_engine::netperf::{Dirt, Pacing, TestEnd, TestKind, TestTransport};
use linerate_personality::getopt::render_spelling;
use linerate_personality::netperf::command_line::Said;
use linerate_personality::netperf::flags::GLOBAL;
use linerate_personality::netperf::test_flags::TEST;
use linerate_personality::netperf::unit::Unit;

use super::super::planning::Work;
use super::super::reading::{Read, read};

use super::fixture::{request, said, words};

/// The options of netperf 2.7.1 before and after `--`.
const GLOBAL_LETTERS: &str = "aAbBcCdDfFhHiIjkKlLnNoOpPrsStTvVwWyYZ46";
const TEST_LETTERS: &str = "abBcCdDefFgGhHiIjkKlLmMnNoOpPqrRsStTuUVwW46";

#[test]
fn no_option_of_the_original_is_missing() {
    for (letters, table) in [(GLOBAL_LETTERS, GLOBAL), (TEST_LETTERS, TEST)] {
        let ours: Vec<char> = table.iter().filter_map(|flag| flag.short).collect();
        assert!(letters.chars().all(|letter| ours.contains(&letter)), "{ours:?}");
        assert_eq!(ours.len(), letters.len(), "{ours:?}");
        assert!(table.iter().all(|flag| !flag.help.is_empty()));
    }
}

#[test]
fn the_page_of_differences_has_every_option_as_help_has_it() {
    let page = include_str!("../../../../../../docs/compat/netperf.md");
    for flag in GLOBAL.iter().chain(TEST) {
        let spelled = render_spelling(flag).replace('|', "\\|");
        let row = format!("| `{spelled}` | {} |", flag.help.replace('|', "\\|"));
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn options_reach_the_plan() {
    let asked = request(
        "-t TCP_RR -l -500 -a 16 -A 32,8 -o ,1 -O 2, -c 100 -C -b 10,20 -w 5,7u -s 3 -S -T 0,1 -y 2,3 \
         -Y cs1,0x10 -W 4,5 -D 0.2 -j -f m -- -b 4 -D -C -a -B -f -G 1000 -K bbr,cubic -m 10,20 \
         -M 30,40 -n -p 5000,6000 -P 7,8 -q 1000 -r 9,11 -R 1 -s 1K,2K -S 3k,4k -V -e 2 -W 6",
    );
    let plan = &asked.plan;
    assert_eq!((plan.kind, plan.transport), (TestKind::RequestResponse, TestTransport::Tcp));
    assert_eq!((plan.end, plan.burst, plan.wait_s), (TestEnd::Units(500), 4, 3));
    assert_eq!((plan.request_bytes, plan.response_bytes), (9, 11));
    assert_eq!((plan.interval_ns, plan.timeout_ns), (Some(200_000_000), Some(2_000_000_000)));
    assert_eq!(plan.source_ports, Some((5000, 6000)));
    let (local, remote) = (&plan.local, &plan.remote);
    assert_eq!((local.send_alignment, local.receive_alignment), (Some(16), Some(16)));
    assert_eq!((remote.send_alignment, remote.receive_alignment), (Some(32), Some(8)));
    assert_eq!((local.send_offset, local.receive_offset), (None, Some(1)));
    assert_eq!((remote.send_offset, remote.receive_offset), (Some(2), None));
    assert_eq!((local.send_bytes, remote.send_bytes), (Some(10), Some(20)));
    assert_eq!((remote.receive_bytes, local.receive_bytes), (Some(30), Some(40)));
    assert_eq!((local.send_buffer_bytes, local.receive_buffer_bytes), (Some(1024), Some(2048)));
    assert_eq!((remote.send_buffer_bytes, remote.receive_buffer_bytes), (Some(3000), Some(4000)));
    assert_eq!((local.port, remote.port), (7, 8));
    assert_eq!(local.pacing, Some(Pacing { burst: 10, interval_us: 5000 }));
    assert_eq!(remote.pacing, Some(Pacing { burst: 20, interval_us: 7 }));
    assert_eq!(local.congestion.as_deref(), Some("bbr"));
    assert_eq!(remote.congestion.as_deref(), Some("cubic"));
    assert_eq!((local.priority, remote.priority), (Some(2), Some(3)));
    assert_eq!((local.service, remote.service), (Some(0x20), Some(0x10)));
    assert!(local.cpu && remote.cpu && local.connected && !remote.connected);
    assert_eq!((local.cpu_rate, local.bind_cpu, asked.server_cpu), (Some(100.0), Some(0), Some(1)));
    assert_eq!((local.send_width, local.receive_width), (Some(6), Some(5)));
    let options = &plan.options;
    assert!(options.no_delay && options.cork && options.defer_accept && options.keep_alive);
    assert!(options.routed && options.dont_fragment && options.no_copy && options.packet_info);
    assert_eq!((options.mss_bytes, options.most_bytes_per_s), (Some(1000), Some(1000)));
    assert_eq!(asked.unit, Unit::Mbits);
}

#[test]
fn a_burst_of_0_is_no_pace() {
    let pacing = |line: &str| {
        let plan = request(line).plan;
        (plan.local.pacing, plan.remote.pacing)
    };
    assert_eq!(pacing("-b 0"), (None, None));
    assert_eq!(pacing("-b 0 -w 0"), (None, None));
    assert_eq!(pacing("-w 0"), (None, None));
    assert_eq!(pacing("-b 0,5"), (None, Some(Pacing { burst: 5, interval_us: 1000 })));
}

#[test]
fn interim_results_come_each_second_unless_told_otherwise() {
    for (line, interval_ns) in [
        ("", None),
        ("-D 0.2", Some(200_000_000)),
        ("-D ,1000", Some(1_000_000_000)),
        ("-D 0.2 -D ,1000", Some(200_000_000)),
        ("-D -3,1000", Some(3_000_000_000)),
    ] {
        assert_eq!(request(line).plan.interval_ns, interval_ns, "{line}");
    }
}

#[test]
fn a_size_of_0_is_what_this_end_chooses() {
    let local = |line: &str| {
        let local = request(line).plan.local;
        (local.send_bytes, local.receive_bytes)
    };
    assert_eq!(local("-- -m 0 -M ,0"), (None, None));
    assert_eq!(local("-- -m 5 -M ,6 -m 0"), (None, Some(6)));
    assert_eq!(local("-- -m 5 -M 6,7 -w 8"), (Some(5), Some(7)));
}

#[test]
fn a_uuid_is_the_one_that_was_told() {
    for (line, expected) in [("-t UUID", None), ("-t UUID -- -u text", Some("text"))] {
        let Read::Work(_, Work::Uuid(told), _) = read("netperf", &words(line)) else {
            panic!("{line}");
        };
        assert_eq!(told.as_deref(), expected, "{line}");
    }
}

#[test]
fn options_of_ours_have_names() {
    assert!(request("-t TCP_RR --busy-poll").plan.busy_poll);
    assert!(request("--busy -t UDP_RR -- -r 2").plan.busy_poll);
    assert!(!request("-t TCP_RR").plan.busy_poll);
    assert!(request("-t TCP_RR --fine-latency").shown.fine_latency);
    assert!(!request("-t TCP_RR").shown.fine_latency);
}

#[test]
fn connections_without_data_are_counted_whatever_the_unit() {
    for line in ["-t TCP_CC", "-f k -t TCP_CC", "-f M -t TCP_CC", "-f u -t omni -- -c"] {
        assert_eq!(request(line).unit, Unit::Transactions, "{line}");
    }
    assert_eq!(request("-f k -t TCP_CRR").unit, Unit::Kbits);
}

#[test]
fn packets_are_routed_unless_that_is_forbidden() {
    for test in ["UDP_STREAM", "UDP_RR", "TCP_STREAM", "omni -- -T udp -d recv"] {
        let line = format!("-t {test}");
        assert!(request(&line).plan.options.routed, "{line}");
        let line = if line.contains("--") { line } else { line + " --" };
        assert!(request(&format!("{line} -R 1")).plan.options.routed, "{line}");
        assert!(!request(&format!("{line} -R 0")).plan.options.routed, "{line}");
    }
}

#[test]
fn buffers_are_written_to_and_read_of_as_told() {
    let dirt = |line: &str| {
        let plan = request(line).plan;
        (plan.local.dirt, plan.remote.dirt)
    };
    let of = |dirty_bytes, clean_bytes| Some(Dirt { dirty_bytes, clean_bytes });
    assert_eq!(dirt(""), (None, None));
    assert_eq!(dirt("-k 5"), (of(5, 5), None));
    assert_eq!(dirt("-k ,6 -K 7,8"), (of(0, 6), of(7, 8)));
    assert_eq!(dirt("-k -1,6 -K 7,8 -K -1"), (of(0, 6), None));
}

#[test]
fn without_a_control_connection_the_other_end_is_a_service_of_old() {
    for (line, port) in [
        ("-N", 9),
        ("-N -t TCP_MAERTS", 19),
        ("-N -t UDP_RR", 7),
        ("-N -t TCP_CRR -- -P 5,6", 6),
        ("-t TCP_RR", 0),
    ] {
        let asked = request(line);
        assert_eq!((asked.plan.remote.port, asked.alone), (port, line.starts_with("-N")), "{line}");
    }
}

#[test]
fn an_echo_is_as_long_as_its_request() {
    for (line, bytes) in [
        ("-N -t TCP_RR -- -r 100,200", (100, 100)),
        ("-N -t UDP_RR -- -r 100,1", (100, 100)),
        ("-N -t TCP_CRR -- -r ,5", (1, 1)),
        ("-N -t TCP_RR -- -r 100,200 -P ,6", (100, 200)),
        ("-t TCP_RR -- -r 100,200", (100, 200)),
    ] {
        let plan = request(line).plan;
        assert_eq!((plan.request_bytes, plan.response_bytes), bytes, "{line}");
    }
}

#[test]
fn iterations_are_between_3_and_30() {
    let of = |line: &str| {
        let schedule = request(line).schedule;
        (schedule.least, schedule.most, schedule.demand.map(|demand| demand.level_percent))
    };
    assert_eq!(of(""), (1, 1, None));
    assert_eq!(of("-I 95"), (3, 10, Some(95)));
    assert_eq!(of("-i 1"), (3, 3, Some(99)));
    assert_eq!(of("-i -1"), (3, 3, Some(99)));
    assert_eq!(of("-i 5,-1"), (3, 5, Some(99)));
    assert_eq!(of("-i 40,5"), (5, 30, Some(99)));
    assert_eq!(of("-i 4,9 -I 95,1"), (9, 9, Some(95)));
    assert_eq!(of("-i 3,10"), (10, 10, Some(99)));
    assert_eq!(of("-i ,5"), (5, 5, Some(99)));
    assert_eq!(of("-i ,5 -I 99"), (5, 5, Some(99)));
    assert_eq!(of("-I 99 -i ,5"), (5, 10, Some(99)));
    assert_eq!(of("-i 20,"), (3, 20, Some(99)));
    assert_eq!(of("-I 95 -i 0"), (3, 3, Some(95)));
    assert_eq!(of("-i 2,50"), (30, 30, Some(99)));
}

#[test]
fn invalid_options_are_refused_with_a_sentence() {
    for (line, sentence) in [
        ("-x", "netperf: invalid option -- 'x'\n\nUsage: netperf [global options]"),
        ("-t", "netperf: option requires an argument -- 't'\n"),
        ("-- -z", "netperf: invalid option -- 'z'\n"),
        ("-l 5q", "netperf: -l: '5q' is no number"),
        ("-f z", "netperf: -f: 'z' is no unit"),
        ("-Y nothing", "netperf: -Y: 'nothing' is no type of service"),
        ("-D 0", "netperf: -D: '0' is no interval"),
        ("-N -t REM_CPU", "netperf: REM_CPU asks the server"),
        ("-k x", "netperf: -k: 'x' is no number"),
        ("-b 1 -w 0", "netperf: -b needs an interval"),
        ("-p 70000", "netperf: -p: '70000' is no port"),
        ("-H host,5", "netperf: -H: '5' is no address family"),
        ("-- -m ,0", "netperf: -m: 0 bytes are no message"),
        ("-- -M 0", "netperf: -M: 0 bytes are no message"),
        ("-- -T sctp", "netperf: -T: 'sctp' is no protocol that we have"),
        ("-t omni -- -c -d send", "netperf: -c makes a connection for each transaction"),
        ("-t omni -- -d recv -c", "netperf: -c makes a connection for each transaction"),
        ("-t omni -- -c -m 1K", "netperf: -c makes a connection for each transaction"),
        ("-t omni -- -d up", "netperf: -d: 'up' is no direction"),
        ("-t omni -- -d -1", "netperf: -d: '-1' is no direction"),
        ("-t omni -- -d 0xg", "netperf: -d: '0xg' is no direction"),
        ("-t omni -- -T 132", "netperf: -T: '132' is no protocol that we have"),
        ("-I -1", "netperf: -I: '-1' is not between"),
        ("-s -1", "netperf: -s: '-1' is not between"),
        ("-a -1", "netperf: -a: '-1' is not between"),
        ("-- -L 10.0.0.0/x", "netperf: -L: '10.0.0.0/x' is no host and mask"),
        ("-- -H /8", "netperf: -H: '/8' is no host and mask"),
        ("-- -H ::1/129", "netperf: -H: '::1/129' is no host and mask"),
        ("--idle", "netperf: unrecognized option '--idle'\n"),
        ("-l 3G", "netperf: -l 3221225472: at most 2147483647 either way"),
    ] {
        let (stdout, stderr, exit_code) = said(line);
        assert_eq!((stdout.as_str(), exit_code), ("", 1), "{line}");
        assert!(stderr.starts_with(sentence), "{line}: {stderr}");
    }
}

#[test]
fn messages_go_to_standard_output_as_in_the_original() {
    let (stdout, _, exit_code) = said("-t bogus");
    assert!(stdout.starts_with("The test you requested (BOGUS) is unknown to this netperf.\n"));
    assert_eq!(exit_code, 1);
    let told = "Only 95% and 99% confidence level is supported\n".to_owned();
    assert_eq!(said("-I 90,5"), (told, String::new(), 255));
    let (stdout, stderr, exit_code) = said("-- -h");
    assert!(stdout.contains("\nTest options:\n") && !stdout.contains("Global options:"));
    assert_eq!((stderr.as_str(), exit_code), ("", 1));
    assert_eq!(said("-V"), ("Netperf version 2.7.1\n".to_owned(), String::new(), 0));
    let (stdout, _, exit_code) = said("-- -o ?");
    assert!(stdout.starts_with("OUTPUT_NONE,SOCKET_TYPE,") && stdout.ends_with(",OUTPUT_END\n"));
    assert_eq!(exit_code, 1);
    let (stdout, ..) = said("-- -O ?");
    assert_eq!(stdout.lines().count(), 175);
}

#[test]
fn words_that_belong_to_no_option_are_told() {
    let line = "stray -t TCP_STREAM -- -k THROUGHPUT, ELAPSED_TIME,BOGUS";
    let Read::Work(_, Work::Test(_), notes) = read("netperf", &words(line)) else {
        panic!("{line}");
    };
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("'stray'") && notes[1].contains("'ELAPSED_TIME,BOGUS'"));
    let line = "-- -k THROUGHPUT,BOGUS";
    let Read::Work(_, _, notes) = read("netperf", &words(line)) else { panic!("{line}") };
    assert!(notes[0].contains("no figure is called 'BOGUS'"), "{notes:?}");
}

#[test]
fn an_option_without_effect_is_told() {
    let Read::Work(_, _, notes) = read("netperf", &words("-w 5")) else { panic!("-w") };
    assert_eq!(notes, ["netperf: -w has no effect without -b\n"]);
    assert_eq!(request("-- -l 3").plan.options.multicast_ttl, None);
    assert_eq!(request("-t UDP_STREAM -- -l 3").plan.options.multicast_ttl, Some(3));
}

#[test]
fn no_command_line_ends_the_program() {
    const PARTS: [&str; 24] = [
        "-",
        "--",
        "-t",
        "omni",
        "TCP_RR",
        "-l",
        "-D",
        "-H",
        "-k",
        "-O",
        "?",
        "all",
        "1",
        "-1",
        "99999999999G",
        ",",
        "5,6",
        "é,ü",
        "0x",
        "K",
        "-cC",
        "-f",
        "-i",
        "THROUGHPUT;;",
    ];
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap_or(0)
    };
    for _ in 0..20_000 {
        let count = draw(8);
        let mut line: Vec<String> = Vec::new();
        for _ in 0..count {
            let letters = if draw(2) == 0 { GLOBAL_LETTERS } else { TEST_LETTERS };
            let letter = letters.chars().nth(draw(letters.len())).unwrap_or('t');
            line.push(match draw(3) {
                0 => format!("-{letter}"),
                1 => format!("-{letter}{}", PARTS[draw(PARTS.len())]),
                _ => PARTS[draw(PARTS.len())].to_owned(),
            });
        }
        if let Read::Said(Said { stdout, stderr, exit_code }) = read("netperf", &line) {
            assert!(!stdout.is_empty() || !stderr.is_empty(), "{line:?} ends with {exit_code}");
        }
    }
}
