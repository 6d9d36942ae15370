//! Texts as several kernels write them, and texts that no kernel writes.

use linerate_measure::collected::{Column, Rule, Source, Value, check_columns};

use super::text::{Format, read_texts};
use super::*;

/// What a table has of a metric: the names without processors' places, and the value.
fn found(table: &[(Column, Value)], metric: &str) -> Vec<(String, Value)> {
    let of_metric = table.iter().filter(|(column, _)| column.metric == metric);
    let places = ["package", "die", "core", "thread"];
    of_metric
        .map(|(column, value)| {
            let names = column.names.iter().filter(|(name, _)| !places.contains(&name.as_str()));
            let names: Vec<_> = names.map(|(name, value)| format!("{name}={value}")).collect();
            (names.join(" "), *value)
        })
        .collect()
}

#[track_caller]
fn assert_found(table: &[(Column, Value)], metric: &str, expected: &[(&str, Value)]) {
    let expected: Vec<_> =
        expected.iter().map(|(names, value)| ((*names).to_owned(), *value)).collect();
    assert_eq!(found(table, metric), expected, "{metric}");
}

#[test]
fn processors_times_are_shares_of_all_their_time() {
    // Linux 6.x: ten numbers, the guest's time in the user's as well.
    let text = "cpu  300 0 40 100 5 1 2 3 50 0\n\
                cpu3 300 20 40 100 5 1 2 3 50 10\n\
                intr 9 1 2\nctxt 777\nbtime 1\nprocesses 55\nprocs_running 2\nprocs_blocked 1\nsoftirq 1 2\n";
    let table = read_texts(&mut Stat::default(), &[text]);
    let count = Value::Count;
    assert_found(
        &table,
        "Busy-CPU",
        &[
            ("num=3 type=usr", count(250)),
            ("num=3 type=nice", count(10)),
            ("num=3 type=sys", count(40)),
            ("num=3 type=irq", count(1)),
            ("num=3 type=soft", count(2)),
            ("num=3 type=guest", count(50)),
            ("num=3 type=gnice", count(10)),
        ],
    );
    let idle = [("num=3 type=iowait", 5), ("num=3 type=steal", 3), ("num=3 type=idle", 100)];
    assert_found(&table, "NonBusy-CPU", &idle.map(|(names, ticks)| (names, count(ticks))));
    assert_found(&table, "CPU", &[("num=3", count(471))]);
    let shares = table.iter().filter(|(column, _)| column.rule == Rule::Share(0));
    assert_eq!(shares.count(), 10);
    assert_found(&table, "Context-switches-sec", &[("", count(777))]);
    assert_found(&table, "Processes-created-sec", &[("", count(55))]);
    assert_found(&table, "IO-Blocked-Tasks", &[("", count(1))]);
}

#[test]
fn each_processor_has_a_whole_of_its_own() {
    let table = read_texts(&mut Stat::default(), &["cpu0 1 2 3 4\nctxt 1\ncpu8 1 2 3 4\n"]);
    let columns: Vec<Column> = table.into_iter().map(|(column, _)| column).collect();
    check_columns(&columns).unwrap();
    let of_eight = |column: &&Column| column.names.get("num").is_some_and(|num| num == "8");
    let rules: Vec<Rule> = columns.iter().filter(of_eight).map(|column| column.rule).collect();
    assert_eq!(rules[..2], [Rule::Whole, Rule::Share(12)]);
}

