//! No flag of the original is missing, and each means the right thing.

use crate::skipped::skip;
use std::process::Command;

use linerate::personality::iperf3::plan::{serve_plan, test_plan};
use linerate::personality::iperf3::read;
use linerate_engine::iperf3::{ServePlan, TestPlan};
use linerate_measure::plan::Family;
use linerate_personality::getopt::Takes;
use linerate_personality::iperf3::command_line::UsageError;
use linerate_personality::iperf3::flags::{Side, TABLE};
use linerate_personality::iperf3::options::{Direction, Options, Role};
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::{Code, Protocol};

/// The long flags in the help of 3.12 and 3.21 together, and those that it doesn't tell.
const LONG_FLAGS: &str = "port format interval pidfile file affinity bind bind-dev verbose json \
    json-stream json-stream-full-output logfile forceflush timestamps rcv-timeout snd-timeout \
    cntl-ka mptcp debug version help server daemon one-off server-bitrate-limit idle-timeout \
    server-max-duration rsa-private-key-path authorized-users-path time-skew-threshold \
    use-pkcs1-padding client udp connect-timeout bitrate pacing-timer fq-rate time bytes blockcount \
    length cport parallel reverse bidir window congestion set-mss no-delay version4 version6 tos \
    dscp flowlabel zerocopy skip-rx-copy omit title extra-data get-server-output \
    udp-counters-64bit gsro repeating-payload dont-fragment username rsa-public-key-path \
    bandwidth linux-congestion no-fq-socket-pacing sctp xbind nstreams";

/// The letters of both releases.
const LETTERS: &str = "pfiIFABVJmdvhsD1cubtnklPRwCMN46SLZOTX";

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn options(text: &str) -> Options {
    read(&words(text)).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn client(text: &str) -> TestPlan {
    let options = options(&format!("-c host {text}"));
    test_plan(&options, Release::V3_21, || Some("secret".to_owned())).unwrap()
}

fn server(text: &str) -> ServePlan {
    serve_plan(&options(&format!("-s {text}")), Release::V3_21).unwrap()
}

#[test]
fn no_flag_of_the_original_is_missing() {
    for name in LONG_FLAGS.split_whitespace() {
        assert!(TABLE.iter().any(|flag| flag.long == name), "--{name}");
    }
    for letter in LETTERS.chars() {
        assert!(TABLE.iter().any(|flag| flag.short == Some(letter)), "-{letter}");
    }
}

#[test]
fn no_flag_in_the_help_of_an_installed_original_is_missing() {
    let Ok(output) = Command::new("iperf3").arg("--help").output() else {
        return skip("iperf3 is not installed");
    };
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut count = 0;
    for word in help.split(|c: char| c.is_whitespace() || ",[]|=<".contains(c)) {
        if let Some(name) = word.strip_prefix("--").filter(|name| name.len() > 1) {
            assert!(TABLE.iter().any(|flag| flag.long == name), "--{name}");
            count += 1;
        }
    }
    assert!(count > 40, "the help was not understood:\n{help}");
}

#[test]
fn the_compatibility_page_has_the_table_of_flags() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat/iperf3.md");
    let page = std::fs::read_to_string(path).unwrap();
    for flag in TABLE {
        let letter = flag.short.map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
        let value = match flag.takes {
            Takes::Value => format!(" {}", flag.value_name),
            Takes::Joined => format!("`=`{}", flag.value_name),
            _ => String::new(),
        };
        let side = match flag.meaning.side {
            Side::Both => "both",
            Side::Client => "client",
            Side::Server => "server",
        };
        let row = format!("| {letter}`--{}`{value} | {side} | {} |", flag.long, flag.help);
        assert!(page.contains(&row), "docs/compat/iperf3.md has no row\n{row}");
    }
}

#[test]
fn the_defaults_are_the_originals() {
    let plan = client("");
    assert_eq!((plan.host.as_str(), plan.port), ("host", 5201));
    assert_eq!(plan.interval.unwrap().as_secs(), 1);
    assert_eq!(plan.receive_timeout.as_secs(), 120);
    let parameters = &plan.parameters;
    assert_eq!((parameters.time_s, parameters.parallel, parameters.bandwidth_bps), (10, 1, 0));
    assert_eq!(parameters.protocol, Protocol::Tcp);
    assert_eq!(client("-u").parameters.bandwidth_bps, 1 << 20);
    let plan = server("");
    assert_eq!((plan.port, plan.one_off, plan.authority.is_none()), (5201, false, true));
}

