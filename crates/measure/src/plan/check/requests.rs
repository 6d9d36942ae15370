//! Whether what is asked of requests and connections makes sense.

use super::{Checked, in_digits, refuse_first, refuse_if, within};
use crate::plan::{Kind, Transport, Workload, limits};

impl Workload {
    pub(super) fn check_requests(&self) -> Checked {
        if let Kind::Rr { outstanding: Some(outstanding), .. } = self.kind {
            within("outstanding requests", outstanding, &limits::OUTSTANDING, in_digits)?;
        }
        if let Kind::Connect { .. } = self.kind {
            within("connections at once", self.flows, &limits::CONNECTIONS_AT_ONCE, in_digits)?;
        }
        self.check_active_flows()?;
        let Some(schedule) = self.schedule() else {
            return Ok(());
        };
        let (least, most) = (limits::PER_S.start(), limits::PER_S.end());
        refuse_if(!limits::PER_S.contains(&schedule.per_s), || {
            format!("{} per second is out of range: ask for {least} to {most}", schedule.per_s)
        })
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
                "a limit of active flows (--active) with a transport other than TCP and TLS: leave it \
                 out, or ask for one of the two",
            ),
            (
                self.schedule().is_some(),
                "a limit of active flows (--active) with requests by a schedule, which says itself when \
                 each is sent: leave one of them out",
            ),
            (
                self.outstanding() > 1,
                "a limit of active flows (--active) with several requests on their way in each: leave one of them out",
            ),
        ])?;
        let threads = self.threads.unwrap_or(1);
        refuse_if(threads > active, || {
            format!(
                "{threads} threads for {active} active flows: ask for at most as many threads as \
                 active flows"
            )
        })
    }
}
