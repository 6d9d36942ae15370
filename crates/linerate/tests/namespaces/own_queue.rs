//! A queue of the sender's own that is too short: the kernel's count of what it drops is the judge.

use std::process::Command;

use serde_json::Value;

use crate::document::Document;
use crate::ends::Server;
use crate::in_network;
use crate::network::{CLIENT_DEVICE, Network, run};

/// UDP goes through a short queue, TCP beside it, so that the queue's drops are UDP's alone.
fn shorten_queue(network: &Network) {
    for words in [
        "qdisc add dev c0 root handle 1: htb default 1",
        "class add dev c0 parent 1: classid 1:1 htb rate 10gbit",
        "class add dev c0 parent 1: classid 1:2 htb rate 10gbit",
        "qdisc add dev c0 parent 1:2 handle 20: tbf rate 20mbit burst 32kb limit 60000",
        "filter add dev c0 parent 1: prio 1 protocol ip u32 match ip protocol 17 0xff flowid 1:2",
        "filter add dev c0 parent 1: prio 2 protocol ipv6 u32 match ip6 protocol 17 0xff flowid 1:2",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        run(&[&["tc", "-n", &network.client][..], &words].concat()).unwrap();
    }
}

/// What the short queue has dropped so far.
fn dropped(network: &Network) -> u64 {
    let namespace = ["-n", &network.client];
    let output = Command::new("tc")
        .args(namespace)
        .args(["-s", "-j", "qdisc", "show", "dev", CLIENT_DEVICE])
        .output()
        .unwrap();
    let disciplines: Value = serde_json::from_slice(&output.stdout).unwrap();
    let disciplines = disciplines.as_array().unwrap();
    let queue = disciplines.iter().find(|one| one["kind"] == "tbf").unwrap();
    queue["drops"].as_u64().unwrap()
}

fn assert_told(load: &str, run: &Document, drops: u64) {
    run.assert_complete();
    let count = |name: &str| run.count(&format!("/summary/datagrams/{name}"));
    assert!(drops > 100, "{load}: {drops} dropped: nothing was too much");
    assert_eq!(count("refused"), drops, "{load}");
    // A receiver that a busy machine doesn't run drops some itself.
    assert_eq!(count("lost"), count("dropped_by_socket"), "{load}");
}

#[test]
fn datagrams_that_the_own_queue_drops_are_refused_and_not_lost() {
    in_network(|network| {
        shorten_queue(network);
        let server = Server::start(network);
        for load in [
            "--rate 50M",
            "--rate 50M --no-offload",
            "--rate 50M --flows 20",
            "--rate 50M --flows 20 --no-offload",
            "--flows 2",
            "--flows 2 --no-offload",
        ] {
            let words = format!("stream --udp --size 1200 --time 1s {load}");
            let words: Vec<&str> = words.split(' ').collect();
            for starts in [Server::start_client, Server::start_client_v6] {
                let before = dropped(network);
                let run = starts(&server, &words).finish().document;
                assert_told(load, &run, dropped(network) - before);
            }
        }
    });
}

#[test]
fn a_request_that_the_own_queue_drops_is_asked_again_and_not_lost() {
    in_network(|network| {
        shorten_queue(network);
        let server = Server::start(network);
        let words = "rr --udp --outstanding 64 --request 1200 --flows 4 --time 1s";
        let before = dropped(network);
        let run = server.measure(&words.split(' ').collect::<Vec<_>>());
        run.assert_complete();
        assert!(dropped(network) > before, "nothing was too much");
        assert_eq!(run.count("/summary/transactions_lost"), 0);
        let refused = &run.json()["summary"]["errors"]["queue_full"];
        assert_eq!(refused.as_u64(), Some(dropped(network) - before));
    });
}
