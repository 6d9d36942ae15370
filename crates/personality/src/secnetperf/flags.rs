//! Every option of the original, with what it does here: the one source of `-help`, of the notes, and
//! of the test that none is missing.

use crate::colon_options::{ColonOptions, means};

/// Which ends have an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Client and server.
    Both,
    /// The server.
    Server,
    /// The client.
    Client,
}

/// What an option does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What it does in the original.
    Done,
    /// Nothing, for this reason.
    Nothing(&'static str),
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its names; the first is shown.
    pub names: &'static [&'static str],
    /// What its value looks like; empty for one that stands alone.
    pub value: &'static str,
    /// Which ends have it.
    pub side: Side,
    /// What it is for, with its default.
    pub about: &'static str,
    /// What it does here.
    pub effect: Effect,
}

const fn flag(
    names: &'static [&'static str],
    value: &'static str,
    side: Side,
    about: &'static str,
) -> Flag {
    Flag { names, value, side, about, effect: Effect::Done }
}

const fn idle(
    names: &'static [&'static str],
    value: &'static str,
    side: Side,
    about: &'static str,
    why: &'static str,
) -> Flag {
    Flag { names, value, side, about, effect: Effect::Nothing(why) }
}

use Side::{Both, Client, Server};

/// All of them.
pub const FLAGS: &[Flag] = &[
    flag(&["bind"], "addr[:port]", Server, "where to listen: *, IPv4 or IPv6 (*)"),
    flag(
        &["port"],
        "number",
        Server,
        "port to listen on, UDP and TCP, unless bind is given (4433)",
    ),
    flag(&["serverid"], "number", Server, "server id in connection ids (off)"),
    flag(&["stats"], "0/1", Server, "print statistics at the end of each connection (0)"),
    flag(&["delay"], "number[unit]", Server, "wait before each answer, us (0)"),
    flag(&["delayType"], "fixed/variable", Server, "how that wait is drawn (fixed)"),
    flag(
        &["cipher"],
        "mask",
        Both,
        "suites the server takes: 1 AES-128, 2 AES-256, 4 ChaCha20; added up (all)",
    ),
    flag(
        &["target", "server", "to", "remote", "peer"],
        "host",
        Client,
        "the server; makes this a client",
    ),
    flag(&["ip", "af"], "0/4/6", Client, "family of the server's address (0: any)"),
    flag(&["port"], "number", Client, "the server's port (4433)"),
    flag(
        &["inctarget", "incrementtarget"],
        "0/1",
        Client,
        "add the thread's number to the server's name (1)",
    ),
    flag(&["threads", "workers"], "number[cpu]", Client, "threads, at most 128 (one a processor)"),
    idle(&["comp"], "number", Client, "network compartment", "network compartments are Windows'"),
    flag(
        &["bind"],
        "addr[,addr]",
        Client,
        "local addresses, dealt to the threads (the kernel's choice)",
    ),
    flag(&["tcp"], "0/1", Client, "sealed frames over TCP in place of QUIC (0)"),
    flag(
        &["encrypt"],
        "0/1",
        Client,
        "encryption of QUIC packets with data, if the server agrees (1)",
    ),
    flag(
        &["cibir"],
        "hex",
        Both,
        "well-known start of connection ids, the same at both ends (off)",
    ),
    flag(&["pacing"], "0/1", Client, "pacing of what is sent (1)"),
    flag(&["sendbuf"], "0/1", Client, "copy what is sent first, QUIC only (0)"),
    flag(&["share"], "0/1", Client, "one UDP port for all connections of a thread (0)"),
    flag(&["pstream"], "0/1", Client, "print what each stream waited for, QUIC only (0)"),
    flag(&["hystart"], "0/1", Both, "HyStart++ with cubic (0)"),
    flag(&["cc"], "cubic/bbr", Both, "congestion control of QUIC (cubic)"),
    flag(&["ecn"], "0/1", Both, "congestion marks on QUIC packets (0)"),
    flag(&["dscp"], "0-63", Both, "code point of QUIC packets (0)"),
    flag(&["ptput"], "0/1", Client, "print throughput, summed (0)"),
    flag(&["pctput"], "0/1", Client, "print the throughput of each stream (0)"),
    flag(&["prate"], "0/1", Client, "print connections and requests per second (0)"),
    flag(&["pconn", "pconnection"], "0/1", Client, "print statistics of each connection (0)"),
    flag(&["plat", "platency"], "0/1", Client, "print latency (0)"),
    flag(&["praw"], "0/1", Client, "print each stream's raw figures (0)"),
    flag(&["extraOutputFile"], "path", Client, "with plat: the distribution, as text"),
    flag(&["conns"], "number[cpu]", Client, "connections (1)"),
    flag(
        &["streams", "requests"],
        "number[cpu]",
        Client,
        "streams at a time on each connection (0; 1 with up or down)",
    ),
    flag(
        &["upload", "up", "request"],
        "number[unit]",
        Client,
        "bytes or time to send on each stream (0)",
    ),
    flag(
        &["download", "down", "response"],
        "number[unit]",
        Client,
        "bytes or time to receive on each stream (0)",
    ),
    flag(&["timed"], "0/1", Client, "up and down are times (0)"),
    flag(&["iosize"], "bytes", Client, "bytes of each send, at least 256 (65536)"),
    flag(&["rconn", "rc"], "0/1", Client, "another connection whenever one ends (0)"),
    flag(&["rstream", "rs"], "0/1", Client, "another stream whenever one ends (0)"),
    flag(
        &["runtime", "time", "run"],
        "number[unit]",
        Client,
        "when to end, us (0: when all is done)",
    ),
    flag(
        &["oldformat"],
        "0/1",
        Client,
        "lines of each stream as releases before 2.3 documented them (0)",
    ),
    flag(&["exec"], "lowlat/maxtput/scavenger/realtime", Both, "execution profile (lowlat)"),
    flag(
        &["scenario"],
        "upload/download/hps/rps/rps-multi/latency",
        Both,
        "preset of options, which others override",
    ),
    flag(&["pollidle"], "us", Both, "try again so long before sleeping (0)"),
    flag(&["affinitize"], "0/1", Both, "each thread on a processor of its own (0)"),
    flag(&["io"], "iocp/xdp/qtip/epoll/iouring/kqueue", Both, "I/O model; here always epoll"),
    flag(&["maxruntime"], "ms", Both, "end at the latest (0: never)"),
    flag(&["watchdog"], "ms", Both, "abort the program if it runs so long (0: never)"),
    flag(&["trimout"], "", Both, "leave the first and the last line out"),
    flag(&["abortOnFailure"], "", Both, "abort the program when its status isn't 0"),
    flag(
        &["driverName", "driverNamePriv"],
        "name",
        Both,
        "the kernel's driver: Windows only, status 95",
    ),
    flag(&["help", "?"], "", Both, "this text"),
    flag(&["cpu"], "list", Both, "processors of the threads, and how many there are (all)"),
    flag(&["highpri"], "0/1", Both, "threads of high priority: nice -20 (0)"),
    idle(&["qeo"], "0/1", Both, "the network card's encryption of QUIC (0)", "it is Windows'"),
];

