//! What ctsTraffic prints and writes to files, as text from plain values.
//!
//! [`verbosity`] decides what is printed at which level. [`banner`] has the settings, [`legend`] the
//! meaning of columns, [`status`] the rows, [`connection`] lines and rows of connections and streams,
//! [`jitter`] and [`tcp_info`] the rows of their files, [`summary`] what stands at the end.
//! [`encoding`] makes bytes of a file's text. Lines have no end here unless a text has several.

use std::net::SocketAddr;

pub mod banner;
pub mod connection;
pub mod encoding;
pub mod error;
pub mod jitter;
pub mod legend;
pub mod status;
pub mod summary;
pub mod system;
pub mod tcp_info;
pub mod verbosity;

/// A time since the program's start, in seconds with three decimals.
pub fn render_time(time_ms: u64) -> String {
    format!("{}.{:03}", time_ms / 1000, time_ms % 1000)
}

/// An amount per second, rounded down; 0 where no time passed.
pub fn per_second(amount: u64, elapsed_ms: u64) -> u64 {
    let rate = u128::from(amount) * 1000 / u128::from(elapsed_ms.max(1));
    if elapsed_ms == 0 { 0 } else { u64::try_from(rate).unwrap_or(u64::MAX) }
}

/// An address, or nothing where there is none yet.
fn render_address(address: Option<SocketAddr>) -> String {
    address.map(|address| address.to_string()).unwrap_or_default()
}
