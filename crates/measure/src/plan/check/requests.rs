//! Whether what is asked of requests and connections makes sense.

use std::ops::RangeInclusive;

use super::{Checked, in_bytes, in_digits, refuse_first, refuse_if, within};
use crate::plan::{Closing, Handshake, Kind, Transport, Workload, limits};
use crate::step::Size;
use crate::units::render_duration_ns;

impl Workload {
    pub(super) fn check_requests(&self) -> Checked {
        if let Kind::Rr { outstanding: Some(outstanding), .. } = self.kind {
            within("outstanding requests", outstanding, &limits::OUTSTANDING, in_digits)?;
        }
        if let Kind::Connect { .. } = self.kind {
            within("connections at once", self.flows, &limits::CONNECTIONS_AT_ONCE, in_digits)?;
            self.check_transfer()?;
        }
        self.check_active_flows()?;
        let Some(schedule) = self.schedule() else {
            return Ok(());
        };
        let (least, most) = (limits::PER_S.start(), limits::PER_S.end());
        refuse_if(!limits::PER_S.contains(&schedule.per_s), "requests per second", || {
            format!("{} per second is out of range: ask for {least} to {most}", schedule.per_s)
        })
    }

    fn check_transfer(&self) -> Checked {
        let Kind::Connect { hold_ns, close, transfer, .. } = self.kind else { return Ok(()) };
        within("time of holding", hold_ns, &limits::HOLD_NS, render_duration_ns)?;
        let early = self.tls.handshake == Handshake::Early;
        refuse_first(&[
            (
                hold_ns > 0 && close == Closing::Server,
                "time of holding",
                "connections that the client holds open (--hold) and the server closes (--close server): leave \
                 one of them out",
            ),
            (
                early && transfer.is_some(),
                "bytes of a transfer",
                "transfers (--transfer) with early data (--handshake early), which is for requests: leave one \
                 of them out",
            ),
            (
                early && hold_ns > 0,
                "time of holding",
                "connections held open (--hold) with early data (--handshake early): leave one of them out",
            ),
        ])?;
        let Some(transfer) = transfer else { return Ok(()) };
        check_size("bytes of a transfer", transfer.bytes, &limits::TRANSFER_BYTES)?;
        if let Some(bytes) = transfer.buffer_bytes {
            check_size("buffer of a transfer", bytes, &limits::MESSAGE_BYTES)?;
        }
        within("bytes of a push", transfer.push_bytes, &limits::TURN_BYTES, in_bytes)?;
        within("bytes of a pull", transfer.pull_bytes, &limits::TURN_BYTES, in_bytes)
    }

    fn check_active_flows(&self) -> Checked {
        let Some(active) = self.active_flows() else {
            return Ok(());
        };
        within("number of active flows", active, &(1..=self.flows.into()), in_digits)?;
        let streams = matches!(self.transport, Transport::Tcp | Transport::Tls);
        refuse_first(&[
            (
                !streams,
                "number of active flows",
                "a limit of active flows needs TCP or TLS: leave it out, or use one of the two",
            ),
            (
                self.schedule().is_some(),
                "number of active flows",
                "a schedule decides when each request is sent, so active flows can't be limited: leave \
                 one of them out",
            ),
            (
                self.outstanding() > 1,
                "number of active flows",
                "a limit of active flows needs one outstanding request per flow: leave one of them out",
            ),
        ])?;
        let threads = self.threading.threads.unwrap_or(1);
        refuse_if(threads > active, "number of threads", || {
            format!(
                "{threads} threads for {active} active flows: ask for at most as many threads as \
                 active flows"
            )
        })
    }
}

fn check_size(name: &'static str, size: Size, range: &RangeInclusive<u64>) -> Checked {
    let (low, high) = match size {
        Size::Fixed(bytes) => (bytes, bytes),
        Size::Range { low_bytes, high_bytes } => (low_bytes, high_bytes),
    };
    refuse_if(high < low, name, || {
        format!("{name} from {low} to {high}: give the lower number first")
    })?;
    within(name, low, range, in_bytes)?;
    within(name, high, range, in_bytes)
}
