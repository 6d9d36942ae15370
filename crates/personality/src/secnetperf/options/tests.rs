use super::*;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// A machine of four processors.
fn has_processor(number: u32) -> bool {
    number < 4
}

fn client(line: &str) -> Result<ClientOptions, Refusal> {
    let words = words(line);
    let options = ColonOptions::new(&words);
    SharedOptions::parse(options, has_processor)?;
    ClientOptions::parse(options, target(options).unwrap_or("host"), 4)
}

fn refused(line: &str) -> String {
    client(line).unwrap_err().text
}

#[test]
fn scenarios_preset_and_options_override() {
    let upload = client("-scenario:upload").unwrap();
    assert_eq!((upload.shape.upload, upload.shape.timed, upload.streams), (12_000_000, true, 1));
    assert!(upload.prints_throughput);
    let bytes = client("-scenario:upload -up:5mb").unwrap();
    assert_eq!((bytes.shape.upload, bytes.shape.timed), (5_000_000, false));
    let hps = client("-scenario:HPS").unwrap();
    assert_eq!((hps.connections, hps.streams, hps.runtime_us), (64, 0, 12_000_000));
    assert!(hps.repeats_connections && hps.prints_rate);
    let multi = client("-scenario:rps-multi -conns:4").unwrap();
    assert_eq!((multi.connections, multi.streams), (4, 100));
    let latency = client("-scenario:latency").unwrap();
    assert_eq!((latency.streams, latency.shape.upload, latency.shape.download), (1, 512, 4000));
    assert!(latency.repeats_streams && latency.prints_latency);
}

#[test]
fn the_last_amount_says_whether_both_are_times() {
    let shape = |line| {
        let Shape { upload, download, timed, .. } = client(line).unwrap().shape;
        (upload, download, timed)
    };
    assert_eq!(shape("-up:10000 -down:1s"), (10_000, 1_000_000, true));
    assert_eq!(shape("-up:1s -down:1000"), (1_000_000, 1000, false));
    assert_eq!(shape("-down:1000 -up:1s"), (1_000_000, 1000, false));
    assert_eq!(shape("-timed:1 -up:5"), (5, 0, false));
    assert_eq!(shape("-request:7 -up:8 -upload:9"), (9, 0, false));
}

#[test]
fn names_of_one_option_have_their_order() {
    let said = client(
        "-target:a -peer:b -workers:3 -threads:2 -requests:4 -streams:5 -up:1 -rs:0 -rstream:1 \
         -plat:0 -platency:1 -af:6 -ip:4",
    )
    .unwrap();
    assert_eq!((said.target.as_str(), said.threads, said.streams), ("b", Some(3), 5));
    assert!(!said.repeats_streams && !said.prints_latency);
    assert_eq!(said.family, 4);
}

#[test]
fn refusals_are_the_originals() {
    for (line, text) in [
        ("-rstream:1 -up:512", "Must specify a 'runtime' if using a repeat parameter!"),
        ("-rstream:1 -run:1s", "Must specify a 'streams' if using 'rstream'!"),
        ("-tcp:1 -encrypt:0", "TCP mode doesn't support disabling encryption!"),
        ("-tcp:1 -cibir:aabb", "TCP mode doesn't support CIBIR!"),
        ("-iosize:100 -up:1000", "'iosize' too small'!"),
        ("-cibir:00112233445566", "Cibir ID must be a hex string <= 6 bytes."),
        (
            "-bind:bogus",
            "Failed to decode bind IP address: 'bogus'!\nMust be *, a IPv4 or a IPv6 address.",
        ),
        ("-io:iouring", "iouring is not supported on this build"),
        ("-exec:foo", "Failed to parse execution profile[foo]!"),
        ("-scenario:foo", "Failed to parse scenario profile[foo]!"),
    ] {
        assert_eq!(refused(line), text, "{line}");
    }
}

#[test]
fn addresses_are_read_with_and_without_a_port() {
    for (text, address) in [
        ("*", Some("[::]:4433")),
        ("127.0.0.1", Some("127.0.0.1:4433")),
        ("127.0.0.1:24433", Some("127.0.0.1:24433")),
        ("::1", Some("[::1]:4433")),
        ("[::1]:24433", Some("[::1]:24433")),
        ("foo", None),
        ("1.2.3", None),
        ("[::1:5", None),
    ] {
        let expected = address.map(|address| address.parse().unwrap());
        assert_eq!(parse_address(text, 4433), expected, "{text}");
    }
}

#[test]
fn a_server_reads_its_own() {
    let words = words("-port:5000 -stats:1 -delay:2ms -delayType:variable -cipher:1");
    let server = ServerOptions::parse(ColonOptions::new(&words), 4).unwrap();
    assert_eq!(server.address.to_string(), "[::]:5000");
    assert_eq!(server.delay, Some(Delay { mean_us: 2000, varies: true }));
    assert!(server.stats);
    assert_eq!(server.suites, 1);
}

#[test]
fn threads_are_placed_as_they_are_told() {
    let threads = |line| {
        let words = words(line);
        SharedOptions::parse(ColonOptions::new(&words), has_processor).map(|said| said.threads)
    };
    assert_eq!(threads("").unwrap(), ThreadOptions::default());
    let low = threads("-exec:scavenger").unwrap();
    assert_eq!((low.urgency, low.count), (Urgency::Low, Some(1)));
    let real = threads("-exec:realtime").unwrap();
    assert_eq!((real.urgency, real.pinned), (Urgency::High, true));
    assert_eq!(threads("-highpri:1").unwrap().urgency, Urgency::High);
    let one = threads("-cpu:0,0,x").unwrap();
    assert_eq!((one.processors, one.count), (vec![0], Some(1)));
    assert_eq!(threads("-cpu:-1").unwrap(), ThreadOptions::default());
    assert_eq!(threads("-cpu:0,60000").unwrap_err().text, "Failed to set execution config 22");
}

#[test]
fn ports_are_shared_where_it_is_said_or_an_address_is() {
    for (line, own_ports) in
        [("", true), ("-share:1", false), ("-share:0", true), ("-share:0 -bind:127.0.0.1", false)]
    {
        assert_eq!(client(line).unwrap().own_ports, own_ports, "{line}");
    }
}
