//! What the scheduler needs of the hosts.

use std::time::Duration;

use crate::agent::{Moment, StartTask};
use crate::collect::Request;
use crate::host::{HostEvent, HostId, Session, Way};

/// The hosts of a run, with their channels. A [`Session`] is one; tests have their own.
pub trait Fleet {
    /// Starts a child; its number.
    fn start(&mut self, host: HostId, start: StartTask) -> u32;
    /// Writes to a child's standard input.
    fn write(&mut self, host: HostId, task: u32, text: &str, end: bool);
    /// Ends a child: SIGTERM, and SIGKILL after the grace.
    fn stop(&mut self, host: HostId, task: u32, grace: Duration);
    /// Starts the host's collectors anew, or ends them.
    fn collect(&mut self, host: HostId, request: Option<Request>);
    /// Measures the host's clock anew.
    fn measure_clock(&mut self, host: HostId);
    /// Where a client on one host reaches a server on another that listens on this port. Asked again while the way is
    /// awaited; such a wait has a limit.
    ///
    /// # Errors
    ///
    /// Why there is no way, a sentence.
    fn reach(&mut self, server: HostId, port: u16, client: HostId) -> Result<Way, String>;
    /// What happened next; none within this time.
    fn next_event(&mut self, timeout: Duration) -> Option<HostEvent>;
    /// The controller's clocks.
    fn now(&self) -> Moment;
}

impl Fleet for Session {
    fn start(&mut self, host: HostId, start: StartTask) -> u32 {
        Self::start(self, host, start)
    }

    fn write(&mut self, host: HostId, task: u32, text: &str, end: bool) {
        Self::write(self, host, task, text, end);
    }

    fn stop(&mut self, host: HostId, task: u32, grace: Duration) {
        Self::stop(self, host, task, grace);
    }

    fn collect(&mut self, host: HostId, request: Option<Request>) {
        Self::collect(self, host, request);
    }

    fn measure_clock(&mut self, host: HostId) {
        Self::measure_clock(self, host);
    }

    fn reach(&mut self, server: HostId, port: u16, client: HostId) -> Result<Way, String> {
        Self::reach(self, server, port, client).map_err(|error| error.to_string())
    }

    fn next_event(&mut self, timeout: Duration) -> Option<HostEvent> {
        Self::next_event(self, timeout)
    }

    fn now(&self) -> Moment {
        Moment::now()
    }
}
