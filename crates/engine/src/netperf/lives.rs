//! Connections that come and go: one after the other, each for one request and response or for
//! nothing at all, and the server closes first.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use linerate_measure::step::{Close, Life};
use linerate_wire::netperf::test::{Part, Request, Transport};
use socket2::Socket;

use super::client_test::ClientTest;
use super::job::Job;
use super::opening::local_address;
use super::plan::{TestKind, TestPlan};
use crate::clock::SECOND_NS;
use crate::connections::{Accept, Dial, Rules, SourcePorts, Tells, limit_blocking};
use crate::load::Connections;

/// A client's connection that doesn't go on for so long has failed.
pub(super) const CLIENT_SILENCE_NS: u64 = 5 * SECOND_NS;
/// A server's.
pub(super) const SERVER_SILENCE_NS: u64 = SECOND_NS;
/// The first port of the original's range.
const USUAL_FIRST: u16 = 5000;

/// What a client does on each connection.
pub(super) fn life_at_client(plan: &TestPlan, has_server: bool) -> Life {
    // A netserver closes without being asked to; another server may close only when it is told that the client
    // sends nothing more.
    let close = if has_server { Close::AfterPeer } else { Close::Graceful };
    match plan.kind {
        TestKind::Connect => Life::exchange(0, 0, close),
        _ => Life::exchange(plan.request_bytes, plan.response_bytes, close),
    }
}

/// What a server does on each connection.
pub(super) fn life_at_server(request: &Request) -> Life {
    let life = match request.part {
        Part::Accept => Life::exchange(0, 0, Close::AfterPeer),
        _ => Life::exchange(request.request_bytes, request.response_bytes, Close::AfterPeer),
    };
    life.mirrored(Close::AtOnce)
}

impl ClientTest<'_> {
    /// What makes the connections.
    pub(super) fn dial(&self, server: SocketAddr) -> Connections {
        let plan = self.plan;
        let data_plan = self.data_plan.clone();
        let open = move |server: SocketAddr, blocks| {
            let (socket, _, _) = data_plan.make(Transport::Tcp, server.is_ipv6())?;
            if blocks { limit_blocking(&socket) } else { socket.set_nonblocking(true) }?;
            Ok(socket)
        };
        let local = plan.local.address.map(|_| local_address(plan, self.v6, self.remote));
        let ports = Ports::of(plan.source_ports, plan.local.port);
        Connections::Dial(Dial {
            binds: Vec::from_iter(local),
            source_ports: ports.map(|Ports { first, last, begin }| SourcePorts {
                first,
                last,
                begin: u64::from(begin - first),
            }),
            buffers: self.job.buffers.clone(),
            rules: Rules {
                makes_up: true,
                times_silence: true,
                tells_segments: true,
                ..Rules::default()
            },
            ..Dial::new(server, Arc::new(open))
        })
    }
}

/// The source of a server's connections, and the place for the first client's address. The listener blocks for a moment
/// at most.
pub(super) fn accept(
    listener: &Arc<Socket>,
    request: &Request,
    job: &Job,
) -> (Connections, Arc<OnceLock<SocketAddr>>) {
    let first_peer = Arc::default();
    let accept = Accept {
        buffers: job.buffers.clone(),
        // Only a request says more than the handshake.
        chooses_wake_ups: !request.defer_accept && request.part != Part::Accept,
        times_silence: true,
        tells: Tells { first_peer: Some(Arc::clone(&first_peer)), ..Tells::default() },
        ..Accept::new(Arc::clone(listener))
    };
    (Connections::Accept(accept), first_peer)
}

/// Local ports of connections: a range, in which the first connection may begin anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ports {
    first: u16,
    last: u16,
    begin: u16,
}

impl Ports {
    /// The ports of a range (`-p`), beginning with the one that was told for the data connection (`-P`; 0:
    /// none was). Without a range they are the original's, extended down to the one that was told.
    fn of(range: Option<(u16, u16)>, told: u16) -> Option<Self> {
        let (first, last) = match (range, told) {
            (Some(range), _) => range,
            (None, 0) => return None,
            (None, told) => (told.min(USUAL_FIRST), u16::MAX),
        };
        let last = last.max(first);
        let begin = if (first..=last).contains(&told) { told } else { first };
        Some(Self { first, last, begin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_begin_with_the_one_that_was_told_in_a_range() {
        let ports = |range, told| {
            Ports::of(range, told).map(|ports| (ports.first, ports.last, ports.begin))
        };
        assert_eq!(ports(None, 0), None);
        // The original's range, or from a lower one that was told.
        assert_eq!(ports(None, 20_000), Some((5000, 65_535, 20_000)));
        assert_eq!(ports(None, 65_535), Some((5000, 65_535, 65_535)));
        assert_eq!(ports(None, 4000), Some((4000, 65_535, 4000)));
        let range = Some((7000, 7002));
        assert_eq!(ports(range, 7001), Some((7000, 7002, 7001)));
        for told in [0, 6999, 7003] {
            assert_eq!(ports(range, told), Some((7000, 7002, 7000)), "{told}");
        }
        assert_eq!(ports(Some((1, 65_535)), 1), Some((1, 65_535, 1)));
        assert_eq!(ports(Some((9, 9)), 5), Some((9, 9, 9)));
    }
}
