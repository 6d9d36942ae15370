//! Servers that die at every stage of a test: their client tells it, and is gone soon.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

use linerate_engine::event::{Cancel, Sink};
use linerate_engine::netperf::{
    ControlPlan, TestEnd, TestKind, TestPlan, TestTransport, remote_errno,
};
use linerate_wire::netperf::message::Form;
use linerate_wire::netperf::omni;
use linerate_wire::netperf::test::Setup;

use crate::service::PATIENCE;

/// When a server dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before it has answered the request.
    Asked,
    /// Before data has come or gone.
    Answered,
    /// Amid data.
    Busy,
    /// When all data has come or gone, before its results.
    Done,
}

/// Transactions of a test that is done.
const TRANSACTIONS: u32 = 10;

/// A transaction of a byte each way.
fn answer(stream: &mut TcpStream) {
    stream.read_exact(&mut [0]).unwrap();
    stream.write_all(&[1]).unwrap();
}

/// Serves a client until the stage has come.
fn serve(listener: &TcpListener, (kind, transport): (TestKind, TestTransport), stage: Stage) {
    let (mut control, _) = listener.accept().unwrap();
    control.read_exact(&mut vec![0; Form::Long.message_bytes()]).unwrap();
    if stage == Stage::Asked {
        return;
    }
    let (data, datagrams) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = match transport {
        TestTransport::Tcp => data.local_addr(),
        TestTransport::Udp => datagrams.local_addr(),
    };
    let setup = Setup { data_port: address.unwrap().port(), ..Setup::default() };
    control.write_all(&omni::encode_setup(Form::Long, &setup).into_bytes()).unwrap();
    if stage == Stage::Answered {
        return;
    }
    let accept = || data.accept().unwrap().0;
    let done = stage == Stage::Done;
    let transactions = if done { TRANSACTIONS } else { TRANSACTIONS / 2 };
    let mut bytes = vec![0; 1 << 16];
    match (transport, kind) {
        (TestTransport::Udp, _) => {
            datagrams.recv(&mut bytes).unwrap();
            datagrams.set_read_timeout(Some(PATIENCE)).unwrap();
            // An empty one says that there are no more, and is said until it is heard.
            while done && datagrams.recv(&mut bytes).unwrap() > 0 {}
        }
        (_, TestKind::ConnectRequestResponse) => {
            (0..transactions).for_each(|_| answer(&mut accept()));
        }
        (_, TestKind::RequestResponse) => {
            let mut flow = accept();
            (0..transactions).for_each(|_| answer(&mut flow));
            while done && flow.read(&mut bytes).is_ok_and(|length| length > 0) {}
        }
        (_, TestKind::Receive) => accept().write_all(&bytes).unwrap(),
        _ => {
            let mut flow = accept();
            flow.read_exact(&mut bytes[..1000]).unwrap();
            while done && flow.read(&mut bytes).is_ok_and(|length| length > 0) {}
        }
    }
}

fn assert_told(kind: TestKind, transport: TestTransport, stage: Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || serve(&listener, (kind, transport), stage));
    let end = match stage {
        Stage::Done if kind.has_transactions() => TestEnd::Units(TRANSACTIONS),
        Stage::Done => TestEnd::Seconds(1),
        _ => TestEnd::Seconds(1000),
    };
    let plan = TestPlan { end, ..TestPlan::new(kind, transport) };
    let control = ControlPlan { host: "127.0.0.1".to_owned(), port, ..ControlPlan::default() };
    let began = Instant::now();
    let outcome = linerate_engine::netperf::run(&control, &plan, &Sink::none(), &Cancel::default());
    let error = outcome.expect_err("the server is gone");
    assert_eq!(remote_errno(&error), None, "{kind:?} {transport:?} {stage:?}");
    assert!(began.elapsed() < PATIENCE / 2, "{kind:?} {transport:?} {stage:?}: {error}");
    server.join().unwrap();
}

#[test]
fn a_server_that_dies_ends_its_clients_test() {
    for (kind, transport) in [
        (TestKind::Send, TestTransport::Tcp),
        (TestKind::Receive, TestTransport::Tcp),
        (TestKind::RequestResponse, TestTransport::Tcp),
        (TestKind::ConnectRequestResponse, TestTransport::Tcp),
        (TestKind::Send, TestTransport::Udp),
        (TestKind::RequestResponse, TestTransport::Udp),
    ] {
        for stage in [Stage::Asked, Stage::Answered, Stage::Busy, Stage::Done] {
            let answers_nothing = transport == TestTransport::Udp && kind.has_transactions();
            if stage == Stage::Done && answers_nothing {
                continue;
            }
            assert_told(kind, transport, stage);
        }
    }
}
