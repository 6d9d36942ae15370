//! A queue of the sender's own that is too short: the kernel's count of what it drops is the judge.

use std::process::Command;

use serde_json::Value;

use crate::alone_in_network;
use crate::ctstraffic::{count, run_stream};
use crate::document::Document;
use crate::ends::Server;
use crate::network::{CLIENT_DEVICE, Network, SERVER_DEVICE, run};

/// A class's rate and a queue below it: one of 60 kB that lets 20 Mbit/s through and cuts trains.
const TBF: [&str; 2] = ["10gbit", "tbf rate 20mbit burst 32kb limit 60000"];
/// One that takes trains as they are, two of them.
const PFIFO: [&str; 2] = ["20mbit burst 64kb", "pfifo limit 2"];
/// All of UDP, over IPv4 and IPv6.
const UDP: [&str; 2] = ["ip protocol 17 0xff", "ip6 protocol 17 0xff"];
/// UDP packets of a length of 1,280 to 1,535 bytes, as IPv4 (with its header) and IPv6 (without) tell it. The rest of
/// QUIC's packets are shorter: handshakes, acknowledgements, probes.
const LONG_UDP: [&str; 2] = [
    "ip protocol 17 0xff match u16 0x0500 0xff00 at 2",
    "ip6 protocol 17 0xff match u16 0x0500 0xff00 at 4",
];

/// One end's device.
#[derive(Clone, Copy)]
struct Device<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Device<'a> {
    fn of_client(network: &'a Network) -> Self {
        Self { namespace: &network.client, name: CLIENT_DEVICE }
    }

    fn of_server(network: &'a Network) -> Self {
        Self { namespace: &network.server, name: SERVER_DEVICE }
    }

    /// What matches goes through a short queue, all else beside it, so that the queue's drops are of what matches
    /// alone.
    fn shorten_queue(self, [rate, queue]: [&str; 2], [ipv4, ipv6]: [&str; 2]) {
        for words in [
            "qdisc add dev D root handle 1: htb default 1",
            "class add dev D parent 1: classid 1:1 htb rate 10gbit",
            // Nothing is dropped beside the short queue.
            "qdisc add dev D parent 1:1 handle 10: pfifo limit 100000",
            &format!("class add dev D parent 1: classid 1:2 htb rate {rate}"),
            &format!("qdisc add dev D parent 1:2 handle 20: {queue}"),
            &format!("filter add dev D parent 1: prio 1 protocol ip u32 match {ipv4} flowid 1:2"),
            &format!("filter add dev D parent 1: prio 2 protocol ipv6 u32 match {ipv6} flowid 1:2"),
        ] {
            let words = words.split(' ').map(|word| if word == "D" { self.name } else { word });
            let words: Vec<&str> = words.collect();
            run(&[&["tc", "-n", self.namespace][..], &words].concat()).unwrap();
        }
    }

    /// What the kernel says of the device's queues.
    fn queues(self) -> Value {
        let output = Command::new("tc")
            .args(["-n", self.namespace, "-s", "-j", "qdisc", "show", "dev", self.name])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What the short queue has dropped so far.
    fn dropped(self) -> u64 {
        let queues = self.queues();
        let queues = queues.as_array().unwrap();
        let short = queues.iter().find(|one| one["handle"] == "20:").unwrap();
        short["drops"].as_u64().unwrap()
    }
}

/// Loads of one kind that are made until one is too much for the queue: a busy machine may send too little.
const TRIES: usize = 20;

/// What comes of the first load that is too much.
fn too_much<T>(attempt: impl FnMut() -> Option<T>) -> T {
    std::iter::repeat_with(attempt).take(TRIES).flatten().next().expect("none of many was too much")
}

fn assert_told(load: &str, run: &Document, drops: u64) {
    run.assert_complete();
    let count = |name: &str| run.count(&format!("/summary/datagrams/{name}"));
    assert_eq!(count("refused"), drops, "{load}");
    // A receiver that a busy machine doesn't run drops some itself.
    assert_eq!(count("lost"), count("dropped_by_socket"), "{load}");
}

