//! The table of iperf3's flags: the parser, `--help`, and the test that no flag of the original is
//! missing all read it.

use crate::getopt::{Flag, Takes};

/// Whose flag it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Either role's.
    Both,
    /// A client's.
    Client,
    /// A server's.
    Server,
}

/// What a flag is to us.
#[allow(missing_docs, reason = "the table below says what each one does")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    Port,
    Format,
    Interval,
    PidFile,
    File,
    Affinity,
    Bind,
    BindDev,
    Verbose,
    Json,
    JsonStream,
    JsonStreamFull,
    LogFile,
    ForceFlush,
    Timestamps,
    RcvTimeout,
    SndTimeout,
    Keepalive,
    Mptcp,
    Debug,
    Version,
    Help,
    Server,
    Daemon,
    OneOff,
    BitrateLimit,
    IdleTimeout,
    MaxDuration,
    MaxTests,
    PrivateKey,
    Users,
    TimeSkew,
    Pkcs1,
    Client,
    Udp,
    ConnectTimeout,
    Bitrate,
    PacingTimer,
    FqRate,
    Time,
    Bytes,
    Blocks,
    Length,
    ClientPort,
    Parallel,
    Reverse,
    Bidir,
    Window,
    Congestion,
    Mss,
    NoDelay,
    Version4,
    Version6,
    Tos,
    Dscp,
    FlowLabel,
    ZeroCopy,
    SkipRxCopy,
    Omit,
    Title,
    ExtraData,
    GetServerOutput,
    Counters64,
    Gsro,
    Repeating,
    DontFragment,
    Username,
    PublicKey,
    OldPacing,
    Sctp,
    XBind,
    Nstreams,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the lexer needs and help prints.
    pub flag: Flag<Id>,
    /// Whose it is.
    pub side: Side,
}

