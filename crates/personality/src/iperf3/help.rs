//! `--help` and `--version`.

use super::flags::{Side, TABLE};
use super::release::{Release, VARIABLE};
use crate::getopt::render_flags;

/// What stands behind a parameter error.
pub const USAGE: &str =
    "\nUsage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n";

/// `--help`.
pub fn render_help() -> String {
    let mut text =
        "Usage: iperf3 [-s|-c host] [options]\n       iperf3 [-h|--help] [-v|--version]\n"
            .to_owned();
    let sections = [
        ("Server or Client", Side::Both),
        ("Server specific", Side::Server),
        ("Client specific", Side::Client),
    ];
    for (title, side) in sections {
        let flags = TABLE.iter().filter(|flag| flag.meaning.side == side);
        text.push_str(&format!("\n{title}:\n{}", render_flags(flags)));
    }
    text.push_str(&format!(
        "\nSizes and counts take K, M, G or T (1024), rates too (1000).\n\
         {VARIABLE}=3.12 prints what that release prints.\n\
         This is linerate {}, which speaks iperf3's language; see docs/compat/iperf3.md.\n",
        env!("CARGO_PKG_VERSION")
    ));
    text
}

/// `--version`; `system` is what `uname` says of this machine.
pub fn render_version(release: Release, system: &str) -> String {
    format!(
        "{} (linerate {})\n{}\nOptional features available: CPU affinity setting, IPv6 flow label, \
         TCP congestion algorithm setting, sendfile / zerocopy, socket pacing, authentication, \
         bind to device, support IPv4 don't fragment, GSO/GRO support\n",
        release.title(),
        env!("CARGO_PKG_VERSION"),
        system
    )
}