#[test]
fn units_are_1024_for_amounts_and_1000_for_rates() {
    let parameters = client("-b 20M/50 -l 8K -w 1M --fq-rate 1G -n 2K").parameters;
    assert_eq!(parameters.bandwidth_bps, 20_000_000);
    assert_eq!(parameters.burst_blocks, 50);
    assert_eq!(parameters.block_bytes, 8192);
    assert_eq!(parameters.window_bytes, Some(1 << 20));
    assert_eq!(parameters.fq_rate_bps, 1_000_000_000);
    assert_eq!((parameters.num_bytes, parameters.time_s), (2048, 0));
    assert_eq!(client("-k 1K").parameters.block_count, 1024);
}

#[test]
fn flags_reach_the_parameters_on_the_wire() {
    let parameters = client(
        "-u -O 2 -t 3 -P 4 -R -M 1000 -N -S 0x20 -L 7 -T title --extra-data x -C reno \
         --get-server-output --udp-counters-64bit --repeating-payload -Z --dont-fragment \
         --skip-rx-copy --gsro -A 0,1 --pacing-timer 2000",
    )
    .parameters;
    assert_eq!(parameters.protocol, Protocol::Udp);
    assert_eq!((parameters.omit_s, parameters.time_s, parameters.parallel), (2, 3, 4));
    assert!(parameters.reverse && !parameters.bidirectional && parameters.no_delay);
    assert_eq!((parameters.mss_bytes, parameters.tos), (Some(1000), 32));
    assert_eq!((parameters.flow_label, parameters.server_affinity), (Some(7), Some(1)));
    assert_eq!(parameters.title.as_deref(), Some("title"));
    assert_eq!(parameters.extra_data.as_deref(), Some("x"));
    assert_eq!(parameters.congestion.as_deref(), Some("reno"));
    assert!(parameters.get_server_output && parameters.wide_counters);
    assert!(parameters.repeating_payload && parameters.zero_copy && parameters.dont_fragment);
    assert!(parameters.skip_rx_copy && parameters.offload.gso && parameters.offload.gro);
    assert_eq!(parameters.pacing_timer_us, 2000);
    assert_eq!(parameters.client_version, "3.21");
}

#[test]
fn flags_reach_the_local_plan() {
    let plan = client(
        "-p 7 -4 -B 127.0.0.1%lo --cport 9 -i 0.5 -A 3 -F file --connect-timeout 100 -R \
         --rcv-timeout 500 --snd-timeout 700 --cntl-ka=10/2/3",
    );
    assert_eq!((plan.port, plan.client_port, plan.affinity), (7, Some(9), Some(3)));
    assert_eq!(plan.family, Some(Family::Ipv4));
    assert_eq!(plan.bind, Some("127.0.0.1:0".parse().unwrap()));
    assert_eq!(plan.bind_device.as_deref(), Some("lo"));
    assert_eq!(plan.interval.unwrap().as_millis(), 500);
    assert_eq!(plan.connect_timeout.unwrap().as_millis(), 100);
    assert_eq!(plan.receive_timeout.as_millis(), 500);
    assert_eq!(plan.send_timeout.unwrap().as_millis(), 700);
    let keepalive = plan.keepalive.unwrap();
    assert_eq!((keepalive.idle_s, keepalive.interval_s, keepalive.count), (10, 2, 3));
    assert!(client("-i 0").interval.is_none());
    assert_eq!(client("-6").family, Some(Family::Ipv6));
}

#[test]
fn percent_sign_names_a_device_except_in_link_local_addresses() {
    let bound = |words: &str| {
        let plan = client(words);
        (plan.bind.map(|address| address.to_string()), plan.bind_device)
    };
    let told =
        |address: &str, device: Option<&str>| (Some(address.to_owned()), device.map(str::to_owned));
    assert_eq!(bound("-B 127.0.0.1%lo"), told("127.0.0.1:0", Some("lo")));
    assert_eq!(bound("-B ::1%lo"), told("[::1]:0", Some("lo")));
    // Loopback is the first interface.
    assert_eq!(bound("-B fe80::1%lo"), told("[fe80::1%1]:0", None));
    assert_eq!(server("-B fe80::1%lo").bind.unwrap().to_string(), "[fe80::1%1]:0");
    for words in ["-B [fe80::1%lo]", "-B [fe80::1]%lo"] {
        assert_eq!(bound(words), told("[fe80::1%1]:0", None), "{words}");
    }
    assert_eq!(bound("-B [::1]%lo"), told("[::1]:0", Some("lo")));
    assert_eq!(bound("-B [::1]"), told("[::1]:0", None));
    assert_eq!(bound("-4 -B localhost"), told("127.0.0.1:0", None));
    let hosts = |host: &str| {
        let plan = test_plan(&options(&format!("-c {host}")), Release::V3_21, || None).unwrap();
        (plan.host, plan.bind_device)
    };
    assert_eq!(hosts("::1%lo"), ("::1".to_owned(), Some("lo".to_owned())));
    assert_eq!(hosts("fe80::1%lo"), ("fe80::1%lo".to_owned(), None));
    assert_eq!(hosts("[fe80::1%lo]"), ("fe80::1%lo".to_owned(), None));
    assert_eq!(hosts("host%"), ("host%".to_owned(), None));
}

