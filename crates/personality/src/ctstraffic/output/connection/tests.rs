use linerate_wire::ctstraffic::CONNECTION_ID_BYTES;

use super::*;
use crate::ctstraffic::output::system::SystemError;

fn id(text: &str) -> Option<ConnectionId> {
    let mut bytes = [0; CONNECTION_ID_BYTES];
    bytes[..36].copy_from_slice(text.as_bytes());
    Some(ConnectionId::of_wire(bytes))
}

fn ends(time_ms: u64, local: &str, remote: &str) -> Ends {
    Ends { time_ms, local: Some(local.parse().unwrap()), remote: Some(remote.parse().unwrap()) }
}

#[test]
fn a_tcp_connection_has_the_originals_line_and_row() {
    let ends = ends(49, "127.0.0.1:36397", "127.0.0.1:4444");
    let connection = TcpConnection {
        ends,
        id: id("e8ac2685-e400-47a9-a608-1316474cd271"),
        sent_bytes: 3_000_001,
        received_bytes: 0,
        elapsed_ms: 14,
        outcome: Outcome::Succeeded,
    };
    assert_eq!(
        ends.tcp_established(),
        "[0.049] TCP connection established [127.0.0.1:36397 - 127.0.0.1:4444]"
    );
    assert_eq!(
        connection.line(),
        "[0.049] TCP connection succeeded : [127.0.0.1:36397 - 127.0.0.1:4444] \
         [e8ac2685-e400-47a9-a608-1316474cd271]: SendBytes[3000001]  SendBps[214285785]  \
         RecvBytes[0]  RecvBps[0]  Time[14 ms]"
    );
    assert_eq!(
        connection.csv_row(),
        "0.049,127.0.0.1:36397,127.0.0.1:4444,3000001,214285785,0,0,14,Succeeded,\
         e8ac2685-e400-47a9-a608-1316474cd271"
    );
}

#[test]
fn failures_have_the_originals_lines_and_rows() {
    let mut connection = TcpConnection {
        ends: ends(34, "127.0.0.1:36211", "127.0.0.1:4444"),
        id: id("cf2b3649-2a89-4b08-ab5b-389d6e06c31c"),
        sent_bytes: 100_000,
        received_bytes: 0,
        elapsed_ms: 12,
        outcome: Outcome::of(Some(Fault::NotAllDataTransferred)),
    };
    assert_eq!(
        connection.line(),
        "[0.034] TCP connection failed with the protocol error ErrorNotAllDataTransferred : \
         [127.0.0.1:36211 - 127.0.0.1:4444] [cf2b3649-2a89-4b08-ab5b-389d6e06c31c] : \
         SendBytes[100000]  SendBps[8333333]  RecvBytes[0]  RecvBps[0]  Time[12 ms]"
    );
    assert_eq!(
        connection.csv_row(),
        "0.034,127.0.0.1:36211,127.0.0.1:4444,100000,8333333,0,0,12,ErrorNotAllDataTransferred,\
         cf2b3649-2a89-4b08-ab5b-389d6e06c31c"
    );
    connection.outcome = Outcome::of(Some(Fault::Network(104)));
    assert!(connection.line().starts_with(
        "[0.034] TCP connection failed with the error 10054: Connection reset by peer : [127"
    ));
    connection.outcome =
        Outcome::System(SystemError { code: 10_061, words: "Refused, at once.".to_owned() });
    connection.id = None;
    connection.ends = Ends { time_ms: 9, local: None, remote: None };
    (connection.sent_bytes, connection.elapsed_ms) = (0, 0);
    assert_eq!(connection.csv_row(), "0.009,,,0,0,0,0,0,10061: Refused  at once.,");
    connection.id = Some(ConnectionId::NONE);
    assert!(connection.csv_row().ends_with(",00000000-0000-0000-0000-000000000000"));
}

#[test]
fn a_udp_stream_has_the_originals_line_and_row() {
    let ends = ends(5966, "0.0.0.0:54674", "127.0.0.1:4444");
    let stream = UdpStream {
        ends,
        id: id("d7b00c36-bb00-4f5c-8bba-15d79ae12d12"),
        elapsed_ms: 5002,
        counts: FrameCounts { completed: 125, bits: 10_000_000, ..FrameCounts::default() },
        outcome: Outcome::Succeeded,
    };
    assert_eq!(
        ends.udp_established(),
        "[5.966] UDP connection established [0.0.0.0:54674 - 127.0.0.1:4444]"
    );
    assert_eq!(
        stream.line(),
        "[5.966] UDP connection succeeded : [0.0.0.0:54674 - 127.0.0.1:4444] \
         [d7b00c36-bb00-4f5c-8bba-15d79ae12d12] : BitsPerSecond [1999200]  Completed [125]  \
         Dropped [0]  Repeated [0]  Errors [0]"
    );
    assert_eq!(
        stream.csv_row(),
        "5.966,0.0.0.0:54674,127.0.0.1:4444,1999200,125,0,0,0,Succeeded,\
         d7b00c36-bb00-4f5c-8bba-15d79ae12d12"
    );
    let stream = UdpStream {
        ends: Ends { local: Some("[::1]:5".parse().unwrap()), ..ends },
        id: None,
        outcome: Outcome::Protocol("ErrorNotAllDataTransferred"),
        ..stream
    };
    assert!(stream.csv_row().starts_with("5.966,[::1]:5,127.0.0.1:4444,"));
    assert!(stream.csv_row().ends_with(",ErrorNotAllDataTransferred,"));
    assert!(
        stream
            .line()
            .contains("error ErrorNotAllDataTransferred : [[::1]:5 - 127.0.0.1:4444] [] : Bits")
    );
}
