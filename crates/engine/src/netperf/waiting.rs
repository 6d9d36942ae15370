//! What a test at the client waits for beside its data: its turn, and the server's results.

use std::os::fd::AsFd;

use linerate_wire::netperf::client::ClientEvent;
use linerate_wire::netperf::end::PAD_NS;
use linerate_wire::netperf::fault::Fault;
use linerate_wire::netperf::test::{Length, Results};
use rustix::net::SendFlags;

use super::client_test::{ClientTest, INTERRUPTED_NS, LOOK_NS};
use crate::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns};
use crate::error::Error;
use crate::event::Cancel;
use crate::flow::say_end;
use crate::poll::readable_until;
use crate::waker::Waker;

/// How often the end of datagrams is said while results are awaited.
const REPEAT_END_NS: u64 = 100 * MILLISECOND_NS;

impl ClientTest<'_> {
    /// Waits for the server's word, for the load's, or for so long. What the server says before the
    /// end can only be its results.
    pub(super) fn listen(
        &mut self,
        waker: Option<&Waker>,
        wait_ns: u64,
    ) -> Result<Option<Results>, Error> {
        let waker = waker.map(AsFd::as_fd);
        let Some(client) = &mut self.client else {
            readable_until(waker, monotonic_ns().saturating_add(wait_ns));
            return Ok(None);
        };
        match client.listen(waker, wait_ns)? {
            Some(ClientEvent::Results(results)) => Ok(Some(results)),
            Some(_) => {
                Err(client
                    .failed(&Fault::Protocol("it sent an answer without a request".to_owned())))
            }
            None => Ok(None),
        }
    }

    /// Waits between the answer and the data, as the plan says.
    ///
    /// # Errors
    ///
    /// When a request to stop comes, and when the server waits no longer.
    pub(super) fn wait_as_asked(&mut self, cancel: &Cancel) -> Result<(), Error> {
        let until_ns = monotonic_ns() + u64::from(self.plan.wait_s) * SECOND_NS;
        while monotonic_ns() < until_ns {
            if cancel.requested() {
                return Err(Error::Interrupted);
            }
            let left_ns = until_ns.saturating_sub(monotonic_ns());
            if self.listen(None, LOOK_NS.min(left_ns))?.is_some() {
                return Err(Error::Peer(format!(
                    "the netserver has ended its part of the test before this end was to begin: wait \
                     for less than {} s (-s), or test for longer (-l)",
                    self.plan.wait_s
                )));
            }
        }
        Ok(())
    }

    /// Waits for what the server did, when this end's part is over. Where somebody has asked to stop, or does so
    /// meanwhile, not for long. One full queue takes all datagrams that said the end behind the load, so that it
    /// is said again until the server has heard.
    pub(super) fn await_results(
        &mut self,
        began_ns: u64,
        mut interrupted_ns: Option<u64>,
        cancel: &Cancel,
    ) -> Result<Results, Error> {
        let mut next_end_ns = monotonic_ns() + REPEAT_END_NS;
        loop {
            let now_ns = monotonic_ns();
            if cancel.requested() {
                interrupted_ns.get_or_insert(now_ns);
            }
            if interrupted_ns.is_some_and(|at_ns| self.is_too_late(began_ns, at_ns, now_ns)) {
                return Err(Error::Unfinished(format!(
                    "interrupted before the netserver at {} had sent its figures: there is no result; \
                     a test that ends by its length (-l) waits longer for them",
                    self.remote.ip()
                )));
            }
            if let Some(socket) = self.end_socket.as_ref().filter(|_| now_ns >= next_end_ns) {
                say_end(socket, SendFlags::DONTWAIT);
                next_end_ns = now_ns + REPEAT_END_NS;
            }
            if let Some(client) =
                self.client.as_mut().filter(|c| !c.control.machine.awaits_results())
            {
                return Err(client.failed(&Fault::Closed { awaited: "its results" }));
            }
            if let Some(results) = self.listen(None, LOOK_NS)? {
                return Ok(results);
            }
        }
    }

    /// Whether results come too late, or will, for a client that was interrupted at this time.
    fn is_too_late(&self, began_ns: u64, interrupted_ns: u64, now_ns: u64) -> bool {
        let limit_ns = interrupted_ns.saturating_add(INTERRUPTED_NS);
        // Only its own timer ends the part of a server of connections that come and go.
        let by_timer_ns = match self.request.length {
            _ if !self.job_is_connections() => 0,
            Length::Seconds(seconds) => {
                began_ns.saturating_add(u64::from(seconds) * SECOND_NS + PAD_NS)
            }
            Length::Units(_) | Length::Open => u64::MAX,
        };
        limit_ns < now_ns.max(by_timer_ns)
    }
}