const fn row(
    id: Id,
    (short, long): (Option<char>, &'static str),
    (takes, value_name): (Takes, &'static str),
    side: Side,
    help: &'static str,
) -> Row {
    Row { flag: Flag { id, short, long, takes, value_name, help, is_ours: false }, side }
}

const fn ours(row: Row) -> Row {
    Row { flag: Flag { is_ours: true, ..row.flag }, ..row }
}

use Side::{Both, Client, Server};
use Takes::{Joined, Nothing, Value};

/// All flags of 3.12 to 3.21 in the order of their help, and ours.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row(Id::Port, (Some('p'), "port"), (Value, "PORT"), Both,
        "the server's port, where it listens or where to connect (default 5201)"),
    row(Id::Format, (Some('f'), "format"), (Value, "[kmgtKMGT]"), Both,
        "unit of rates: bits, or bytes with a capital letter"),
    row(Id::Interval, (Some('i'), "interval"), (Value, "SECONDS"), Both,
        "between reports: 0.1 to 60, 0 for none (default 1)"),
    row(Id::PidFile, (Some('I'), "pidfile"), (Value, "FILE"), Both,
        "write the process id to this file"),
    row(Id::File, (Some('F'), "file"), (Value, "NAME"), Both,
        "send this file, or receive into it"),
    row(Id::Affinity, (Some('A'), "affinity"), (Value, "N[,M]"), Both,
        "run on processor N; a client may ask its server to run on M"),
    row(Id::Bind, (Some('B'), "bind"), (Value, "HOST[%DEV]"), Both,
        "use the interface that has this address"),
    row(Id::BindDev, (None, "bind-dev"), (Value, "DEV"), Both,
        "use this interface (SO_BINDTODEVICE)"),
    row(Id::Verbose, (Some('V'), "verbose"), (Nothing, ""), Both,
        "say more"),
    row(Id::Json, (Some('J'), "json"), (Nothing, ""), Both,
        "one JSON document"),
    row(Id::JsonStream, (None, "json-stream"), (Nothing, ""), Both,
        "one line of JSON for each event"),
    row(Id::JsonStreamFull, (None, "json-stream-full-output"), (Nothing, ""), Both,
        "with --json-stream: the whole document too, at the end"),
    row(Id::LogFile, (None, "logfile"), (Value, "FILE"), Both,
        "write what would be printed to this file"),
    row(Id::ForceFlush, (None, "forceflush"), (Nothing, ""), Both,
        "flush after every interval (always done)"),
    row(Id::Timestamps, (None, "timestamps"), (Joined, "FORMAT"), Both,
        "the time before every line, as strftime writes it"),
    row(Id::RcvTimeout, (None, "rcv-timeout"), (Value, "MS"), Both,
        "give up when nothing arrives for so long (default 120000)"),
    row(Id::SndTimeout, (None, "snd-timeout"), (Value, "MS"), Both,
        "give up on sent data that nobody acknowledges"),
    row(Id::Keepalive, (None, "cntl-ka"), (Joined, "IDLE/INTERVAL/COUNT"), Both,
        "TCP keepalive on the control connection"),
    row(Id::Mptcp, (Some('m'), "mptcp"), (Nothing, ""), Both,
        "streams over MPTCP instead of TCP"),
    row(Id::Debug, (Some('d'), "debug"), (Joined, "LEVEL"), Both,
        "accepted; there is no debug output"),
    row(Id::Version, (Some('v'), "version"), (Nothing, ""), Both,
        "print the version"),
    row(Id::Help, (Some('h'), "help"), (Nothing, ""), Both,
        "print this"),
    row(Id::Server, (Some('s'), "server"), (Nothing, ""), Server,
        "be a server"),
    row(Id::Daemon, (Some('D'), "daemon"), (Nothing, ""), Server,
        "go to the background"),
    row(Id::OneOff, (Some('1'), "one-off"), (Nothing, ""), Server,
        "serve one test and end"),
    row(Id::BitrateLimit, (None, "server-bitrate-limit"), (Value, "RATE[/SECONDS]"), Server,
        "the most that a test may transfer in all, averaged over so long (default 5 s)"),
    row(Id::IdleTimeout, (None, "idle-timeout"), (Value, "SECONDS"), Server,
        "with -1: end when nobody has come for so long"),
    row(Id::MaxDuration, (None, "server-max-duration"), (Value, "SECONDS"), Server,
        "the longest test that is accepted"),
    ours(row(Id::MaxTests, (None, "max-tests"), (Value, "N"), Server,
        "how many tests are served at once, 1 to 1024 (default 64; ours alone)")),
    row(Id::PrivateKey, (None, "rsa-private-key-path"), (Value, "FILE"), Server,
        "the private key for credentials"),
    row(Id::Users, (None, "authorized-users-path"), (Value, "FILE"), Server,
        "who may test, with hashes of their passwords"),
    row(Id::TimeSkew, (None, "time-skew-threshold"), (Value, "SECONDS"), Server,
        "how far the clocks of client and server may be apart (default 10)"),
    row(Id::Pkcs1, (None, "use-pkcs1-padding"), (Nothing, ""), Both,
        "credentials in the padding of releases up to 3.16"),
    row(Id::Client, (Some('c'), "client"), (Value, "HOST[%DEV]"), Client,
        "be a client of this server"),
    row(Id::Udp, (Some('u'), "udp"), (Nothing, ""), Client,
        "UDP instead of TCP"),
    row(Id::ConnectTimeout, (None, "connect-timeout"), (Value, "MS"), Client,
        "how long the control connection may take to come about"),
    row(Id::Bitrate, (Some('b'), "bitrate"), (Value, "RATE[/BURST]"), Client,
        "bits a second of each stream, 0 for no limit (default: UDP 1M, TCP none), and packets in a row"),
    row(Id::Bitrate, (None, "bandwidth"), (Value, "RATE[/BURST]"), Client,
        "the older name of --bitrate"),
    row(Id::PacingTimer, (None, "pacing-timer"), (Value, "US"), Client,
        "sent to the server, for old ones (default 1000)"),
    row(Id::FqRate, (None, "fq-rate"), (Value, "RATE"), Client,
        "let the kernel pace each stream at so many bits a second"),
    row(Id::Time, (Some('t'), "time"), (Value, "SECONDS"), Client,
        "how long to measure (default 10)"),
    row(Id::Bytes, (Some('n'), "bytes"), (Value, "N"), Client,
        "measure until so many bytes are transferred"),
    row(Id::Blocks, (Some('k'), "blockcount"), (Value, "N"), Client,
        "measure until so many blocks are transferred"),
    row(Id::Length, (Some('l'), "length"), (Value, "BYTES"), Client,
        "size of a block or datagram (default: TCP 128K, UDP what fits a packet)"),
    row(Id::ClientPort, (None, "cport"), (Value, "PORT"), Both,
        "the first stream's own port"),
    row(Id::Parallel, (Some('P'), "parallel"), (Value, "N"), Client,
        "streams at the same time"),
    row(Id::Reverse, (Some('R'), "reverse"), (Nothing, ""), Client,
        "the server sends"),
    row(Id::Bidir, (None, "bidir"), (Nothing, ""), Client,
        "both send"),
    row(Id::Window, (Some('w'), "window"), (Value, "BYTES"), Client,
        "socket buffers at both ends"),
    row(Id::Congestion, (Some('C'), "congestion"), (Value, "NAME"), Client,
        "TCP congestion control"),
    row(Id::Congestion, (None, "linux-congestion"), (Value, "NAME"), Client,
        "the older name of --congestion"),
    row(Id::Mss, (Some('M'), "set-mss"), (Value, "BYTES"), Client,
        "the largest TCP segment"),
    row(Id::NoDelay, (Some('N'), "no-delay"), (Nothing, ""), Client,
        "no Nagle algorithm"),
    row(Id::Version4, (Some('4'), "version4"), (Nothing, ""), Both,
        "IPv4 only"),
    row(Id::Version6, (Some('6'), "version6"), (Nothing, ""), Both,
        "IPv6 only"),
    row(Id::Tos, (Some('S'), "tos"), (Value, "N"), Client,
        "type of service, 0 to 255, as 52, 064 or 0x34"),
    row(Id::Dscp, (None, "dscp"), (Value, "NAME"), Client,
        "code point, 0 to 63 or a name: af11 to af43, cs0 to cs7, ef, va"),
    row(Id::FlowLabel, (Some('L'), "flowlabel"), (Value, "N"), Client,
        "IPv6 flow label"),
    row(Id::ZeroCopy, (Some('Z'), "zerocopy"), (Nothing, ""), Client,
        "send from the page cache"),
    row(Id::SkipRxCopy, (None, "skip-rx-copy"), (Nothing, ""), Client,
        "the receiver drops what it gets unread (MSG_TRUNC)"),
    row(Id::Omit, (Some('O'), "omit"), (Value, "SECONDS"), Client,
        "measure so long before what counts"),
    row(Id::Title, (Some('T'), "title"), (Value, "TEXT"), Client,
        "put this before every line"),
    row(Id::ExtraData, (None, "extra-data"), (Value, "TEXT"), Client,
        "a text for both ends' JSON"),
    row(Id::GetServerOutput, (None, "get-server-output"), (Nothing, ""), Client,
        "print what the server printed"),
    row(Id::Counters64, (None, "udp-counters-64bit"), (Nothing, ""), Client,
        "64-bit numbers in datagrams"),
    row(Id::Gsro, (None, "gsro"), (Nothing, ""), Client,
        "UDP segmentation and receive offload at both ends"),
    row(Id::Repeating, (None, "repeating-payload"), (Nothing, ""), Client,
        "digits as payload, not random bytes"),
    row(Id::DontFragment, (None, "dont-fragment"), (Nothing, ""), Client,
        "set the IPv4 flag Don't Fragment"),
    row(Id::Username, (None, "username"), (Value, "NAME"), Client,
        "who tests; the password is in IPERF3_PASSWORD or asked for"),
    row(Id::PublicKey, (None, "rsa-public-key-path"), (Value, "FILE"), Client,
        "the server's public key, for credentials"),
    row(Id::OldPacing, (None, "no-fq-socket-pacing"), (Nothing, ""), Client,
        "accepted, without effect: the default of long ago"),
    row(Id::Sctp, (None, "sctp"), (Nothing, ""), Client,
        "refused: there is no SCTP"),
    row(Id::XBind, (Some('X'), "xbind"), (Value, "NAME"), Client,
        "refused: there is no SCTP"),
    row(Id::Nstreams, (None, "nstreams"), (Value, "N"), Client,
        "refused: there is no SCTP"),
];

/// The flags alone, for the lexer.
pub fn flags() -> Vec<Flag<Id>> {
    TABLE.iter().map(|row| row.flag).collect()
}

/// Whose flag it is.
pub fn side(id: Id) -> Side {
    TABLE.iter().find(|row| row.flag.id == id).map_or(Both, |row| row.side)
}

/// How a flag is written, for a sentence about it.
pub fn spelling(id: Id) -> String {
    TABLE.iter().find(|row| row.flag.id == id).map_or_else(String::new, |row| {
        match row.flag.short {
            Some(letter) => format!("-{letter}"),
            None => format!("--{}", row.flag.long),
        }
    })
}
