//! What the matrix runs: every option, with what it does to the documents or the text of both ends.

use serde_json::Value;

/// What both ends printed, and what is seen of the option in it.
#[derive(Clone, Copy)]
pub(crate) enum Seen {
    /// Documents, the client's and the server's.
    Documents(fn(&Value, &Value) -> bool),
    /// Text, of whose lines the client's have these.
    Text(&'static [&'static str]),
    /// The test is refused: the client fails, and one whom our server has refused says this.
    Refused(&'static str),
}

/// An address of loopback that nobody takes unasked.
pub(crate) const OTHER_V4: &str = "127.0.0.2";

/// A test. `{name}` is a file of the test's own: `{file}`, `{public}`, `{private}` and `{users}` are there.
/// `{cpu}` is a processor, `{host}` the server's address, `{bind}` one for the client, `{cport}` a port for its
/// stream, `{label}` a flow label, which only IPv6 has.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) client: &'static str,
    pub(crate) server: &'static str,
    pub(crate) seen: Seen,
}

/// Bytes of the file that is sent.
pub(crate) const FILE_BYTES: u64 = 300_000;

const fn case(client: &'static str, seen: fn(&Value, &Value) -> bool) -> Case {
    Case { client, server: "", seen: Seen::Documents(seen) }
}

const fn served(
    client: &'static str,
    server: &'static str,
    seen: fn(&Value, &Value) -> bool,
) -> Case {
    Case { client, server, seen: Seen::Documents(seen) }
}

const fn text(client: &'static str, server: &'static str, lines: &'static [&'static str]) -> Case {
    Case { client, server, seen: Seen::Text(lines) }
}

/// A number that the client was asked for.
fn asked(document: &Value, name: &str) -> u64 {
    document["start"]["test_start"][name].as_u64().unwrap_or(u64::MAX)
}

fn streams(document: &Value) -> usize {
    document["end"]["streams"].as_array().map_or(0, Vec::len)
}

fn sum(document: &Value, name: &str) -> u64 {
    document["end"][name]["bytes"].as_u64().unwrap_or(0)
}

fn both_ways(client: &Value, server: &Value) -> bool {
    [client, server].iter().all(|one| sum(one, "sum_sent_bidir_reverse") > 0)
}

fn intervals(document: &Value) -> usize {
    document["intervals"].as_array().map_or(0, Vec::len)
}

/// Whether the client's streams have the address that it was told to take. Of IPv6 loopback has one address, so there
/// this shows no more than that the option is understood.
fn bound(client: &Value, _: &Value) -> bool {
    let host = &client["start"]["connected"][0]["local_host"];
    host == OTHER_V4 || host == "::1"
}

fn omits(client: &Value, _: &Value) -> bool {
    let intervals = client["intervals"].as_array();
    let omitted = |value: bool| {
        intervals.is_some_and(|all| all.iter().any(|one| one["sum"]["omitted"] == value))
    };
    asked(client, "omit") == 1 && omitted(true) && omitted(false)
}

fn any(_: &Value, _: &Value) -> bool {
    true
}

fn reversed(client: &Value, server: &Value) -> bool {
    asked(client, "reverse") == 1 && asked(server, "reverse") == 1
}

/// A second takes the rate, give or take a burst, and what a busy machine is behind with.
fn at_20_mbit(client: &Value, _: &Value) -> bool {
    let seconds = client["end"]["sum_sent"]["seconds"].as_f64().unwrap_or(0.0);
    let rate = sum(client, "sum_sent") as f64 * 8.0 / seconds / 20e6;
    seconds > 0.9 && (0.5..=1.3).contains(&rate)
}

fn sent_by(client: &Value, name: &str) -> bool {
    client["end"]["sender_tcp_congestion"] == name
}

