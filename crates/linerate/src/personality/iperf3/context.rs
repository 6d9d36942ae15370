//! What printers know before a test begins.

use std::path::PathBuf;

use linerate_personality::iperf3::amount::RateFormat;
use linerate_personality::iperf3::options::Options;
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::Parameters;

use super::stock::Stock;
use super::sum::Interval;

/// What printers know before a test begins.
#[derive(Clone, Debug)]
pub struct Context {
    /// Which release's output it is.
    pub release: Release,
    /// The server's name as it was typed; None at a server.
    pub host: Option<String>,
    /// The server's port.
    pub port: u16,
    /// `-V`.
    pub verbose: bool,
    /// `-f`.
    pub format: RateFormat,
    /// `-i`, seconds; 0 for none.
    pub interval_s: f64,
    /// Whether datagrams get the size that fits: `-u` without `-l`.
    pub fits_datagrams: bool,
    /// `-F`.
    pub file: Option<PathBuf>,
    /// `-T`.
    pub title: Option<String>,
    /// `--extra-data`.
    pub extra_data: Option<String>,
    /// What a client asks its server for, to be shown where the server refuses it.
    pub asked: Option<Parameters>,
    /// What `uname` says of this machine.
    pub system: String,
    /// Room for what documents keep until their tests end.
    pub stock: Stock,
}

impl Context {
    /// For what was typed.
    pub fn new(options: &Options, release: Release, system: String) -> Self {
        Self {
            release,
            host: options.host().map(str::to_owned),
            port: options.port(),
            verbose: options.output.verbose,
            format: options.output.format,
            interval_s: options.output.interval_s.unwrap_or(1.0),
            fits_datagrams: options.load.udp && options.load.length_bytes.is_none(),
            file: options.payload.file.clone(),
            title: options.output.title.clone(),
            extra_data: options.payload.extra_data.clone(),
            asked: None,
            system,
            stock: Stock::for_tests(1),
        }
    }

    /// Whether an interval is printed: the short rest at a test's end isn't, when nothing came in
    /// it.
    pub(super) fn shows(&self, interval: &Interval<'_>) -> bool {
        let moved = [interval.sample.sent, interval.sample.received];
        let has_moved = moved.iter().flatten().any(|moved| moved.bytes > 0);
        has_moved || interval.seconds() >= self.interval_s * 0.1
    }
}
