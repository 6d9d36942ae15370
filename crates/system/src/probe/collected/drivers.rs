//! Counters of network interfaces' drivers.

use linerate_measure::collected::{Column, Reader, Rule, Source, Value};

use super::columns::names;
use super::text::told_apart;
use crate::socket::DriverCounters;

/// What `ethtool -S` shows of some interfaces.
pub(super) struct Drivers {
    interfaces: Vec<(String, DriverCounters)>,
    columns: Vec<Column>,
    was_read: bool,
    /// Why none can be read.
    failed: Option<String>,
}

impl Drivers {
    /// Those of these interfaces that have any.
    pub(super) fn new(interfaces: &[String]) -> Self {
        let mut open = Vec::new();
        let mut failed =
            Some("no network interface here has hardware behind it: name one".to_owned());
        for name in interfaces {
            match DriverCounters::open(name) {
                Ok(counters) => open.push((name.clone(), counters)),
                Err(error) => {
                    failed = Some(format!("can't read counters of {name}'s driver: {error}"))
                }
            }
        }
        Self { interfaces: open, columns: Vec::new(), was_read: false, failed }
    }
}

impl Reader for Drivers {
    fn source(&self) -> Source {
        Source::Ethtool
    }

    fn read(&mut self, values: &mut Vec<Value>) -> Result<bool, String> {
        if self.interfaces.is_empty() {
            return Err(self.failed.take().unwrap_or_else(|| "all interfaces are gone".to_owned()));
        }
        values.clear();
        let mut changed = !self.was_read;
        self.was_read = true;
        let before = self.interfaces.len();
        // An interface that went away is left out from then on.
        self.interfaces.retain_mut(|(_, counters)| match counters.read() {
            Ok((counts, has_changed)) => {
                changed |= has_changed;
                values.extend(counts.iter().map(|count| Value::Count(*count)));
                true
            }
            Err(_) => false,
        });
        changed |= self.interfaces.len() < before;
        if changed {
            let of_each = self.interfaces.iter().flat_map(|(interface, counters)| {
                counters.names().iter().map(|name| column(interface, name))
            });
            self.columns = told_apart(of_each.collect());
        }
        values.resize(self.columns.len(), Value::Absent);
        Ok(changed)
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }
}

/// A counter's name without its direction and number, with those as names of their own: `packets-sec`, `rx`, `0` of
/// `rx0_packets` and `rx_queue_0_packets`; `prio_bytes-sec`, `tx`, `3` of `tx_prio3_bytes`; `ch_poll-sec`, `5` of
/// `ch5_poll`.
fn column(interface: &str, counter: &str) -> Column {
    let (metric, direction, number) = parts(counter);
    let mut names = names([("interface", interface.to_owned())]);
    names.extend(direction.map(|direction| ("direction".to_owned(), direction.to_owned())));
    names.extend(number.map(|number| ("num".to_owned(), number.to_owned())));
    Column {
        source: "ethtool".to_owned(),
        metric: format!("{metric}-sec"),
        names,
        unit: "1/s".to_owned(),
        rule: Rule::Rate,
        scale: 1.0,
    }
}

fn parts(counter: &str) -> (String, Option<&str>, Option<&str>) {
    if let Some((number, rest)) = counter.strip_prefix("ch").and_then(numbered) {
        return (format!("ch_{rest}"), None, Some(number));
    }
    for direction in ["rx", "tx"] {
        let Some(rest) = counter.strip_prefix(direction) else { continue };
        if let Some((number, rest)) = rest.strip_prefix("_queue_").or(Some(rest)).and_then(numbered)
        {
            return (rest.to_owned(), Some(direction), Some(number));
        }
        if let Some((number, rest)) = rest.strip_prefix("_prio").and_then(numbered) {
            return (format!("prio_{rest}"), Some(direction), Some(number));
        }
        if let Some(rest) = rest.strip_prefix('_').filter(|rest| !rest.is_empty()) {
            return (rest.to_owned(), Some(direction), None);
        }
    }
    (counter.to_owned(), None, None)
}

/// `12` and `packets` of `12_packets`.
fn numbered(text: &str) -> Option<(&str, &str)> {
    let (number, rest) = text.split_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !rest.is_empty()).then_some((number, rest))
}

#[test]
fn directions_and_numbers_of_queues_are_taken_from_names() {
    let cases = [
        ("rx0_packets", ("packets", Some("rx"), Some("0"))),
        ("tx12_xdp_full", ("xdp_full", Some("tx"), Some("12"))),
        ("rx_queue_3_bytes", ("bytes", Some("rx"), Some("3"))),
        ("tx_prio7_bytes", ("prio_bytes", Some("tx"), Some("7"))),
        ("ch5_poll", ("ch_poll", None, Some("5"))),
        ("ch_events", ("ch_events", None, None)),
        ("rx_packets", ("packets", Some("rx"), None)),
        ("rx_vport_unicast_packets", ("vport_unicast_packets", Some("rx"), None)),
        ("peer_ifindex", ("peer_ifindex", None, None)),
        ("rx_", ("rx_", None, None)),
        ("rx0_", ("rx0_", None, None)),
        ("", ("", None, None)),
    ];
    for (counter, (metric, direction, number)) in cases {
        assert_eq!(parts(counter), (metric.to_owned(), direction, number), "{counter}");
    }
}
