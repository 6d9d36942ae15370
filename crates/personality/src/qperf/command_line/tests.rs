use super::super::options::Version;
use super::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn read(line: &str) -> Options {
    let read = parse_command_line("qperf", &words(line));
    let (options, stray) = read.unwrap_or_else(|said| panic!("{line}: {said:?}"));
    assert_eq!(stray, None, "{line}");
    options
}

fn said(line: &str) -> Said {
    parse_command_line("qperf", &words(line)).expect_err(line)
}

#[test]
fn defaults_are_the_documented_ones() {
    let options = read("-s");
    assert_eq!(options.role, Role::Server);
    assert_eq!((options.congestion.name(), options.window_packets), ("reno", 10));
    assert_eq!((options.interval_s, options.runtime_s, options.port), (1.0, 10, 18_080));
    assert_eq!(options.buffers.quic_bytes, 1 << 20);
    let acks = options.acks;
    assert_eq!((acks.max_delay_ms, acks.first_packet, acks.window_fraction), (Some(25), 1000, 8));
    assert_eq!(options.listen.certificate.to_str(), Some("server.crt"));
    assert_eq!(options.listen_port(), 18_080);
}

#[test]
fn the_address_behind_s_and_a_server_s_port_are_the_original_s_words() {
    let options = read("-s 127.0.0.1 -p 4433");
    assert_eq!(options.listen.address.as_deref(), Some("127.0.0.1"));
    assert_eq!(options.listen_port(), 4433);
    for address in ["::1", "[::1]", "fe80::1%eth0"] {
        let options = read(&format!("-s {address}"));
        assert_eq!(options.listen.address.as_deref(), Some(address));
    }
    assert_eq!(read("-s --listen-addr ::1").listen.address.as_deref(), Some("::1"));
    assert_eq!(read("-s -p 1 --listen-port=2").listen_port(), 2);
    let proxy = read("-P host -p 4433");
    assert_eq!((proxy.port, proxy.listen_port()), (4433, 18_080));
}

#[test]
fn options_are_written_as_getopt_has_them() {
    let options = read("-egc host");
    assert_eq!(options.role, Role::Client("host".to_owned()));
    for line in ["-c host -i0.1 -w 5 --print-raw", "-chost --report-interval=0.1 --iw=5 --print"] {
        let options = read(line);
        assert_eq!(
            (options.interval_s, options.window_packets, options.prints_raw),
            (0.1, 5, true)
        );
    }
    let options =
        read("-c host -q 4M -u 4m -b 64k --cc cubic --max-ack-delay 18446744073709551615");
    assert_eq!(
        options.buffers,
        Buffers { quic_bytes: 4 << 20, udp_bytes: 4_000_000, proxy_bytes: 64_000 }
    );
    assert_eq!((options.acks.max_delay_ms, options.congestion), (None, Congestion::Cubic));
    assert_eq!(read("-c host --quic-version draft-29").version, Some(Version::Draft29));
}

#[test]
fn a_wrong_argument_is_told_in_the_original_s_words() {
    for (line, called) in [
        ("-c h --cc bbr", "--cc"),
        ("-c h -t 0", "-t"),
        ("-c h -t x", "-t"),
        ("-c h -p 65536", "-p"),
        ("-c h -w 0", "--iw"),
        ("-c h --iw x", "--iw"),
        ("-c h -i 0", "-i"),
        ("-c h --report-interval=x", "-i"),
        ("-c h -q 0", "-q"),
        ("-c h -b 1MB", "-b"),
        ("-s --listen-port x", "--listen-port"),
        ("-c h --max-ack-delay 16384", "--max-ack-delay"),
        ("-c h --quic-version 2", "--quic-version"),
        ("-c h --ack-freq-cwnd-fraction 0", "--ack-freq-cwnd-fraction"),
    ] {
        let expected = format!("invalid argument passed to {called}\n");
        assert_eq!(said(line), Said { stderr: expected, exit_code: 1, ..Said::default() });
    }
}

#[test]
fn roles_exclude_each_other() {
    let of = |line| (said(line).stdout, said(line).exit_code);
    assert_eq!(of("-s -c host"), ("cannot use -c in server mode\n".to_owned(), 1));
    assert_eq!(of("-s -P host"), ("cannot use -P in server mode\n".to_owned(), 1));
    assert_eq!(of("-c a -P b"), ("cannot use -P in client mode\n".to_owned(), 1));
    assert_eq!(of("-e"), (usage("qperf"), 1));
    assert!(said("-P host --events f").stderr.contains("not supported in proxy mode"));
}

#[test]
fn help_and_version_end_the_reading() {
    assert_eq!(said("-h -t x"), Said { stdout: usage("qperf"), exit_code: 1, ..Said::default() });
    assert_eq!(said("--version").exit_code, 0);
    let unknown = said("-c h --bogus");
    assert_eq!(unknown.stderr, "qperf: unrecognized option '--bogus'\n");
    assert_eq!((unknown.stdout, unknown.exit_code), (usage("qperf"), 1));
    assert!(said("-c h --quic-version draft-27").stderr.contains("draft-27 isn't spoken here"));
}

#[test]
fn a_word_that_belongs_to_no_option_is_told() {
    let (_, stray) = parse_command_line("qperf", &words("-s somewhere -e")).unwrap();
    assert!(stray.is_some_and(|text| text.contains("'somewhere' belongs to no option")));
}
