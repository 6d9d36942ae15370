//! A netserver in this process, and clients of it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_engine::error::Error;
use linerate_engine::event::{Cancel, Sink};
use linerate_engine::netperf::{
    Client, ControlPlan, Outcome, Server, ServerOptions, TestEnd, TestKind, TestPlan, TestTransport,
};
use linerate_wire::netperf::message::{Form, Message};
use linerate_wire::netperf::omni;
use linerate_wire::netperf::test::Request;

/// Longer than anything here takes on a busy machine, and shorter than a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A netserver on both loopback addresses, until it is dropped.
pub(crate) struct Service {
    addresses: Vec<SocketAddr>,
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub(crate) fn start(passphrase: Option<&str>) -> Self {
        let options = ServerOptions {
            listen: vec![(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()],
            passphrase: passphrase.map(str::to_owned),
            ..ServerOptions::default()
        };
        let server = Server::bind(&options).unwrap();
        let (addresses, cancel) = (server.addresses(), Cancel::default());
        let until = cancel.clone();
        let thread = std::thread::spawn(move || server.serve(&Sink::none(), &until).unwrap());
        Self { addresses, cancel, thread: Some(thread) }
    }

    pub(crate) fn address(&self, v6: bool) -> SocketAddr {
        *self.addresses.iter().find(|address| address.is_ipv6() == v6).unwrap()
    }

    pub(crate) fn control(&self, v6: bool) -> ControlPlan {
        let address = self.address(v6);
        let host = address.ip().to_string();
        ControlPlan { host, port: address.port(), ..ControlPlan::default() }
    }

    pub(crate) fn run(&self, v6: bool, plan: &TestPlan) -> Result<Outcome, Error> {
        let cancel = Cancel::default();
        let mut client = Client::connect(&self.control(v6), &cancel)?;
        let outcome = client.run(plan, &Sink::none(), &cancel)?;
        client.close();
        Ok(outcome)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.cancel.request();
        let _failed_elsewhere = self.thread.take().map(JoinHandle::join);
    }
}

pub(crate) fn tcp(kind: TestKind, end: TestEnd) -> TestPlan {
    TestPlan { end, ..TestPlan::new(kind, TestTransport::Tcp) }
}

pub(crate) fn udp(kind: TestKind, end: TestEnd, local: IpAddr) -> TestPlan {
    let mut plan = TestPlan { end, ..TestPlan::new(kind, TestTransport::Udp) };
    plan.local.address = Some(local);
    plan
}

/// A control connection whose messages are made by hand.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) fn connect(service: &Service) -> Self {
        Self::new(TcpStream::connect(service.address(false)).unwrap())
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Message {
        let message = omni::encode_request(Form::Long, request, None);
        self.0.write_all(&message.into_bytes()).unwrap();
        self.next()
    }

    pub(crate) fn next(&mut self) -> Message {
        let mut bytes = vec![0; Form::Long.message_bytes()];
        self.0.read_exact(&mut bytes).unwrap();
        Message::from(bytes)
    }

    /// Whether the server closes the connection without another word.
    pub(crate) fn is_closed_by_server(&mut self) -> bool {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(length) => length == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