/// Every option whose work is seen in documents, over TCP.
pub(crate) const TCP: &[Case] = &[
    case("-t 1 -b 20M", at_20_mbit),
    case("-n 500K -b 40M -P 3", |c, s| streams(c) == 3 && streams(s) == 3),
    case("-n 500K -b 40M -R", reversed),
    case("-t 1 -b 20M -R -P 2", |c, s| reversed(c, s) && streams(c) == 2),
    case("-t 1 -b 20M --bidir", both_ways),
    case("-t 1 -b 20M --bidir -P 2", |c, s| both_ways(c, s) && streams(c) == 4),
    case("-n 500K -b 40M", |c, _| asked(c, "bytes") == 512_000 && sum(c, "sum_sent") >= 512_000),
    case("-k 5 -b 40M", |c, _| asked(c, "blocks") == 5 && sum(c, "sum_sent") >= 5 << 17),
    // The original's receiver counts calls, which may bring less than a block each.
    case("-k 5 -b 40M -R", |c, s| reversed(c, s) && asked(c, "blocks") == 5),
    case("-t 1 -b 20M -O 1", omits),
    case("-t 1 -b 20M -O 1 -R", omits),
    case("-t 1 -b 20M/10 -l 16K", at_20_mbit),
    case("-t 1 -b 20M --pacing-timer 2000", at_20_mbit),
    case("-t 1 -b 20M -i 0", |c, _| intervals(c) <= 1),
    case("-t 1 -b 20M -i 0.25", |c, _| (3..=5).contains(&intervals(c))),
    case("-n 16M -l 16K -P 128", |c, s| streams(c) == 128 && streams(s) == 128),
    case("-t 1 -b 20M -6 -L {label}", any),
    case("-n 500K -b 40M -B {bind}", bound),
    case("-n 500K -b 40M -B {bind} --cport {cport}", bound),
    served("-n 500K -b 40M", "-B {host}", any),
    // On loopback, binding to its device shows no difference.
    served("-n 500K -b 40M --bind-dev lo", "--bind-dev lo", any),
    case("-n 500K -b 40M --extra-data data", |c, s| {
        c["extra_data"] == "data" && s["extra_data"] == "data"
    }),
    // The copy shows what was sent.
    served("-n 500K -b 40M --repeating-payload", "-F {copy}", any),
    // What nobody sees but the kernel; that time-outs end a test is tested beside the deaths of ends.
    case("-n 500K -b 40M --connect-timeout 3000 --snd-timeout 5000", any),
    case("-n 500K -b 40M -Z", any),
    case("-n 500K -b 40M -Z -R", reversed),
    case("-n 500K -b 40M -C reno", |c, _| sent_by(c, "reno")),
    // The one that every user may choose everywhere.
    case("-n 500K -b 40M --congestion reno", |c, _| sent_by(c, "reno")),
    case("-n 500K -b 40M -M 1000", |c, _| c["start"]["tcp_mss"] == 1000),
    case("-n 500K -b 40M -N", any),
    case("-n 500K -b 40M -S 0x20", |c, s| asked(c, "tos") == 32 && asked(s, "tos") == 32),
    case("-n 500K -b 40M --dscp ef", |c, s| asked(c, "tos") == 184 && asked(s, "tos") == 184),
    case("-n 500K -b 40M -w 128K", |c, _| c["start"]["sock_bufsize"] == 131_072),
    case("-n 500K -b 40M -l 16K", |c, s| {
        asked(c, "blksize") == 16_384 && asked(s, "blksize") == 16_384
    }),
    case("-t 1 -b 20M -A {cpu},{cpu}", any),
    served("-t 1 -b 20M", "-A {cpu}", any),
    case("-F {file} -b 40M", |c, _| sum(c, "sum_sent") == FILE_BYTES),
    served("-n 500K -b 40M", "-F {copy}", any),
    case("-n 500K -b 40M --get-server-output", |c, _| c["server_output_json"].is_object()),
    case("-t 1 -b 20M -R --rcv-timeout 5000", reversed),
    served("-n 500K -b 40M", "--idle-timeout 20 --rcv-timeout 5000", any),
    served("-t 1 -b 20M -I {pid}", "-I {pid} --forceflush", any),
    case("-n 500K -b 40M -T title", |c, _| c["title"] == "title"),
    served("-n 500K -b 40M", "--server-bitrate-limit 1G", any),
    Case {
        client: "-t 1 -b 20M",
        server: "--server-bitrate-limit 1M",
        seen: Seen::Refused("total required bandwidth is larger than server limit"),
    },
    served(
        "-n 500K -b 40M --username mario --rsa-public-key-path {public}",
        "--rsa-private-key-path {private} --authorized-users-path {users} --time-skew-threshold 60",
        any,
    ),
];

/// Likewise over UDP.
pub(crate) const UDP: &[Case] = &[
    case("-u -t 1 -b 5M", |c, _| sum(c, "sum") > 0),
    case("-u -t 1 -b 5M -P 2", |c, s| streams(c) == 2 && streams(s) == 2),
    case("-u -t 1 -b 5M -R", reversed),
    case("-u -t 1 -b 5M --bidir", both_ways),
    case("-u -n 200K -b 20M", |c, _| sum(c, "sum_sent") >= 204_800),
    case("-u -k 100 -b 20M -l 1000", |c, _| sum(c, "sum_sent") >= 100_000),
    case("-u -t 1 -b 5M -O 1", omits),
    case("-u -t 1 -b 20M/50 -l 1000", at_20_mbit),
    case("-u -t 1 -b 5M -l 1000", |c, s| {
        asked(c, "blksize") == 1000 && asked(s, "blksize") == 1000
    }),
    case("-u -t 1 -b 5M -w 256K", |c, _| c["start"]["sock_bufsize"] == 262_144),
    case("-u -t 1 -b 5M -S 8", |c, s| asked(c, "tos") == 8 && asked(s, "tos") == 8),
    case("-u -n 200K -b 20M --udp-counters-64bit", any),
    case("-u -t 1 -b 5M -R -P 2", |c, s| reversed(c, s) && streams(c) == 2),
    case("-u -n 200K -b 20M -l 1000 --dont-fragment", any),
    case("-u -n 200K -b 20M --repeating-payload --cport {cport} -B {bind}", bound),
];

/// What is seen in text alone, or differs in it.
pub(crate) const TEXT: &[Case] = &[
    text("-t 1 -b 20M", "", &["sender", "receiver", "iperf Done."]),
    text("-t 1 -b 20M -V", "-V", &["Test Complete. Summary Results:", "CPU Utilization:"]),
    text("-t 1 -b 20M -R -P 2 -V", "-V", &["[SUM]", "Test Complete. Summary Results:"]),
    text("-t 1 -b 20M --bidir -T title", "", &["title:", "[RX-C]", "[TX-C]"]),
    text("-t 1 -b 20M --timestamps=stamp%s", "--timestamps=stamp%s", &["stamp1"]),
    text("-t 1 -b 20M --forceflush -f m", "--forceflush", &["Mbits/sec"]),
    text("-t 1 -b 20M --get-server-output", "", &["Server output:", "Accepted connection from"]),
    text("-t 1 -b 20M --logfile {log}", "--logfile {log}", &["sender", "iperf Done."]),
    text("-u -t 1 -b 5M -V", "-V", &["Lost/Total", "receiver"]),
];
