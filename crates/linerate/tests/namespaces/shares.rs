//! Flows that share a link unequally.

use crate::alone_in_network;
use crate::ends::Server;
use crate::network::{CLIENT_DEVICE, run};

/// The addresses that the two flows are sent from.
const SOURCES: [&str; 2] = ["10.77.0.1", "10.77.0.3"];
/// Jain's index of shares of three to one.
const THREE_TO_ONE: f64 = 0.8;
/// How often it is measured at most: a busy machine may leave a class idle.
const ATTEMPTS: usize = 3;

/// HTB gives one flow three times the rate of the other. Bursts and queues count in the bytes of a short test, so the
/// index is that of the steady part.
#[test]
fn fairness_of_shares_of_three_to_one_is_four_fifths() {
    alone_in_network(|network| {
        network.add_client_address(&format!("{}/24", SOURCES[1]));
        let mut commands = vec![
            format!("qdisc add dev {CLIENT_DEVICE} root handle 1: htb"),
            format!("class add dev {CLIENT_DEVICE} parent 1: classid 1:1 htb rate 8mbit burst 4kb"),
        ];
        for (number, (source, mbps)) in SOURCES.iter().zip([6, 2]).enumerate() {
            let class = format!("1:1{number}");
            commands.extend([
                format!(
                    "class add dev {CLIENT_DEVICE} parent 1:1 classid {class} \
                     htb rate {mbps}mbit ceil {mbps}mbit burst 4kb cburst 4kb"
                ),
                format!("qdisc add dev {CLIENT_DEVICE} parent {class} bfifo limit 60000"),
                format!(
                    "filter add dev {CLIENT_DEVICE} parent 1: protocol ip prio 1 u32 match ip src \
                     {source}/32 flowid {class}"
                ),
            ]);
        }
        for command in &commands {
            let words: Vec<&str> = command.split_whitespace().collect();
            run(&[&["tc", "-n", &network.client][..], &words].concat()).unwrap();
        }
        let server = Server::start(network);
        let bind = SOURCES.join(",");
        let flags =
            ["stream", "--flows", "2", "--bind", &bind, "--interval", "100ms", "--time", "3s"];
        let mut found = Vec::new();
        while found.len() < ATTEMPTS {
            let run = server.start_client(&flags).finish().document;
            let fairness = run.figure("/summary/fairness");
            if (fairness - THREE_TO_ONE).abs() <= 0.02 {
                return;
            }
            found.push(fairness);
        }
        panic!("none is within 0.02 of {THREE_TO_ONE}: {found:?}");
    });
}