#[test]
fn interrupts_are_those_of_the_interfaces() {
    let text = "            CPU0       CPU2\n  0:          9          0   IO-APIC   2-edge      timer\n \
                64:          7          0  PCI-MSIX-0000:3b:00.0   1-edge      eth0-TxRx-0\n \
                65:          0          8  PCI-MSIX-0000:3b:00.0   2-edge      eth0-TxRx-1\n \
                66:          5          5  PCI-MSIX-0000:5e:00.0   1-edge      eth01-TxRx-1\n\
                NMI:          3          3   Non-maskable interrupts\nERR:          0\n";
    let mut format = Interrupts::new(&["eth0".to_owned()]);
    let table = read_texts(&mut format, &[text]);
    let expected = [
        ("cpu=0 desc=eth0-TxRx-0 irq=64 type=PCI-MSIX-0000:3b:00.0", Value::Count(7)),
        ("cpu=2 desc=eth0-TxRx-1 irq=65 type=PCI-MSIX-0000:3b:00.0", Value::Count(8)),
    ];
    assert_found(&table, "interrupts-sec", &expected);
}

#[test]
fn soft_interrupts_that_never_happened_have_no_column() {
    let text = "                    CPU0       CPU1\n          HI:          0          2\n      NET_RX:       1531          0\n";
    let table = read_texts(&mut Softirqs::default(), &[text]);
    let expected = [("cpu=1 type=HI", Value::Count(2)), ("cpu=0 type=NET_RX", Value::Count(1531))];
    assert_found(&table, "softirqs-sec", &expected);
}

#[test]
fn queues_of_processors_read_with_and_without_the_number_of_the_processor() {
    // Linux 5.10 and later: the thirteenth number is the processor's.
    let line =
        |first: &str, cpu: &str| format!("{first} 0000000a 00000003 0 0 0 0 0 0 0 0 0 {cpu} 0 0\n");
    let new = line("ffffffff", "00000002") + &line("00000001", "00000004");
    let table = read_texts(&mut Softnet, &[&new]);
    let processed = [("cpu=2", Value::Count(0xffff_ffff)), ("cpu=4", Value::Count(1))];
    assert_found(&table, "processed-sec", &processed);
    assert_found(
        &table,
        "dropped-sec",
        &[("cpu=2", Value::Count(10)), ("cpu=4", Value::Count(10))],
    );
    assert_found(
        &table,
        "time-squeeze-sec",
        &[("cpu=2", Value::Count(3)), ("cpu=4", Value::Count(3))],
    );
    let old =
        "00000005 00000000 00000000 0 0 0 0 0 0 0 0\n00000006 00000000 00000000 0 0 0 0 0 0 0 0\n";
    let table = read_texts(&mut Softnet, &[old]);
    assert_found(
        &table,
        "processed-sec",
        &[("cpu=0", Value::Count(5)), ("cpu=1", Value::Count(6))],
    );
}