#[test]
fn an_address_of_another_family_than_was_asked_for_is_refused() {
    for (words, code) in [("-c h -6", Code::CONNECT), ("-s -6", Code::LISTEN)] {
        let options = options(&format!("{words} -B 127.0.0.1"));
        let failure = match words.contains("-s") {
            true => serve_plan(&options, Release::V3_21).unwrap_err(),
            false => test_plan(&options, Release::V3_21, || None).unwrap_err(),
        };
        assert_eq!(failure.code, code, "{words}");
        assert!(failure.detail.unwrap().starts_with("Address family"), "{words}");
    }
}

#[test]
fn a_servers_options_are_what_was_typed() {
    let plan =
        server("-1 -p 6 --idle-timeout 4 --server-bitrate-limit 10M/3 --server-max-duration 9");
    assert!(plan.one_off);
    assert_eq!((plan.port, plan.max_duration_s), (6, Some(9)));
    assert_eq!(plan.idle_timeout.unwrap().as_secs(), 4);
    let limit = plan.rate_limit.unwrap();
    assert_eq!((limit.bps, limit.interval.as_secs()), (10_000_000, 3));
    assert_eq!(server("--server-bitrate-limit 1M").rate_limit.unwrap().interval.as_secs(), 5);
}

#[test]
fn long_names_may_be_cut_and_joined() {
    let options = options("--cli=h --bidir --para 3 -VJi0.5 --verb");
    assert_eq!(options.role, Some(Role::Client("h".to_owned())));
    assert_eq!(options.load.direction, Direction::Both);
    assert_eq!((options.load.parallel, options.output.interval_s), (Some(3), Some(0.5)));
    assert!(options.output.verbose && options.output.json);
}

#[test]
fn a_name_may_be_cut_as_far_as_the_original_takes_it() {
    let is_known = |name: &str| LONG_FLAGS.split_whitespace().any(|known| known == name);
    for row in TABLE {
        assert_eq!(is_known(row.long), !row.is_ours, "--{}", row.long);
    }
    assert!(options("-c h --m").socket.mptcp);
    assert_eq!(options("-s --ma 3").server.most_tests, Some(3));
}

#[test]
fn a_file_that_is_sent_is_the_end() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [7; 12_345]).unwrap();
    let name = file.path().display();
    assert_eq!(client(&format!("-F {name}")).parameters.num_bytes, 12_345);
    assert_eq!(client(&format!("-F {name} -t 3")).parameters.num_bytes, 0);
    assert_eq!(client(&format!("-F {name} -R")).parameters.num_bytes, 0);
}

#[test]
fn a_password_is_asked_for_with_a_name() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "key").unwrap();
    let words =
        words(&format!("-c h --username me --rsa-public-key-path {}", key.path().display()));
    let options = read(&words).unwrap();
    let plan = test_plan(&options, Release::V3_12, || Some("secret".to_owned())).unwrap();
    let credentials = plan.credentials.unwrap();
    assert_eq!((credentials.username.as_str(), credentials.password.as_str()), ("me", "secret"));
    assert_eq!(credentials.public_key_pem, "key");
    assert!(test_plan(&options, Release::V3_12, || None).is_err());
}

#[test]
fn no_command_line_panics() {
    for row in TABLE {
        for value in ["", "0", "-1", "99999999999999999999", "1e400", "a/b", "%", "é", "1/2/3/4"] {
            for role in ["-c", "-s"] {
                let mut line = words(role);
                line.extend((role == "-c").then(|| "h".to_owned()));
                line.push(format!("--{}={value}", row.long));
                let _: Result<Options, UsageError> = read(&line);
            }
        }
    }
}
