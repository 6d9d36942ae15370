//! What comes out of a netperf test.

use linerate_measure::EndReport;
use linerate_measure::dialect::netperf::End;

use crate::socket::TcpFigures;

/// What one test came to: a report for each end, each with one flow. Connections that come and go are one flow.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What this end counted. Its time goes from just before the connection was made to the moment when the peer had
    /// finished.
    pub client: EndReport,
    /// What the server granted, and what it counted.
    pub server: EndReport,
    /// Whether the server told its counts; else its report has only what it granted.
    pub server_told: bool,
    /// Whether a request to stop came before the end.
    pub interrupted: bool,
    /// What the kernel said of the one TCP connection when data was over, where it was asked.
    pub tcp: Option<TcpFigures>,
}

impl Outcome {
    /// This end.
    pub fn local(&self) -> End<'_> {
        End::of(&self.client)
    }

    /// The server's end.
    pub fn remote(&self) -> End<'_> {
        End::of(&self.server)
    }
}

/// What a server tells about its processors (`-t REM_CPU`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Its rate; on Linux 100, the clock ticks of a second.
    pub rate: f32,
    /// How many there are.
    pub cpus: u32,
}