#[test]
fn devices_read_with_and_without_a_blank_after_the_colon() {
    let heading = "Inter-|   Receive                                |  Transmit\n \
                   face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs\n";
    let text = format!(
        "{heading}    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\nwan0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    );
    let table = read_texts(&mut Devices::default(), &[&text]);
    let wan: Vec<_> =
        table.iter().filter(|(column, _)| column.names["dev"] == "wan0").cloned().collect();
    assert_found(
        &wan,
        "L2-Gbps",
        &[
            ("dev=wan0 direction=rx type=unknown", Value::Count(1)),
            ("dev=wan0 direction=tx type=unknown", Value::Count(9)),
        ],
    );
    let errors: Vec<u64> = found(&wan, "errors-sec")
        .iter()
        .map(|(_, value)| if let Value::Count(count) = value { *count } else { 0 })
        .collect();
    assert_eq!(errors, [4, 5, 6, 12, 13, 14, 15]);
    let lo: Vec<_> = table.iter().filter(|(column, _)| column.names["dev"] == "lo").collect();
    assert_eq!((lo.len(), lo[0].0.names["type"].as_str(), lo[0].0.scale), (11, "virtual", 8e-9));
}

#[test]
fn protocols_counters_and_levels_are_told_apart() {
    let snmp = "Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 99\n\
                Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens CurrEstab RetransSegs\n\
                Tcp: 1 200 120000 -1 30 4 18446744073709551615\n";
    let netstat = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 12\nIpExt: InOctets\nIpExt: 5\n";
    let snmp6 =
        "Ip6InReceives                   \t1\nUdpLite6InDatagrams\t2\nUdp6InErrors\t3\nOther7\t9\n";
    let sockstat = "sockets: used 20\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 362\n";
    let table = read_texts(&mut Protocols, &[snmp, netstat, snmp6, sockstat]);
    let all: Vec<String> = table
        .iter()
        .map(|(column, value)| format!("{} {} {value:?}", column.names["protocol"], column.metric))
        .collect();
    assert_eq!(
        all,
        [
            "Ip InReceives-sec Count(99)",
            "Tcp ActiveOpens-sec Count(30)",
            "Tcp CurrEstab Count(4)",
            "Tcp RetransSegs-sec Count(18446744073709551615)",
            "TcpExt SyncookiesSent-sec Count(0)",
            "TcpExt TCPTimeouts-sec Count(12)",
            "IpExt InOctets-sec Count(5)",
            "Ip6 InReceives-sec Count(1)",
            "UdpLite6 InDatagrams-sec Count(2)",
            "Udp6 InErrors-sec Count(3)",
            "sockets used Level(20.0)",
            "TCP inuse Level(1.0)",
            "TCP orphan Level(0.0)",
            "TCP tw Level(0.0)",
            "TCP alloc Level(1.0)",
            "TCP mem Level(362.0)",
        ]
    );
}

#[test]
fn memory_reads_as_sar_shows_it() {
    let meminfo = "MemTotal:       1000 kB\nMemFree:         300 kB\nMemAvailable:    700 kB\nBuffers:          50 kB\n\
                   Cached:          150 kB\nSwapCached: 0 kB\nActive:          11 kB\nInactive:  12 kB\nActive(anon): 9 kB\n\
                   SwapTotal:       1000 kB\nDirty:  13 kB\nSlab:            100 kB\nCommitted_AS:    500 kB\n\
                   VmallocTotal:   34359738367 kB\nDirty:  99 kB\n";
    let vmstat = "pgpgin 10\npgpgout 11\npswpin 12\npswpout 13\npgfree 14\npgfault 100\npgmajfault 30\n\
                  pgsteal_kswapd 7\npgsteal_direct 8\npgscan_kswapd 20\npgscan_direct 21\npgscan_direct_throttle 999\n\
                  pgscan_anon 41\npgsteal_anon 15\n";
    let pressure = "some avg10=65.14 avg60=31.20 avg300=11.20 total=48406473\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=9\n";
    let table = read_texts(&mut Memory, &[meminfo, vmstat, pressure]);
    let level = Value::Level;
    assert_found(&table, "Memory-Used-KB", &[("", level(400.0))]);
    assert_found(&table, "Memory-Used-Percent", &[("", level(40.0))]);
    assert_found(&table, "Memory-Commit-Percent", &[("", level(25.0))]);
    assert_found(&table, "Memory-Active-KB", &[("", level(11.0))]);
    assert_found(&table, "Memory-Dirty-KB", &[("", level(13.0))]);
    let faults = [("type=minor", Value::Count(70)), ("type=major", Value::Count(30))];
    assert_found(&table, "Page-faults-sec", &faults);
    assert_found(&table, "kswapd-scanned-pages-sec", &[("", Value::Count(20))]);
    assert_found(&table, "reclaimed-pages-sec", &[("", Value::Count(15))]);
    assert_found(&table, "VM-Efficiency", &[("", Value::Count(15))]);
    assert_found(&table, "%-Time-Tasks-Waiting-on-Memory-010s", &[("", level(65.14))]);
    let stalled = "%-Time-Non-Idle-Tasks-Stalled-on-Memory-last_interval";
    assert_found(&table, stalled, &[("", Value::Count(9))]);
    let columns: Vec<Column> = table.iter().map(|(column, _)| column.clone()).collect();
    check_columns(&columns).unwrap();
    let efficiency = columns.iter().find(|column| column.metric == "VM-Efficiency").unwrap();
    let Rule::Share(whole) = efficiency.rule else { panic!("{efficiency:?}") };
    assert_eq!(table[whole as usize].1, Value::Count(41));
}

#[test]
fn memory_of_old_kernels_lacks_what_they_do_not_count() {
    // Before Linux 3.14 there is no MemAvailable, before 4.8 scanned pages are counted by zone, before 4.20 there is no
    // pressure.
    let meminfo = "MemTotal: 1000 kB\nMemFree: 300 kB\nBuffers: 0 kB\nCached: 0 kB\nSlab: 0 kB\n";
    let vmstat = "pgscan_kswapd_dma 1\npgscan_kswapd_normal 2\npgscan_direct_normal 4\npgsteal_kswapd_normal 3\n";
    let table = read_texts(&mut Memory, &[meminfo, vmstat, ""]);
    assert_found(&table, "Memory-Available-KB", &[("", Value::Absent)]);
    assert_found(&table, "kswapd-scanned-pages-sec", &[("", Value::Count(3))]);
    assert_found(&table, "scanned-pages-sec", &[("", Value::Count(4))]);
    assert_found(&table, "Pages-freed-sec", &[("", Value::Absent)]);
    assert!(!table.iter().any(|(column, _)| column.metric.starts_with('%')));
}

#[test]
fn loads_and_pressure_read_as_sar_shows_them() {
    let cpu = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    let io = "some avg10=4.26 avg60=2.22 avg300=2.56 total=22902051\nfull avg10=0.18 avg60=0.18 avg300=2.00 total=5\n";
    let table = read_texts(&mut Scheduler, &["2.23 1.06 0.46 7/116 21956\n", cpu, io]);
    let level = Value::Level;
    assert_found(&table, "Load-Average-01m", &[("", level(2.23))]);
    assert_found(&table, "Load-Average-15m", &[("", level(0.46))]);
    assert_found(&table, "Run-Queue-Length", &[("", level(6.0))]);
    assert_found(&table, "Process-List-Size", &[("", level(116.0))]);
    assert_found(&table, "%-Time-Tasks-CPU-Starved-060s", &[("", level(2.0))]);
    assert_found(
        &table,
        "%-Time-Tasks-Stalled-Waiting-on-IO-last_interval",
        &[("", Value::Count(5))],
    );
    // Nothing says all tasks at once starve for a processor, though the file has the line.
    assert_eq!(table.len(), 5 + 4 + 8);
}

/// Reads texts as one format does.
type Read = Box<dyn Fn(&[&str]) -> Vec<(Column, Value)>>;

/// Every format with a text of its own kind.
fn formats() -> Vec<(Read, &'static str)> {
    fn reads<F: Format>(make: impl Fn() -> F + 'static) -> Read {
        Box::new(move |texts| read_texts(&mut make(), texts))
    }
    vec![
        (reads(Stat::default), "cpu0 1 2 3 4 5 6 7 8 9 10\nctxt 5\n"),
        (reads(|| Interrupts::new(&["eth0".to_owned()])), "  CPU0\n 1:  5 x  y  eth0\n"),
        (reads(Softirqs::default), "  CPU0\n HI: 5\n"),
        (reads(|| Softnet), "00000005 0 0 0 0 0 0 0 0 0 0 0 1\n"),
        (reads(Devices::default), "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"),
        (reads(|| Protocols), "Tcp: A B\nTcp: 1 2\n"),
        (reads(|| Memory), "MemTotal: 5 kB\n"),
        (reads(|| Scheduler), "0.1 0.2 0.3 1/2 3\n"),
    ]
}

#[test]
fn texts_that_no_kernel_writes_give_no_wrong_numbers() {
    let hostile = [
        "",
        "\n\n\n",
        "\0\0\0",
        ":",
        ": :\n: 1 2",
        "cpu18446744073709551616 1 2 3\ncpu-1 1\ncpu 1\ncpu0 x\ncpu0 -5 1 1 1\ncpu0 99999999999999999999 1\n",
        "CPU0 CPU0\n1: 99999999999999999999 +5 eth0\nCPU4294967296:\n",
        "ffffffffffffffffffffff +1 -1\n0x10 0 0\n",
        "eth0: 1e5 0x10 ٣ 18446744073709551616\n:\n : 5\n",
        "Tcp: A\nUdp: 1\nTcp: A B C\nTcp: 1\nTcp:\nTcp:\nTcp\n",
        "nan inf -inf 1/0 0\n1e400 x y /\n",
        "MemTotal: 18446744073709551615 kB\nSwapTotal: 18446744073709551615 kB\nMemFree: 18446744073709551615 kB\n",
        "some avg10=nan avg60= total=5\nfull\nsome total=-1\n",
    ];
    for (read, own) in formats() {
        for text in hostile.into_iter().chain([own]) {
            for (column, value) in read(&[text, text, text, text]) {
                let is_level =
                    matches!(value, Value::Level(level) if level.is_finite() && level >= 0.0);
                let is_other = matches!(value, Value::Count(_) | Value::Absent);
                assert!(is_level || is_other, "{text:?}: {column:?} {value:?}");
            }
        }
        // Cut anywhere, and with bytes that are no text.
        for end in 0..own.len() {
            let columns: Vec<Column> = read(&[own.get(..end).unwrap_or_default()])
                .into_iter()
                .map(|(column, _)| column)
                .collect();
            check_columns(&columns).unwrap();
        }
    }
}

#[test]
fn long_names_are_cut_and_equal_ones_told_apart() {
    let long = "x".repeat(500);
    let text = format!("Tcp: {long}a {long}b\nTcp: 1 2\n");
    let table = read_texts(&mut Protocols, &[&text]);
    let columns: Vec<Column> = table.into_iter().map(|(column, _)| column).collect();
    check_columns(&columns).unwrap();
    assert_eq!(columns[1].names["id"], "1");
    assert_ne!(columns[0].names, columns[1].names);
}

#[test]
fn there_is_a_limit_of_columns() {
    use std::fmt::Write as _;
    let mut text = String::new();
    for number in 0..20_000 {
        writeln!(text, "dev{number}: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16").unwrap();
    }
    let table = read_texts(&mut Devices::default(), &[&text]);
    assert_eq!(table.len(), linerate_measure::collected::MOST_COLUMNS);
}

#[test]
fn this_machine_is_read() {
    let mut readers = readers(&Source::ALL, &[]);
    let mut values = Vec::new();
    for reader in &mut readers {
        let source = reader.source();
        // Drivers that count nothing and kernels without pressure say so.
        let Ok(changed) = reader.read(&mut values) else { continue };
        assert!(changed, "{source:?}");
        assert_eq!(values.len(), reader.columns().len(), "{source:?}");
        check_columns(reader.columns()).unwrap();
        if matches!(source, Source::Cpu | Source::Net | Source::Protocols | Source::Memory) {
            assert!(!values.is_empty(), "{source:?}");
        }
        reader.read(&mut values).unwrap();
        assert_eq!(values.len(), reader.columns().len(), "{source:?}");
    }
}

#[test]
fn what_a_reading_costs_is_printed() {
    let used_ns = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let mut values = Vec::new();
    for reader in &mut readers(&Source::ALL, &[]) {
        if reader.read(&mut values).is_err() {
            continue;
        }
        let before_ns = used_ns();
        let mut changes = 0;
        for _ in 0..20 {
            changes += usize::from(reader.read(&mut values).unwrap());
        }
        let cost_us = (used_ns() - before_ns) / 20_000;
        println!(
            "{}: {cost_us} us, {} values, {changes} changes",
            reader.source().name(),
            values.len()
        );
    }
}