#[test]
fn datagrams_that_the_own_queue_drops_are_refused_and_not_lost() {
    alone_in_network(|network| {
        let device = Device::of_client(network);
        device.shorten_queue(TBF, UDP);
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
                let (run, drops) = too_much(|| {
                    let before = device.dropped();
                    let run = starts(&server, &words).finish().document;
                    let drops = device.dropped() - before;
                    (drops > 100).then_some((run, drops))
                });
                assert_told(load, &run, drops);
            }
        }
    });
}

/// A frame is sent once, as media programs do: what the queue drops of it is refused, and the frame is not whole.
#[test]
fn datagrams_of_frames_that_the_own_queue_drops_are_refused_and_name_the_queue() {
    alone_in_network(|network| {
        for queue in [TBF, ["20mbit burst 64kb", "pfifo limit 20"]] {
            let device = Device::of_client(network);
            device.shorten_queue(queue, UDP);
            let server = Server::start(network);
            for load in ["--rate 40M", "--rate 40M --no-offload", "--rate 40M --flows 4"] {
                let words = format!("media --size 1200 --time 1s {load}");
                let words: Vec<&str> = words.split(' ').collect();
                for starts in [Server::start_client, Server::start_client_v6] {
                    let (run, drops) = too_much(|| {
                        let before = device.dropped();
                        let run = starts(&server, &words).finish().document;
                        let drops = device.dropped() - before;
                        let refused = run.json()["summary"]["datagrams"]["refused"].as_u64();
                        (drops > 0 && refused > Some(500)).then_some((run, drops))
                    });
                    let count = |name: &str| run.count(&format!("/summary/datagrams/{name}"));
                    // A train that a queue takes as it is counts there as one.
                    assert!(count("refused") >= drops, "{load}: {drops} {}", run.json()["summary"]);
                    assert_eq!(count("lost"), count("dropped_by_socket"), "{load}");
                    assert!(count("frames/completed") < count("frames/sent"), "{load}");
                    let (limit, status) = (&run.json()["summary"]["limits"][0], run.json());
                    assert_eq!(limit["place"], "local_queue", "{load}: {limit}");
                    let reasons = status["status"]["reasons"].to_string();
                    assert!(reasons.contains("own_drops"), "{load}: {reasons}");
                }
            }
            drop(server);
            run(&["tc", "-n", &network.client, "qdisc", "del", "dev", CLIENT_DEVICE, "root"])
                .unwrap();
        }
    });
}

#[test]
fn datagrams_that_the_own_queue_of_a_ctstraffic_server_drops_are_counted() {
    alone_in_network(|network| {
        for queue in [TBF, ["20mbit burst 64kb", "pfifo limit 4"]] {
            let device = Device::of_client(network);
            device.shorten_queue(queue, UDP);
            let stream = "-protocol:udp -bitspersecond:40000000 -framerate:50 -streamlength:1";
            let (drops, server, client) = too_much(|| {
                let before = device.dropped();
                let (server, _, _, client) = run_stream(network, stream, "");
                let drops = device.dropped() - before;
                (drops > 0).then_some((drops, server, client))
            });
            // A train that a queue takes as it is counts there as one.
            assert!(count(&server, "/queue_drops") >= drops, "{drops} {server}");
            // What is counted as sent has arrived, but for what the client's socket dropped.
            let (sent, received) = (count(&server, "/bits"), count(&client, "/bits"));
            assert!(sent == received || count(&client, "/socket_drops") > 0, "{server} {client}");
            run(&["tc", "-n", &network.client, "qdisc", "del", "dev", CLIENT_DEVICE, "root"])
                .unwrap();
        }
    });
}

#[test]
fn a_request_that_the_own_queue_drops_is_asked_again_and_not_lost() {
    alone_in_network(|network| {
        let device = Device::of_client(network);
        device.shorten_queue(TBF, UDP);
        let server = Server::start(network);
        let words = "rr --udp --outstanding 64 --request 1200 --flows 4 --time 1s";
        let (run, drops) = too_much(|| {
            let before = device.dropped();
            let run = server.measure(&words.split(' ').collect::<Vec<_>>());
            run.assert_complete();
            let drops = device.dropped() - before;
            (drops > 0).then_some((run, drops))
        });
        assert_eq!(run.count("/summary/transactions_lost"), 0);
        let refused = &run.json()["summary"]["errors"]["queue_full"];
        assert_eq!(refused.as_u64(), Some(drops));
    });
}

