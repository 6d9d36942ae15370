//! What a server makes of a request: where it serves it, and with what sockets.

use std::net::IpAddr;
use std::sync::Arc;

use linerate_wire::netperf::omni::DATAGRAM_MAX_BYTES;
use linerate_wire::netperf::test::{Carrier, Family, Part, Request};

use super::connections::Exchanged;
use super::data::{DataPlan, Granted};
use super::spinners::Spinners;

/// Where a test is served.
pub(super) struct Place {
    /// This end's address of the control connection.
    pub(super) local: IpAddr,
    /// The client's.
    pub(super) client: IpAddr,
    pub(super) cpu: Option<u32>,
    /// Whether the client says when its datagrams are over.
    pub(super) marks_end: bool,
    pub(super) other_addresses: bool,
    /// Processors, as the client is told.
    pub(super) cpu_count: u32,
    /// Who gives leave to answer without sleeping; absent: nobody has it.
    pub(super) spinners: Option<Arc<Spinners>>,
}

impl Place {
    /// The address that a test's data socket is bound to.
    pub(super) fn address(&self, request: &Request) -> IpAddr {
        let v6 = match request.family {
            Family::V4 => false,
            Family::V6 => true,
            Family::Any => self.local.is_ipv6(),
        };
        request.address.unwrap_or_else(|| super::unspecified(v6))
    }
}

/// The options of its data socket.
pub(super) fn data_plan(request: &Request) -> DataPlan {
    DataPlan {
        send_buffer_bytes: request.send_buffer_bytes,
        receive_buffer_bytes: request.receive_buffer_bytes,
        no_delay: request.no_delay,
        keep_alive: request.keep_alive,
        unrouted: !request.routed,
        dont_fragment: request.dont_fragment,
        defer_accept: request.defer_accept,
        answers_fast_open: request.fast_open,
        congestion: request.congestion.clone().filter(|_| request.carrier == Carrier::Tcp),
        priority: request.priority,
        service: request.service,
        ..DataPlan::default()
    }
}

/// What goes over each of its connections.
pub(super) fn exchanged(request: &Request) -> Exchanged {
    match request.part {
        Part::Accept => Exchanged { request_bytes: 0, response_bytes: 0, half_closes: false },
        _ => Exchanged {
            request_bytes: request.request_bytes as usize,
            response_bytes: request.response_bytes as usize,
            half_closes: false,
        },
    }
}

/// Bytes of a send or a receive.
pub(super) fn unit_bytes(request: &Request, granted: &Granted) -> u32 {
    match request.part {
        Part::Send => {
            request.send_bytes.map_or(granted.send_unit_bytes(request.carrier), |bytes| {
                if request.carrier == Carrier::Udp { bytes.min(DATAGRAM_MAX_BYTES) } else { bytes }
            })
        }
        _ => request.receive_bytes.unwrap_or(granted.receive_unit_bytes(request.carrier)),
    }
}
