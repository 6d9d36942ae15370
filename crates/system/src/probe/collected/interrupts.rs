//! Interrupts of network interfaces.

use std::collections::HashSet;
use std::fs;

use linerate_measure::collected::{Column, Value};

use super::columns::Metric;
use super::processors::{Places, header};
use super::text::{Format, Key, Table, count, lines, words};

/// /proc/interrupts (proc(5)): the lines of some network interfaces. Only what has happened has a column.
#[derive(Default)]
pub(super) struct Interrupts {
    interfaces: Vec<String>,
    /// The numbers of the interfaces' interrupts.
    numbers: HashSet<Vec<u8>>,
    cpus: Vec<u32>,
    places: Places,
}

impl Interrupts {
    /// Those of these interfaces.
    pub(super) fn new(interfaces: &[String]) -> Self {
        let numbers = interfaces.iter().flat_map(|name| interrupts_of(name)).collect();
        Self { interfaces: interfaces.to_vec(), numbers, ..Self::default() }
    }

    /// Drivers name their interrupts after the interface: `eth0-TxRx-3`, `mlx5_comp3@pci:...`, `virtio1-input.0`. So the
    /// number decides, and the name where /sys knows no number.
    fn is_wanted(&self, number: &[u8], description: &[u8]) -> bool {
        self.numbers.contains(number)
            || self.interfaces.iter().any(|interface| {
                let mut words =
                    words(description).flat_map(|word| word.split(|byte| *byte == b','));
                words.any(|word| {
                    let rest = word.strip_prefix(interface.as_bytes());
                    rest.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
                })
            })
    }
}

impl Format for Interrupts {
    fn parse(&mut self, texts: &[&[u8]], table: &mut Table) {
        let mut lines = texts.iter().flat_map(|text| lines(text));
        self.cpus.clear();
        self.cpus.extend(header(lines.next().unwrap_or_default()));
        for line in lines {
            let line = line.trim_ascii();
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (number, rest) = (&line[..colon], &line[colon + 1..]);
            let description = description(rest, self.cpus.len());
            if !self.is_wanted(number, description) {
                continue;
            }
            for (cpu, word) in self.cpus.iter().zip(words(rest)) {
                if let Some(count) = count(word).filter(|count| *count > 0) {
                    let key = Key { a: number, b: description, n: *cpu, m: 0 };
                    table.add(key, Value::Count(count));
                }
            }
        }
    }

    fn column(&mut self, key: Key<'_>, _: u32) -> Column {
        let text = key.b_text();
        // The controller of the interrupt, its number there with its trigger, and who has asked for it.
        let mut words = text.split_ascii_whitespace();
        let kind = words.next().unwrap_or_default().to_owned();
        let action = words.skip(1).collect::<Vec<_>>().join(" ");
        let mut names = self.places.of(key.n);
        let own =
            [("cpu", key.n.to_string()), ("irq", key.a_text()), ("type", kind), ("desc", action)];
        names.extend(own.map(|(name, value)| (name.to_owned(), value)));
        Metric::rate("procstat", "interrupts-sec", "1/s").column(names)
    }
}

/// What follows the counts of a line.
fn description(mut rest: &[u8], counts: usize) -> &[u8] {
    for _ in 0..counts {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        rest = &rest[end..];
    }
    rest.trim_ascii()
}

/// The numbers of an interface's interrupts: of its device, or of the device that this one belongs to, as virtio's.
fn interrupts_of(interface: &str) -> Vec<Vec<u8>> {
    let folder = format!("/sys/class/net/{interface}/device");
    let Ok(device) = fs::canonicalize(folder) else { return Vec::new() };
    let of = |device: &std::path::Path| -> Vec<Vec<u8>> {
        let entries = fs::read_dir(device.join("msi_irqs")).into_iter().flatten().flatten();
        let mut numbers: Vec<Vec<u8>> = entries
            .filter_map(|entry| Some(entry.file_name().to_str()?.as_bytes().to_vec()))
            .collect();
        let line = fs::read_to_string(device.join("irq")).unwrap_or_default();
        numbers.extend(
            Some(line.trim().as_bytes().to_vec()).filter(|line| !line.is_empty() && line != b"0"),
        );
        numbers
    };
    let own = of(&device);
    if own.is_empty() { device.parent().map(of).unwrap_or_default() } else { own }
}
