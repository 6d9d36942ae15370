//! Readers of the counters that are collected beside a test.
//!
//! The files stay open and each reading is one or a few pread(2) from the beginning; every number is
//! parsed by hand. That costs a half to a quarter of what opening the files and a general parser do.
//! /proc/net shows the network namespace that the process had when the files were opened.
//!
//! Names of metrics are those of Crucible's collectors (mpstat, sar and procstat), so that its users find them.

mod columns;
mod devices;
mod drivers;
mod interrupts;
mod memory;
mod processors;
mod protocols;
#[cfg(test)]
mod tests;
mod text;

use linerate_measure::collected::{Reader, Source};

use devices::{Devices, physical_interfaces};
use drivers::Drivers;
use interrupts::Interrupts;
use memory::{Memory, Scheduler};
use processors::{Softirqs, Softnet, Stat};
use protocols::Protocols;
use text::TextReader;

/// A reader for each source. Interrupts and drivers' counters are those of the interfaces; where none is named, of all
/// with hardware behind them.
pub fn readers(sources: &[Source], interfaces: &[String]) -> Vec<Box<dyn Reader>> {
    let all = || if interfaces.is_empty() { physical_interfaces() } else { interfaces.to_vec() };
    sources.iter().map(|source| reader(*source, &all)).collect()
}

fn reader(source: Source, interfaces: &dyn Fn() -> Vec<String>) -> Box<dyn Reader> {
    match source {
        Source::Cpu => Box::new(TextReader::new(source, &["/proc/stat"], Stat::default())),
        Source::Interrupts => {
            let format = Interrupts::new(&interfaces());
            Box::new(TextReader::new(source, &["/proc/interrupts"], format))
        }
        Source::Softirqs => {
            Box::new(TextReader::new(source, &["/proc/softirqs"], Softirqs::default()))
        }
        Source::Softnet => Box::new(TextReader::new(source, &["/proc/net/softnet_stat"], Softnet)),
        Source::Net => Box::new(TextReader::new(source, &["/proc/net/dev"], Devices::default())),
        Source::Protocols => {
            let files =
                ["/proc/net/snmp", "/proc/net/netstat", "/proc/net/snmp6", "/proc/net/sockstat"];
            Box::new(TextReader::new(source, &files, Protocols))
        }
        Source::Memory => {
            let files = ["/proc/meminfo", "/proc/vmstat", "/proc/pressure/memory"];
            Box::new(TextReader::new(source, &files, Memory))
        }
        Source::Scheduler => {
            let files = ["/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/io"];
            Box::new(TextReader::new(source, &files, Scheduler))
        }
        Source::Ethtool => Box::new(Drivers::new(&interfaces())),
    }
}
