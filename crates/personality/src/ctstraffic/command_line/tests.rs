use super::*;

fn parse(line: &str) -> Result<CommandLine, Refusal> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse_command_line(&words)
}

fn options(line: &str) -> Options {
    match parse(line) {
        Ok(CommandLine::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

/// The options of a stream.
const STREAM: &str = "-protocol:udp -bitspersecond:80000 -framerate:10 -streamlength:1";

/// Every command line that is refused, and the text: those of the original's that were seen, and those
/// that its source has.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    // How options are written.
    ("-target:h -foo:1", " -foo:1"),
    ("-target:h -foo:1 --bar:2", " -foo:1 --bar:2"),
    ("-target:h -foo", "-foo"),
    ("-target:h -port:", "-port:"),
    ("-target:h --port:1", " --port:1"),
    ("-target:h /port:1", " /port:1"),
    ("-target:h -port:1 -port:2", " -port:2"),
    ("-target:h -shardcount:3", " -shardcount:3"),
    ("-target:h -buffer:abc", "invalid stoull argument"),
    ("-target:h -buffer:1k", "1k"),
    ("-target:h -port:70000", "70000"),
    ("-target:h -buffer:4294967296", "4294967296"),
    ("-target:h -buffer:[5,3]", "range value [###,###]"),
    ("-target:h -buffer:[5,]", "range value [###,###]"),
    ("-target:h -buffer:[5", "range value [###,###]"),
    // Values.
    ("-target:h -port:0", "-Port"),
    ("-target:h -protocol:sctp", "-Protocol"),
    ("-target:h -connections:0", "-connections"),
    ("-target:h -timelimit:0", "-TimeLimit"),
    ("-target:h -pauseatend:0", "-PauseAtEnd"),
    ("-target:h -statusupdate:0", "-StatusUpdate"),
    ("-target:h -consoleverbosity:7", "-ConsoleVerbosity"),
    ("-target:h -verify:xyz", "-verify"),
    ("-target:h -pattern:foo", "-pattern"),
    ("-target:h -buffer:0", "-buffer"),
    ("-target:h -buffer:[0,5]", "-buffer"),
    ("-target:h -transfer:0", "-transfer"),
    ("-target:h -pattern:pushpull -pushbytes:0", "-PushBytes"),
    ("-target:h -pattern:pushpull -pullbytes:0", "-PullBytes"),
    ("-target:h -ratelimit:0", "-RateLimit"),
    ("-target:h -burstcount:0 -burstdelay:1", "-BurstCount requires a non-zero value"),
    ("-target:h -burstcount:1 -burstdelay:0", "-BurstDelay requires a non-zero value"),
    ("-target:h -shutdown:xyz", "-shutdown"),
    ("-target:h -prepostrecvs:0", "-PrePostRecvs"),
    ("-target:h -conn:x", "-conn"),
    ("-target:h -acc:x", "-acc"),
    ("-target:h -io:wsapoll", "-io"),
    ("-target:h -inlinecompletions:x", "-inlinecompletions"),
    ("-target:h -msgwaitall:x", "-msgwaitall"),
    ("-target:h -options:x", "-Options"),
    ("-target:h -keepalivevalue:0", "Invalid KeepAliveValue"),
    ("-target:h -qosdscpvalue:64", "Invalid QosDscpValue"),
    ("-target:h -onerror:x", "-OnError"),
    ("-target:h -localport:0", "-LocalPort"),
    ("-target:h -ifindex:0", "-IfIndex"),
    ("-target:h -portscalability:x", "-PortScalability"),
    ("-target:h -threadpool:x", "-Threadpool"),
    ("-target:h -tcpinfofilename:a.txt", "TCP Info can only be logged using a csv format"),
    ("-target:h -errorfilename:a.csv", "The error logfile cannot be of csv format"),
    ("-listen:* -enablerecvsharding:x", "-EnableRecvSharding"),
    // Ends.
    ("-port:1", "must specify either -target or -listen"),
    ("-listen:* -target:127.0.0.1", "cannot specify both -Listen and -Target"),
    ("-listen:* -bind:*", "cannot specify both -bind and -listen"),
    ("-listen:* -connections:3", "-Connections is only supported when running as a client"),
    ("-target:h -connections:1000001", "-Connections must be at most 1000000"),
    ("-listen:* -iterations:1", "-Iterations is only supported when running as a client"),
    ("-listen:* -throttleconnections:1", "-ThrottleConnections is only supported when running as a client"),
    ("-target:h -serverexitlimit:1", "-ServerExitLimit is only supported when running as a client"),
    ("-listen:* -shutdown:rude", "-shutdown is a client-only option"),
    ("-listen:* -localport:5000", "Cannot specify both -listen and -LocalPort. To listen on a specific port, use -Port:####"),
    ("-listen:* -ifindex:1", "-IfIndex can only be used for outgoing connections, not listening sockets"),
    ("-target:h -localport:5000 -connections:2", "Cannot specify more connections than specified local ports. Reduce the number of connections or increase the range of local ports."),
    ("-target:h -localport:[5000,5006]", "Cannot specify more connections than specified local ports. Reduce the number of connections or increase the range of local ports."),
    // TCP.
    ("-target:h -prepostrecvs:2", "-PrePostRecvs > 1 requires -Verify:connection when using TCP"),
    ("-target:h -pushbytes:10", "-PushBytes can only be set with -Pattern:PushPull"),
    ("-target:h -pullbytes:10 -pattern:pull", "-PullBytes can only be set with -Pattern:PushPull"),
    ("-target:h -ratelimitperiod:10", "-RateLimitPeriod requires specifying -RateLimit"),
    ("-target:h -ratelimit:5", "RateLimit * RateLimitPeriod / 1000 must be greater than zero - meaning every period should send at least 1 byte"),
    ("-target:h -ratelimit:[5,500]", "RateLimit * RateLimitPeriod / 1000 must be greater than zero - meaning every period should send at least 1 byte"),
    ("-target:h -ratelimit:500 -ratelimitperiod:0", "RateLimit * RateLimitPeriod / 1000 must be greater than zero - meaning every period should send at least 1 byte"),
    ("-target:h -ratelimit:1000 -burstcount:1 -burstdelay:1", "-RateLimit and -Burstdelay cannot be used concurrently"),
    ("-target:h -burstcount:1", "-BurstCount and -BurstDelay must both be set if either are set"),
    ("-target:h -burstdelay:1", "-BurstCount and -BurstDelay must both be set if either are set"),
    ("-target:h -bitspersecond:800", "-BitsPerSecond requires -Protocol:UDP"),
    ("-target:h -framerate:10", "-FrameRate requires -Protocol:UDP"),
    ("-target:h -streamlength:10", "-StreamLength requires -Protocol:UDP"),
    ("-target:h -bufferdepth:10", "-BufferDepth requires -Protocol:UDP"),
    ("-target:h -datagrambytesize:100", "-DatagramByteSize requires -Protocol:UDP"),
    ("-target:h -jitterfilename:a.csv", "Jitter can only be logged using UDP"),
    ("-listen:* -enablerecvsharding:on", "-EnableRecvSharding (only valid with -Protocol:udp)"),
    // UDP.
    ("-target:h -protocol:udp", "-BitsPerSecond is required"),
    ("-target:h -protocol:udp -bitspersecond:800", "-FrameRate is required"),
    ("-target:h -protocol:udp -bitspersecond:800 -framerate:10", "-StreamLength is required"),
    ("-target:h -protocol:udp -bitspersecond:800 -framerate:10 -streamlength:1", "The frame size is too small - it must be at least 40 bytes"),
    ("-target:h STREAM -jitterfilename:a.txt", "Jitter can only be logged using a csv format"),
    ("-target:h STREAM -jitterfilename:a.csv -connections:2", "Jitter can only be logged for a single UDP connection"),
    ("-listen:* STREAM -jitterfilename:a.csv", "Jitter can only be logged on the client"),
    ("-target:h STREAM -enablerecvsharding:on", "-EnableRecvSharding requires the server to be listening (-Listen)"),
    ("-target:h STREAM -buffer:100", "-buffer (only applicable to TCP)"),
    ("-target:h STREAM -pattern:push", "-pattern (only applicable to TCP)"),
    ("-target:h STREAM -transfer:100", "-transfer (only applicable to TCP)"),
    ("-target:h STREAM -ratelimit:100", "-RateLimit (only applicable to TCP)"),
    ("-target:h STREAM -burstcount:1 -burstdelay:1", "-BurstCount requires -Protocol:TCP"),
    ("-target:h STREAM -burstdelay:1", "-BurstDelay requires -Protocol:TCP"),
    ("-target:h STREAM -conn:connect", "-conn (only applicable to TCP)"),
    ("-listen:* STREAM -acc:accept", "-acc (only applicable to TCP)"),
    ("-target:h STREAM -io:iocp", "-io (only applicable to TCP)"),
    ("-target:h STREAM -options:keepalive", "-Options (keepalive only allowed with TCP sockets)"),
    ("-target:h STREAM -options:tcpfastpath", "-Options (tcpfastpath only allowed with TCP sockets)"),
    ("-target:h STREAM -keepalivevalue:1", "-KeepAliveValue is only allowed with TCP sockets"),
    ("-target:h STREAM -pushbytes:1", "-PushBytes can only be set with -Pattern:PushPull"),
    ("-listen:* STREAM -enablerecvsharding:on -iocpbatchsize:257", "-IocpBatchSize"),
    ("-listen:* STREAM -enablerecvsharding:on -affinitypolicy:x", "-AffinityPolicy"),
    ("-listen:* STREAM -enablerecvsharding:on -shardworkercount:0", "-ShardWorkerCount"),
    ("-listen:* STREAM -enablerecvsharding:off -shardcount:1", " -shardcount:1"),
    // Where the original crashes or overflows.
    ("-target:h STREAM -bufferdepth:0", "-BufferDepth"),
    ("-target:h STREAM -datagrambytesize:52", "-DatagramByteSize must be 53 to 65507 bytes"),
    ("-target:h STREAM -datagrambytesize:65508", "-DatagramByteSize must be 53 to 65507 bytes"),
    ("-target:h STREAM -bufferdepth:100001", "BufferDepth * FrameRate is too large - it must be at most 1000000 frames"),
    ("-target:h -protocol:udp -bitspersecond:800 -framerate:0 -streamlength:1", "-FrameRate"),
    ("-target:h -protocol:udp -bitspersecond:-1 -framerate:10 -streamlength:9", "BitsPerSecond / 8 * StreamLength is too large - it must be less than 18446744073709551616 bytes"),
    ("-target:h -protocol:udp -bitspersecond:-1 -framerate:1 -streamlength:1", "The frame size is too large - it must be less than 4294967296 bytes"),
    ("-target:h -protocol:udp -bitspersecond:8 -framerate:4294967295 -streamlength:4294967295", "FrameRate * StreamLength is too large - it must be less than 9223372036854775808 frames"),
    // Files.
    ("-target:h -statusfilename:a.csv -connectionfilename:a.csv", "The same csv filename cannot be used for different loggers"),
    ("-target:h -connectionfilename:a.csv -tcpinfofilename:a.csv", "The same csv filename cannot be used for different loggers"),
    // linerate's own.
    ("-target:h --json --ndjson", "--json and --ndjson cannot both be set"),
    ("-target:h --json:1", "--json:1"),
    ("-target:h --json --json", "--json"),
    ("-target:h --idle-timeout", "--idle-timeout"),
    ("-target:h --idle-timeout:0", "--idle-timeout"),
    ("-target:h STREAM --idle-timeout:5", "--idle-timeout requires -Protocol:TCP"),
    ("-target:h --strict", "--strict requires -Protocol:UDP"),
    ("-listen:* --busy-poll", "--busy-poll requires -Protocol:UDP"),
    ("-target:h STREAM --busy-poll", "--busy-poll requires -Listen"),
    ("-listen:* --max-rate:5", "--max-rate requires -Protocol:UDP"),
    ("-target:h STREAM --max-rate:5", "--max-rate requires -Listen"),
    ("-target:h STREAM --max-address-rate:5", "--max-address-rate requires -Listen"),
    ("-listen:* --max-address-rate:5", "--max-address-rate requires -Protocol:UDP"),
];

#[test]
fn refusals_have_the_originals_texts() {
    for (line, expected) in REFUSED {
        let refusal = parse(&line.replace("STREAM", STREAM)).expect_err(line);
        assert_eq!(refusal.text, *expected, "{line}");
    }
}

#[test]
fn words_that_are_left_over_are_printed_first() {
    let refusal = parse("-target:h -foo:1").unwrap_err();
    assert_eq!(refusal.render(), " -foo:1\nInvalid argument specified:  -foo:1\n");
    let refusal = parse("-target:h -foo").unwrap_err();
    assert_eq!(refusal.render(), "Invalid argument specified: -foo\n");
}

#[test]
fn every_refusal_of_the_table_is_tested() {
    for (_, text) in CHECKS {
        assert!(REFUSED.iter().any(|(_, tested)| tested == text), "{text}");
    }
}

#[test]
fn help_may_stand_anywhere() {
    for (line, page) in [
        ("", Page::General),
        ("-help", Page::General),
        ("-? -foo", Page::General),
        ("-target:h -HELP:tcp", Page::Tcp),
        ("-help:Udp", Page::Udp),
        ("-?:logging", Page::Logging),
        ("-broken -help:ADVANCED", Page::Advanced),
        ("-help:other", Page::General),
    ] {
        assert_eq!(parse(line), Ok(CommandLine::Help(page)), "{line}");
    }
}

#[test]
fn options_are_read_in_any_order_and_case() {
    let a = options("-TARGET:a -target:b -Port:0x10 -bind:* -Pattern:FLOOD -buffer:[32,96]");
    let b = options("-buffer:[32,96] -pattern:duplex -BIND:* -port:16 -target:a -Target:b");
    assert_eq!(a, b);
    assert_eq!((a.hosts.targets, a.hosts.port), (vec!["a".to_owned(), "b".to_owned()], Some(16)));
    assert_eq!(options("-target:::1").hosts.targets, ["::1"]);
    assert!(options("-listen:* -verify:never").run.verify_data == Some(false));
    let own = options("-listen:* --json --idle-timeout:5 --utf16").own;
    assert_eq!((own.json, own.idle_timeout_ms, own.utf16), (true, Some(5), true));
}

#[test]
fn options_without_effect_give_a_note() {
    let notes = |line: &str| options(line).notes.len();
    assert_eq!(notes("-target:h -io:iocp -acc:AcceptEx -conn:ConnectEx -threadpool:default"), 0);
    assert_eq!(notes("-target:h -acc:accept -conn:connect -portscalability:on"), 3);
    assert_eq!(notes("-target:h -conn:ConnectByName -portscalability:off"), 0);
    assert_eq!(notes(&format!("-target:h {STREAM} -shutdown:rude -throttleconnections:5")), 2);
    let five = "-target:h -io:RioIocp -inlinecompletions:on -msgwaitall:off -options:tcpfastpath \
                -options:keepalive -threadpool:runslong";
    assert_eq!(notes(five), 5);
    assert_eq!(notes(&format!("-target:h {STREAM} -tcpinfofilename:a.csv")), 1);
    for note in options(five).notes {
        assert!(note.starts_with('-') && note.contains(" does nothing "), "{note}");
    }
}

/// The options that the original has.
const NAMES: &str = "Listen Target Bind Port Protocol Connections Iterations ServerExitLimit \
    ThrottleConnections TimeLimit PauseAtEnd StatusUpdate ConsoleVerbosity Verify Pattern Buffer \
    Transfer PushBytes PullBytes RateLimit RateLimitPeriod BurstCount BurstDelay Shutdown \
    PrePostRecvs PrePostSends Conn Acc IO InlineCompletions MsgWaitAll Options KeepAliveValue \
    TcpInfoFilename BitsPerSecond FrameRate StreamLength BufferDepth DatagramByteSize \
    JitterFilename EnableRecvSharding ShardCount ShardWorkerCount IocpBatchSize AffinityPolicy \
    StatusFilename ConnectionFilename ErrorFilename OnError LocalPort IfIndex Compartment \
    PortScalability QosDscpValue RecvBufValue SendBufValue CpuSetGroupId Threadpool";

#[test]
fn no_option_of_the_original_is_missing() {
    let mut names: Vec<&str> = NAMES.split_whitespace().collect();
    let mut known: Vec<&str> = TABLE.iter().map(|flag| flag.name).collect();
    names.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, names);
}
