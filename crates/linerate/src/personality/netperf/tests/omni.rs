//! What kind of test OMNI's options make, and what is said of those that mean less than they seem to.

use linerate_engine::netperf::{TestKind, TestTransport};

use super::super::planning::Work;
use super::super::reading::{Read, read};
use super::fixture::{request, words};

#[test]
fn omni_tests_take_their_kind_from_the_options() {
    for (line, kind, transport) in [
        ("", TestKind::Send, TestTransport::Tcp),
        ("-d recv", TestKind::Receive, TestTransport::Tcp),
        ("-d 4 -T udp", TestKind::Receive, TestTransport::Udp),
        ("-d send|recv", TestKind::RequestResponse, TestTransport::Tcp),
        ("-r 5 -t dgram", TestKind::RequestResponse, TestTransport::Udp),
        ("-c -r 5", TestKind::ConnectRequestResponse, TestTransport::Tcp),
        ("-c", TestKind::Connect, TestTransport::Tcp),
        ("-m ,1000", TestKind::Receive, TestTransport::Tcp),
        ("-m 1000", TestKind::Send, TestTransport::Tcp),
        ("-M 1000", TestKind::Send, TestTransport::Tcp),
        ("-M ,1000", TestKind::Receive, TestTransport::Tcp),
        ("-m 1000,2000", TestKind::RequestResponse, TestTransport::Tcp),
        ("-M 1000,2000", TestKind::RequestResponse, TestTransport::Tcp),
        ("-m 1000 -M ,2000 -c", TestKind::ConnectRequestResponse, TestTransport::Tcp),
        ("-d recv -m 1000", TestKind::Receive, TestTransport::Tcp),
        ("-d 0x2", TestKind::Send, TestTransport::Tcp),
        ("-d 0x6", TestKind::RequestResponse, TestTransport::Tcp),
        ("-d 06", TestKind::RequestResponse, TestTransport::Tcp),
        ("-d 7", TestKind::RequestResponse, TestTransport::Tcp),
        ("-d 0x4 -T udp", TestKind::Receive, TestTransport::Udp),
        ("-d 2|0x4 -c", TestKind::ConnectRequestResponse, TestTransport::Tcp),
        ("-r 5 -d send", TestKind::Send, TestTransport::Tcp),
        ("-d send -d recv", TestKind::Receive, TestTransport::Tcp),
    ] {
        let plan = request(&format!("-t omni -- {line}")).plan;
        assert_eq!((plan.kind, plan.transport), (kind, transport), "{line}");
    }
}

#[test]
fn directions_and_protocols_that_mean_less_than_they_seem_to_are_told() {
    for (line, kind, told) in [
        ("-d CRR", TestKind::Send, "-d CRR names no direction, so this end sends"),
        ("-d cc", TestKind::Send, "-d cc names no direction, so this end sends"),
        ("-d 0", TestKind::Send, "-d 0 names no direction, so this end sends"),
        ("-c -d CRR -r 5", TestKind::Connect, "-d CRR names no direction, so connections"),
        ("-T 6", TestKind::Send, "-T 6: a number chooses no protocol"),
        ("-T 17", TestKind::Send, "the test uses TCP"),
        ("-T udp -T 17", TestKind::Send, "the test uses UDP"),
    ] {
        let line = format!("-t omni -- {line}");
        let Read::Work(_, Work::Test(request), notes) = read("netperf", &words(&line)) else {
            panic!("{line}");
        };
        assert_eq!(request.plan.kind, kind, "{line}");
        assert_eq!(notes.len(), 1, "{line}: {notes:?}");
        assert!(notes[0].contains(told), "{line}: {notes:?}");
    }
    // They mean nothing to a test that isn't OMNI, of the original either.
    for line in ["-t TCP_RR -- -d CRR", "-t UDP_RR -- -T 17", "-t omni -- -d crr -d rr"] {
        let Read::Work(_, _, notes) = read("netperf", &words(line)) else { panic!("{line}") };
        assert_eq!(notes, [""; 0], "{line}");
    }
}
