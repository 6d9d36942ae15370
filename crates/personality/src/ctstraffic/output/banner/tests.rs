use super::*;
use crate::ctstraffic::command_line::{CommandLine, parse_command_line};

fn options(line: &str) -> Options {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match parse_command_line(&words) {
        Ok(CommandLine::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn client(line: &str) -> String {
    let targets = ["127.0.0.1:4444".parse().unwrap()];
    let binds = ["0.0.0.0:0".parse().unwrap()];
    let addresses = RunAddresses::Client { targets: &targets, binds: &binds };
    render_banner(&options(line), addresses)
}

/// The banner of the original with what is ours in the places of Windows' own.
#[test]
fn a_client_of_tcp_has_the_originals_banner() {
    let line = "-target:127.0.0.1 -pattern:pushpull -pushbytes:1000 -pullbytes:3000 -buffer:700 \
                -transfer:10001 -connections:1 -iterations:1";
    let expected = "  Configured Settings  \n-----------------------
\tProtocol: TCP
\tOptions: NonBlockingIO
\tIO function: Epoll (send/recv using epoll)
\tIoPattern: PushPull <TCP client/server alternate send/recv>
\t\tPushBytes: 1000
\t\tPullBytes: 3000
\tPrePostRecvs: 1
\tPrePostSends: 1
\tLevel of verification: Connections & Data
\tPort: 4444
\tBuffer used for each IO request: 700 [0x2bc] bytes
\tTotal transfer per connection: 10001 bytes
\tConnecting out to addresses:
\t\t127.0.0.1:4444
\tBinding to local addresses for outgoing connections:
\t\t0.0.0.0
\tConnection limit (maximum established connections): 1 [0x1]
\tConnection throttling rate (maximum pended connection attempts): 1000 [0x3e8]
\tTotal outgoing connections before exit (iterations * concurrent connections) : 1 [0x1]
\tAffinitized to all CPUs

";
    assert_eq!(client(line), expected);
}

#[test]
fn a_server_of_streams_has_the_originals_banner() {
    let line = "-listen:* -protocol:udp -bitspersecond:2000001 -framerate:25 -streamlength:2 \
                -serverexitlimit:1";
    let listening = ["0.0.0.0:4444".parse().unwrap(), "[::]:4444".parse().unwrap()];
    let expected = "  Configured Settings  \n-----------------------
\tProtocol: UDP
\tOptions: NonBlockingIO
\tIO function: MediaStream Server
\tIoPattern: MediaStream <UDP controlled stream from server to client>
\tPrePostRecvs: 2
\tPrePostSends: 1
\tLevel of verification: Connections & Data
\tPort: 4444
\tBuffer used for each IO request: 10000 [0x2710] bytes
\tTotal transfer per connection: 500000 bytes
\t\tUDP Stream BitsPerSecond: 2000000 bits per second
\t\tUDP Stream FrameRate: 25 frames per second
\t\tUDP Stream BufferDepth: 1 seconds
\t\tUDP Stream StreamLength: 2 seconds (50 frames)
\t\tUDP Stream FrameSize: 10000 bytes
\tAccepting connections on addresses:
\t\t0.0.0.0:4444
\t\t[::]:4444
\tServer-accepted connections before exit : 1 [0x1]
\tAffinitized to all CPUs

";
    assert_eq!(render_banner(&options(line), RunAddresses::Server(&listening)), expected);
}

#[test]
fn each_option_set_has_a_line() {
    let all = client(
        "-target:h -keepalivevalue:500 -portscalability:on -recvbufvalue:10 -sendbufvalue:20 \
         -prepostsends:0 -verify:connection -buffer:[10,20] -transfer:[30,40] -ratelimit:[5000,6000] \
         -compartment:vrf0 -qosdscpvalue:46 -ifindex:3 -localport:[5000,5007] -cpusetgroupid:1",
    );
    for line in [
        "Options: KeepAlive (500) NonBlockingIO PortScalability SO_RCVBUF(10) SO_SNDBUF(20)",
        "PrePostSends: Following Ideal Send Backlog",
        "Level of verification: Connections",
        "Buffer used for each IO request: [10, 20] bytes",
        "Total transfer per connection: [30, 40] bytes",
        "Sending throughput rate limited to [5000, 6000] bytes/second (100 ms)",
        "IP Compartment: vrf0",
        "QosDscpValue: 46",
        "InterfaceIndex: 3",
        "Using local port for outgoing connections: [5000, 5007]",
        "Total outgoing connections before exit (iterations * concurrent connections) : 0xffffffffffffffff",
        "Affinitized to the CPUs of NUMA node 1",
    ] {
        assert!(all.contains(&format!("\n\t{line}\n")), "{line}\n{all}");
    }
    let bursts = client("-target:h -burstcount:4 -burstdelay:200");
    assert!(bursts.contains("\n\tSending in bursts of 4, 200 ms apart\n"));
    let sharded = options(
        "-listen:* -protocol:udp -bitspersecond:800000 -framerate:10 -streamlength:1 \
         -enablerecvsharding:on -shardcount:3",
    );
    let sharded = render_banner(&sharded, RunAddresses::Server(&[]));
    assert!(sharded.contains("\n\t\tShardCount: 3\n"));
}