/// What a load goes over.
#[derive(Clone, Copy)]
enum Family {
    V4,
    V6,
}

/// Runs loads of QUIC's datagrams through a short queue of their sender's; judges each that it dropped some packets of, by
/// how many.
fn send_quic(
    queue: ([&str; 2], [&str; 2]),
    loads: &[(&str, Family)],
    judge: impl Fn(&str, &Document, u64),
) {
    for up in [true, false] {
        alone_in_network(|network| {
            let device = if up { Device::of_client(network) } else { Device::of_server(network) };
            device.shorten_queue(queue.0, queue.1);
            let server = Server::start(network);
            for (load, family) in loads {
                let words = format!("stream --quic --datagram --mtu 1400 --time 1s {load}");
                let words = words.split(' ').chain((!up).then_some("--down")).collect::<Vec<_>>();
                let (run, drops) = too_much(|| {
                    let before = device.dropped();
                    let client = match family {
                        Family::V4 => server.start_client(&words),
                        Family::V6 => server.start_client_v6(&words),
                    };
                    let run = client.finish().document;
                    run.assert_complete();
                    let drops = device.dropped() - before;
                    // Those of the warm-up are not counted.
                    let is_counted = || run.count("/summary/datagrams/refused") > 0;
                    let is_too_much = drops > 5 && (!load.contains("--omit") || is_counted());
                    is_too_much.then_some((run, drops))
                });
                judge(&format!("{}, {}", words.join(" "), device.queues()), &run, drops);
            }
        });
    }
}

/// Each packet so long holds one datagram. Shorter packets pass beside the queue, and so does the last one, which ends
/// the connection before what the queue still holds has come.
#[test]
fn as_many_quic_datagrams_are_refused_as_the_own_queue_drops() {
    let loads = [
        ("--size 1300", Family::V4),
        ("--size 1300 --rate 50M --no-offload", Family::V6),
        ("--size 1300 --flows 3 --streams 3", Family::V6),
    ];
    send_quic((TBF, LONG_UDP), &loads, |load, run, drops| {
        assert_eq!(run.count("/summary/datagrams/refused"), drops, "{load}");
    });
}

/// All packets pass through the queue. Those that it drops hold a datagram or several, or an acknowledgement alone.
#[test]
fn quic_datagrams_that_the_own_queue_drops_are_not_lost() {
    let loads = [
        ("--size 1300", Family::V6),
        ("--size 300 --flows 4 --streams 2", Family::V4),
        ("--size 1300 --flows 3 --streams 3 --omit 700ms", Family::V4),
    ];
    let judge = |load: &str, run: &Document| {
        let count = |name: &str| run.count(&format!("/summary/datagrams/{name}"));
        assert!(count("refused") > 0, "{load}");
        assert_eq!(count("lost"), 0, "{load}");
        assert_eq!(count("sent"), count("received"), "{load}");
    };
    send_quic((TBF, UDP), &loads, |load, run, _| judge(load, run));
    // It drops a train as a whole, which it counts as one.
    send_quic((PFIFO, UDP), &loads, |load, run, drops| {
        judge(load, run);
        let refused = run.count("/summary/datagrams/refused");
        assert!(load.contains("--omit") || refused > drops, "{load}: {refused} of {drops}");
    });
}

/// Nobody sends a request again that QUIC has taken: it is lost, and the refusal counted beside it.
#[test]
fn requests_in_quic_datagrams_that_the_own_queue_drops_are_counted() {
    alone_in_network(|network| {
        let device = Device::of_client(network);
        device.shorten_queue(TBF, LONG_UDP);
        let server = Server::start(network);
        let words = "rr --quic --datagram --mtu 1400 --outstanding 64 --request 1300 --flows 4 --time 1s --timeout 100ms";
        let (run, drops) = too_much(|| {
            let before = device.dropped();
            let run = server.measure(&words.split(' ').collect::<Vec<_>>());
            run.assert_complete();
            let drops = device.dropped() - before;
            (drops > 20).then_some((run, drops))
        });
        let refused = &run.json()["summary"]["errors"]["queue_full"];
        assert_eq!(refused.as_u64(), Some(drops));
        assert!(run.count("/summary/transactions_lost") >= drops);
    });
}
