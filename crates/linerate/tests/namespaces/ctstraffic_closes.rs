//! How a server of ctsTraffic takes what happens to a connection whose client has had everything.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::ctstraffic::{End, count};
use crate::in_network;
use crate::network::{Network, SERVER_V4, run};

/// From when `DONE` has left, nothing more reaches the server; and where there is an `answer`, it stops what the server
/// sends again. A segment of `DONE` is the only one of 56 bytes.
fn silence_behind_done(answer: &str) -> String {
    format!(
        "table inet linerate {{
            set done {{ type ipv4_addr; flags dynamic; }}
            counter dropped {{ }}
            chain leaving {{
                type filter hook output priority 0; policy accept;
                {answer}
                tcp sport 4444 ip length 56 add @done {{ ip daddr }}
            }}
            chain arriving {{
                type filter hook input priority 0; policy accept;
                tcp dport 4444 ip saddr @done counter name dropped drop
            }}
        }}"
    )
}

/// What the server's row says of a connection that is silent behind `DONE`, and then has this done to it.
fn result_at_server(network: &Network, answer: &str, act: impl FnOnce()) -> String {
    network.filter(&silence_behind_done(answer));
    let set = "echo 2 > /proc/sys/net/ipv4/tcp_retries2";
    run(&["ip", "netns", "exec", &network.server, "sh", "-c", set]).unwrap();
    let words = "-transfer:1000 -serverexitlimit:1 -connectionfilename:c.csv";
    let mut server = End::serve(&network.server, SERVER_V4, words);
    let words = format!("-target:{SERVER_V4} -transfer:1000 -connections:1 -iterations:1");
    let _client = End::start(&network.client, &words);
    let began = Instant::now();
    // The client's acknowledgement of DONE, or its end.
    while network.counted("dropped") == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "the client had no DONE");
        sleep(Duration::from_millis(10));
    }
    act();
    let (exit_code, document) = server.finish();
    let result = server.rows("c.csv")[0][8].clone();
    let completed = u64::from(result == "Succeeded");
    assert_eq!(count(&document, "/completed"), completed, "{document}");
    assert_eq!(exit_code, i32::from(completed == 0), "{document}");
    result
}

#[test]
fn a_time_out_behind_done_is_a_success_at_the_server() {
    in_network(|network| assert_eq!(result_at_server(network, "", || ()), "Succeeded"));
}

#[test]
fn an_abort_behind_done_is_a_success_at_the_server() {
    in_network(|network| {
        let abort = || {
            let program = ["ip", "netns", "exec", &network.server, "ss", "-K"];
            let connection = ["state", "established", "sport", "=", ":4444"];
            run(&[&program[..], &connection[..]].concat()).unwrap();
        };
        assert_eq!(result_at_server(network, "", abort), "Succeeded");
    });
}

#[test]
fn another_error_behind_done_is_a_failure_at_the_server() {
    in_network(|network| {
        let answer = "tcp sport 4444 ip daddr @done reject with icmp type host-unreachable";
        let result = result_at_server(network, answer, || ());
        assert_eq!(result, "10065: No route to host");
    });
}