/// The sentences about options that were given and do nothing here.
pub fn notes(options: ColonOptions<'_>, client: bool) -> Vec<String> {
    let ours = |flag: &&Flag| match flag.side {
        Both => true,
        Client => client,
        Server => !client,
    };
    let mut notes = Vec::new();
    if options.value("io").is_some_and(|model| !means(model, "epoll")) {
        notes.push("-io changes nothing here: it is always epoll".to_owned());
    }
    for flag in FLAGS.iter().filter(ours) {
        if let (Effect::Nothing(why), Some(name)) = (flag.effect, flag.names.first())
            && options.value_of_first(flag.names).is_some()
        {
            notes.push(format!("-{name} does nothing here: {why}"));
        }
    }
    notes
}

/// The text of `-help`.
pub fn render_help() -> String {
    let mut text = "\nsecnetperf usage:\n".to_owned();
    for (side, title) in [
        (Server, "Server: secnetperf [options]"),
        (Client, "Client: secnetperf -target:<host> [options]"),
        (Both, "Both:"),
    ] {
        text.push_str(&format!("\n{title}\n\n"));
        for flag in FLAGS.iter().filter(|flag| flag.side == side) {
            let name = flag.names.first().copied().unwrap_or_default();
            let shown = match flag.value {
                "" => format!("-{name}"),
                value => format!("-{name}:<{value}>"),
            };
            text.push_str(&format!("  {shown:<26} {}\n", flag.about));
        }
    }
    text.push_str(
        "\n  --json                     print one JSON document in place of all else\n  \
         --ndjson                   print a line of JSON for each stream, connection and the result\n  \
         --draft-29                 client: speak QUIC's draft 29 in place of version 1\n  \
         --mtu-limit:<bytes>        client: the longest UDP payload of a QUIC packet (8972 where it fits)\n  \
         --qlog:<dir>               client: write what happens on each QUIC connection to a file (qlog)\n  \
         --remote-stop              server: stop on the original's datagram to UDP port 9999, \
         loopback only\n\n  \
         SSLKEYLOGFILE=<file>       client: append the secrets of QUIC connections to this file\n\n",
    );
    text
}
