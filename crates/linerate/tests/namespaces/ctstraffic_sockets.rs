//! Options of ctsTraffic that reach sockets, as ss(8) and a filter see them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::ctstraffic::{CLIENT_V4, End};
use crate::in_network;
use crate::network::{CLIENT_DEVICE, Network, SERVER_V4, run};

/// Waits until ss(8) shows all of these of sockets in a namespace, those of a protocol and state.
fn await_shown(namespace: &str, (protocol, state): (&str, &str), wanted: &[&str]) {
    let list =
        ["ip", "netns", "exec", namespace, "ss", "-Hnoim", "--tos", protocol, "state", state];
    let began = Instant::now();
    loop {
        let shown = run(&list).unwrap();
        if wanted.iter().all(|wanted| shown.contains(wanted)) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{wanted:?}: {shown}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn buffers_keepalive_and_code_point_are_those_of_the_sockets_at_both_ends() {
    in_network(|network| {
        network.filter(
            "table inet linerate {
                counter marked { }
                counter unmarked { }
                chain both {
                    type filter hook input priority 0; policy accept;
                    tcp dport 4444 ip dscp 46 counter name marked accept
                    tcp dport 4444 counter name unmarked
                }
            }",
        );
        let words = "-pattern:duplex -transfer:1000000 -ratelimit:2000 -keepalivevalue:20000 \
                     -recvbufvalue:50000 -sendbufvalue:60000 -qosdscpvalue:46";
        let _server = End::serve(&network.server, SERVER_V4, words);
        let words = format!("-target:{SERVER_V4} {words} -connections:1");
        let _client = End::start(&network.client, &words);
        for namespace in [&network.server, &network.client] {
            let shown = ["rb100000", "tb120000", "tos:0xb8", "timer:(keepalive,"];
            await_shown(namespace, ("--tcp", "established"), &shown);
        }
        assert!(network.counted("marked") > 0);
        assert_eq!(network.counted("unmarked"), 0);
    });
}

#[test]
fn buffers_and_code_point_are_those_of_the_sockets_of_streams_at_both_ends() {
    in_network(|network| {
        // The client runs where the filter is.
        network.filter(
            "table inet linerate {
                counter starts { }
                counter frames { }
                counter unmarked { }
                chain outgoing {
                    type filter hook output priority 0; policy accept;
                    udp dport 4444 ip dscp 46 counter name starts accept
                    udp dport 4444 counter name unmarked
                }
                chain incoming {
                    type filter hook input priority 0; policy accept;
                    udp sport 4444 ip dscp 46 counter name frames accept
                    udp sport 4444 counter name unmarked
                }
            }",
        );
        let words = "-protocol:udp -bitspersecond:2000000 -framerate:50 -streamlength:30 \
                     -recvbufvalue:50000 -sendbufvalue:60000 -qosdscpvalue:46";
        let server = format!("{words} --max-rate:100000000");
        let _server = End::serve(&network.client, CLIENT_V4, &server);
        let _client = End::start(&network.server, &format!("-target:{CLIENT_V4} {words}"));
        for namespace in [&network.server, &network.client] {
            await_shown(namespace, ("--udp", "all"), &["rb100000", "tb120000"]);
        }
        let began = Instant::now();
        while network.counted("frames") < 100 {
            assert!(began.elapsed() < Duration::from_secs(30));
            sleep(Duration::from_millis(20));
        }
        assert!(network.counted("starts") > 0);
        assert_eq!(network.counted("unmarked"), 0);
    });
}

/// Connections that a client completes over the device with this name.
fn completed_over(network: &Network, words: &str) -> (i32, String) {
    let words = format!(
        "-target:{SERVER_V4} -transfer:1000 {words} -connections:1 -iterations:1 -timelimit:2000 \
         -connectionfilename:c.csv --json"
    );
    let mut client = End::start(&network.client, &words);
    let (exit_code, _) = client.finish();
    let rows = client.rows("c.csv");
    (exit_code, rows.first().map(|row| row[8].clone()).unwrap_or_default())
}

#[test]
fn a_device_is_used_by_its_number_or_name_and_another_leads_nowhere() {
    in_network(|network| {
        let _server = End::serve(&network.server, SERVER_V4, "-transfer:1000");
        let file = format!("/sys/class/net/{CLIENT_DEVICE}/ifindex");
        let index = run(&["ip", "netns", "exec", &network.client, "cat", &file]).unwrap();
        let by_index = format!("-ifindex:{}", index.trim());
        for words in [&*by_index, &format!("-compartment:{CLIENT_DEVICE}")] {
            let succeeded = (0, "Succeeded".to_owned());
            assert_eq!(completed_over(network, words), succeeded, "{words}");
        }
        for words in ["-ifindex:1", "-compartment:lo"] {
            assert_ne!(completed_over(network, words).1, "Succeeded", "{words}");
        }
    });
}
