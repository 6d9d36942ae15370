//! What a server makes of a request: where it serves it, with what sockets, and what it answers.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_wire::netperf::omni::DATAGRAM_MAX_BYTES;
use linerate_wire::netperf::test::{Family, Part, Request, Setup, Transport};

use super::data::{DataPlan, Granted, ring};
use super::job::{Job, Task};
use super::processor::local_calibration;
use super::spinners::Spinners;

/// Where a test is served.
pub(super) struct TestContext {
    /// This end's address of the control connection.
    pub(super) local: SocketAddr,
    /// The client's.
    pub(super) client: SocketAddr,
    pub(super) cpu: Option<u32>,
    /// Whether the client says when its datagrams are over.
    pub(super) marks_end: bool,
    pub(super) other_addresses: bool,
    /// Processors, as the client is told.
    pub(super) cpu_count: u32,
    /// Grants permission to answer without sleeping; absent: no test has it.
    pub(super) spinners: Option<Arc<Spinners>>,
    /// Length of a sample.
    pub(super) interval_ns: u64,
}

impl TestContext {
    /// The address that a test's data socket is bound to.
    pub(super) fn address(&self, request: &Request) -> SocketAddr {
        let v6 = match request.family {
            Family::V4 => false,
            Family::V6 => true,
            Family::Any => self.local.is_ipv6(),
        };
        // A datagram socket that is bound to no address gets the kernel's choice when it is connected to
        // the client, which needn't be the one that the client sends to.
        let reached = Some(self.local.ip())
            .filter(|local| request.transport == Transport::Udp && local.is_ipv6() == v6);
        let address = request.address.or(reached).unwrap_or_else(|| super::unspecified(v6));
        super::address_beside(address, request.port, self.local)
    }
}

/// Whether the data socket is to reach neighbours only. One-way UDP goes over routers whatever the request
/// says: a netperf of old forbids it there unless told otherwise, and nothing tells its habit from a
/// wish.
fn unrouted(request: &Request) -> bool {
    let one_way = matches!(request.part, Part::Receive | Part::Send);
    let may_be_habit = one_way && request.transport == Transport::Udp;
    !request.routed && !may_be_habit
}

/// The options of its data socket.
pub(super) fn data_plan(request: &Request) -> DataPlan {
    DataPlan {
        send_buffer_bytes: request.send_buffer_bytes,
        receive_buffer_bytes: request.receive_buffer_bytes,
        no_delay: request.no_delay,
        keep_alive: request.keep_alive,
        unrouted: unrouted(request),
        dont_fragment: request.dont_fragment,
        defer_accept: request.defer_accept,
        answers_fast_open: request.fast_open,
        congestion: request.congestion.clone().filter(|_| request.transport == Transport::Tcp),
        priority: request.priority,
        service: request.service,
        ..DataPlan::default()
    }
}

/// Bytes of a send or a receive.
pub(super) fn unit_bytes(request: &Request, granted: &Granted) -> u32 {
    match request.part {
        Part::Send => {
            request.send_bytes.map_or(granted.send_unit_bytes(request.transport), |bytes| {
                if request.transport == Transport::Udp {
                    bytes.min(DATAGRAM_MAX_BYTES)
                } else {
                    bytes
                }
            })
        }
        _ => request.receive_bytes.unwrap_or(granted.receive_unit_bytes(request.transport)),
    }
}

/// What the client is told.
pub(super) fn setup(
    request: &Request,
    job: &Job,
    granted: &Granted,
    data_port: u16,
    measures_cpu: bool,
) -> Setup {
    let unit = i32::try_from(job.unit_bytes).unwrap_or(i32::MAX);
    let rings = &request.rings;
    let echoed = |asked: u32| i32::try_from(asked).unwrap_or(i32::MAX).max(1);
    let asked = |size: Option<u32>| size.map_or(-1, |size| size.cast_signed());
    let (send_bytes, receive_bytes) = match job.task {
        Task::Send => (unit, asked(request.receive_bytes)),
        Task::Receive => (asked(request.send_bytes), unit),
        _ => (request.response_bytes.cast_signed(), request.request_bytes.cast_signed()),
    };
    let width = |asked: u32, buffer_bytes: i32, is_used: bool| {
        if is_used { ring(asked, buffer_bytes, job.unit_bytes) } else { echoed(asked) }
    };
    Setup {
        data_port,
        receive_buffer_bytes: granted.receive_buffer_bytes,
        receive_bytes,
        receive_width: width(
            rings.receive_width,
            granted.receive_buffer_bytes,
            job.task == Task::Receive,
        ),
        send_buffer_bytes: granted.send_buffer_bytes,
        send_bytes,
        send_width: width(rings.send_width, granted.send_buffer_bytes, job.task == Task::Send),
        no_delay: request.no_delay,
        cpu: measures_cpu,
        cpu_rate: if measures_cpu { local_calibration().rate } else { 0.0 },
        pacing: job.pacing.unwrap_or((0, 0)),
        priority: granted.priority,
        service: granted.service,
    }
}

#[cfg(test)]
mod tests {
    use linerate_wire::netperf::test::{Family, Part, Request, Transport};

    use super::{TestContext, data_plan};

    fn context(local: &str) -> TestContext {
        TestContext {
            local: local.parse().unwrap(),
            client: local.parse().unwrap(),
            cpu: None,
            marks_end: true,
            other_addresses: false,
            cpu_count: 1,
            spinners: None,
            interval_ns: u64::MAX,
        }
    }

    #[test]
    fn datagrams_are_awaited_where_the_control_connection_came() {
        let at = |local: &str, transport, family, address: Option<&str>| {
            let address = address.map(|address| address.parse().unwrap());
            let plain = Request::new(Part::Answer, transport);
            let request = Request { family, address, port: 9, ..plain };
            context(local).address(&request).to_string()
        };
        let (v4, v6) = ("127.0.0.2:5", "[fe80::1%3]:5");
        assert_eq!(at(v4, Transport::Udp, Family::Any, None), "127.0.0.2:9");
        assert_eq!(at(v4, Transport::Udp, Family::V4, Some("127.0.0.3")), "127.0.0.3:9");
        assert_eq!(at(v4, Transport::Udp, Family::V6, None), "[::]:9");
        assert_eq!(at(v4, Transport::Tcp, Family::Any, None), "0.0.0.0:9");
        assert_eq!(at(v6, Transport::Udp, Family::V6, None), "[fe80::1%3]:9");
        assert_eq!(at(v6, Transport::Udp, Family::V4, None), "0.0.0.0:9");
    }

    #[test]
    fn one_way_datagrams_are_routed_whatever_the_request_says() {
        let unrouted = |part, transport, routed| {
            data_plan(&Request { routed, ..Request::new(part, transport) }).unrouted
        };
        assert!(!unrouted(Part::Receive, Transport::Udp, false));
        assert!(!unrouted(Part::Send, Transport::Udp, false));
        assert!(unrouted(Part::Answer, Transport::Udp, false));
        assert!(unrouted(Part::Receive, Transport::Tcp, false));
        assert!(!unrouted(Part::Answer, Transport::Udp, true));
    }
}
