//! How busy this machine is, the way netperf counts it: everything but idle is busy. Where both ends are
//! on this machine, that would have each end's work in both ends' figures: each tells its own threads' then.

use std::fs;
use std::net::{SocketAddr, UdpSocket};

use linerate_measure::dialect::netperf::CpuUse;
use linerate_measure::sample::CpuSeconds;
use linerate_wire::netperf::test::Cpu;

use super::outcome::Calibration;
use super::plan::EndPlan;
use crate::probe::cpus_online;
use crate::socket::{plain, thread_cpu_since, thread_usage};

/// netperf's letters for the ways of measuring processor use, in the order of its codes.
const METHODS: [&str; 13] = ["U", "I", "P", "T", "L", "R", "N", "K", "S", "C", "E", "M", "O"];
/// netperf's letter for /proc/stat.
const METHOD: &str = "S";
/// netperf's letter for getrusage(2).
const OWN_METHOD: &str = "R";
/// Clock ticks of a second: what the original calibrates Linux processors to.
const RATE: f32 = 100.0;
/// Columns of a line of /proc/stat (proc(5)), guests' time included.
const COLUMNS: usize = 10;

const USER: usize = 0;
const NICE: usize = 1;
const SYSTEM: usize = 2;
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;

/// What this machine's processors are worth.
pub fn local_calibration() -> Calibration {
    Calibration { rate: RATE, cpus: cpus_online() }
}

/// What a test takes of the processors. The thread that makes it is the one that conducts the test.
#[derive(Debug)]
pub(super) struct Processors {
    /// Whether the other end is on this machine, as far as its addresses are known.
    is_alone: bool,
    cpu_count: u32,
    machine: Ticks,
    conductor: CpuSeconds,
    marked: Option<Moment>,
}

impl Processors {
    /// From now on; the control connection's other end is at this address, and this machine has so many
    /// processors.
    pub(super) fn new(peer: SocketAddr, cpu_count: u32) -> Self {
        let is_alone = is_own(peer);
        let (machine, conductor) = (Ticks::now(), thread_usage().cpu);
        Self { is_alone, cpu_count, machine, conductor, marked: None }
    }

    /// From now on, where a client was asked for it.
    pub(super) fn at_client(
        local: &EndPlan,
        control: SocketAddr,
        server: SocketAddr,
    ) -> Option<Self> {
        let cpu_count = local.cpu_count.unwrap_or_else(cpus_online);
        let mut processors = local.cpu.then(|| Self::new(control, cpu_count))?;
        processors.meet(server);
        processors.restart();
        Some(processors)
    }

    /// The other end of the data is at this address. The control connection may go through something
    /// on this machine that passes it on.
    pub(super) fn meet(&mut self, peer: SocketAddr) {
        self.is_alone = self.is_alone && is_own(peer);
    }

    /// From now on after all: what came before was no part of the test.
    pub(super) fn restart(&mut self) {
        (self.machine, self.conductor) = (Ticks::now(), thread_usage().cpu);
    }

    /// What comes later doesn't count, unless it is marked, too.
    pub(super) fn mark(&mut self) {
        self.marked = Some(if self.is_alone {
            Moment::Conductor(thread_cpu_since(self.conductor))
        } else {
            Moment::Machine(Ticks::now())
        });
    }

    /// What comes later doesn't count; where something is marked, what came after that doesn't either.
    pub(super) fn end(&mut self) {
        if self.marked.is_none() {
            self.mark();
        }
    }

    /// What was used up to the mark, of which the test lasted so long; `load` is what its load's thread
    /// used. `None` where nothing is known.
    pub(super) fn used(self, load: CpuSeconds, elapsed_ns: u64) -> Option<CpuUse> {
        match self.marked? {
            Moment::Machine(ended) => ended.use_since(&self.machine),
            Moment::Conductor(conductor) => {
                own_use([conductor, load], elapsed_ns as f64 / 1e9, self.cpu_count)
            }
        }
    }
}

/// One moment: what all that runs on this machine has used by then, or what the thread that conducts a
/// test has used of it.
#[derive(Debug)]
enum Moment {
    Machine(Ticks),
    Conductor(CpuSeconds),
}

/// What a test's threads have used, as a share of all processors.
fn own_use(threads: [CpuSeconds; 2], elapsed_s: f64, cpus: u32) -> Option<CpuUse> {
    let share = |of: fn(&CpuSeconds) -> f64| {
        let used_s = threads.iter().map(|thread| {
            // A thread that never sleeps goes on until the end is noticed, which is no part of the test.
            let kept = (elapsed_s / (thread.user_s + thread.system_s)).min(1.0);
            of(thread) * kept
        });
        100.0 * used_s.sum::<f64>() / (elapsed_s * f64::from(cpus.max(1)))
    };
    let (user_percent, system_percent) =
        (share(|thread| thread.user_s), share(|thread| thread.system_s));
    (elapsed_s > 0.0).then(|| CpuUse {
        util_percent: user_percent + system_percent,
        user_percent: Some(user_percent),
        system_percent: Some(system_percent),
        cpus,
        method: OWN_METHOD.to_owned(),
        ..CpuUse::default()
    })
}

/// Whether an address is one of this machine's: only those can be bound to, but where the system allows it
/// for others, and nothing can be said.
fn is_own(address: SocketAddr) -> bool {
    let mut own = plain(address);
    let family = if own.is_ipv6() { "ipv6" } else { "ipv4" };
    let tells = || {
        let any = fs::read_to_string(format!("/proc/sys/net/{family}/ip_nonlocal_bind"));
        any.is_ok_and(|any| any.trim() == "0")
    };
    own.set_port(0);
    own.ip().is_loopback() || (tells() && UdpSocket::bind(own).is_ok())
}

/// Ticks of every processor at one moment.
#[derive(Clone, Debug, Default)]
struct Ticks(Vec<[u64; COLUMNS]>);

impl Ticks {
    fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let is_one =
            |name: &str| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
        let ticks = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            words.next().filter(|name| is_one(name))?;
            let mut columns = [0; COLUMNS];
            for (column, word) in columns.iter_mut().zip(words) {
                *column = word.parse().unwrap_or(0);
            }
            Some(columns)
        });
        Self(ticks.collect())
    }

    /// How busy the machine was since an earlier moment; `None` where the system doesn't tell, or
    /// less than a tick has passed.
    fn use_since(&self, earlier: &Self) -> Option<CpuUse> {
        let (mut sum, mut counted) = ([0.0; 6], 0.0);
        let mut peak: Option<(usize, f64)> = None;
        for (index, (now, before)) in self.0.iter().zip(&earlier.0).enumerate() {
            let mut spent = [0.0; COLUMNS];
            for (spent, (now, before)) in spent.iter_mut().zip(now.iter().zip(before)) {
                // Some counters step back a tick at times.
                *spent = now.saturating_sub(*before) as f64;
            }
            let total: f64 = spent.iter().sum();
            if total == 0.0 {
                continue;
            }
            let share = |ticks: f64| 100.0 * ticks / total;
            let busy = 100.0 - share(spent[IDLE]);
            counted += 1.0;
            let shares = [
                busy,
                share(spent[USER] + spent[NICE]),
                share(spent[SYSTEM]),
                share(spent[IOWAIT]),
                share(spent[IRQ]),
                share(spent[SOFTIRQ]),
            ];
            sum.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
            if peak.is_none_or(|(_, peak)| busy > peak) {
                peak = Some((index, busy));
            }
        }
        let (peak_index, peak_percent) = peak?;
        let [util_percent, shares @ ..] = sum.map(|sum: f64| sum / counted);
        let [user, system, iowait, irq, softirq] = shares.map(Some);
        Some(CpuUse {
            util_percent,
            user_percent: user,
            system_percent: system,
            iowait_percent: iowait,
            irq_percent: irq,
            softirq_percent: softirq,
            peak_percent: Some(peak_percent),
            peak_cpu: u32::try_from(peak_index).ok(),
            cpus: u32::try_from(self.0.len()).unwrap_or(0),
            method: METHOD.to_owned(),
        })
    }
}

/// Processor use as messages have it.
pub(super) fn to_wire(used: &CpuUse) -> Cpu {
    let share = |percent: Option<f64>| percent.map_or(Cpu::UNKNOWN, |percent| percent as f32);
    let method = METHODS.iter().position(|letter| *letter == used.method).unwrap_or(0);
    Cpu {
        util: used.util_percent as f32,
        user: share(used.user_percent),
        system: share(used.system_percent),
        iowait: share(used.iowait_percent),
        irq: share(used.irq_percent),
        softirq: share(used.softirq_percent),
        method: u32::try_from(method).unwrap_or(0),
        peak_cpu: used.peak_cpu.and_then(|cpu| i32::try_from(cpu).ok()).unwrap_or(-1),
        peak: share(used.peak_percent),
    }
}

/// Processor use as a message told it, of so many processors.
pub(super) fn of_wire(cpu: &Cpu, cpus: u32) -> CpuUse {
    let share = |percent: f32| Some(f64::from(percent)).filter(|percent| *percent >= 0.0);
    let method = usize::try_from(cpu.method).ok().and_then(|code| METHODS.get(code)).copied();
    CpuUse {
        util_percent: cpu.util.into(),
        user_percent: share(cpu.user),
        system_percent: share(cpu.system),
        iowait_percent: share(cpu.iowait),
        irq_percent: share(cpu.irq),
        softirq_percent: share(cpu.softirq),
        peak_percent: share(cpu.peak),
        peak_cpu: u32::try_from(cpu.peak_cpu).ok(),
        cpus,
        method: method.unwrap_or("?").to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn waiting_for_input_counts_as_busy() {
        let before =
            Ticks::parse("cpu 9 9 9\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n");
        let now = Ticks::parse(
            "cpu 9 9 9\ncpu0 10 10 20 40 10 5 5 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 1\n",
        );
        let used = now.use_since(&before).unwrap();
        let shares = (used.util_percent, used.user_percent, used.iowait_percent);
        assert_eq!(shares, (30.0, Some(10.0), Some(5.0)));
        assert_eq!((used.peak_percent, used.peak_cpu, used.cpus), (Some(60.0), Some(0), 2));
        assert_eq!(before.use_since(&before), None);
    }

    #[test]
    fn a_test_with_both_ends_here_tells_its_own_threads() {
        let seconds = |user_s, system_s| CpuSeconds { user_s, system_s };
        let whole = |used: &CpuUse| {
            let shares = [Some(used.util_percent), used.user_percent, used.system_percent];
            shares.map(|share| (share.unwrap() * 4.0).round())
        };
        let conductor = seconds(0.25, 0.25);
        let used = own_use([conductor, seconds(0.5, 1.0)], 4.0, 4).unwrap();
        assert_eq!(whole(&used), [50.0, 19.0, 31.0]);
        assert_eq!((used.peak_cpu, used.softirq_percent), (None, None));
        assert_eq!(used.method, OWN_METHOD);
        // Threads that spun for eight seconds where the test took four of them.
        let nothing = seconds(0.0, 0.0);
        for threads in [[nothing, seconds(2.0, 6.0)], [seconds(2.0, 6.0), nothing]] {
            assert_eq!(whole(&own_use(threads, 4.0, 4).unwrap()), [100.0, 25.0, 75.0]);
        }
        assert_eq!(whole(&own_use([conductor, nothing], 1.0, 4).unwrap())[0], 50.0);
        assert_eq!(own_use([conductor, nothing], 0.0, 4), None);
    }

    #[test]
    fn processors_are_as_many_as_was_told() {
        let threads = [CpuSeconds { user_s: 1.0, system_s: 0.0 }, CpuSeconds::default()];
        for cpus in [1, 2, 64] {
            let used = own_use(threads, 2.0, cpus).unwrap();
            assert!((used.util_percent * f64::from(cpus) - 50.0).abs() < 1e-9, "{used:?}");
            assert_eq!(used.cpus, cpus);
        }
        let none = own_use(threads, 2.0, 0).unwrap();
        assert_eq!((none.util_percent, none.cpus), (50.0, 0));
    }

    /// Long enough for several ticks of /proc/stat.
    pub(in super::super) fn spend_50_ms() {
        let began = thread_usage().cpu;
        let spent_s = || {
            let spent = thread_cpu_since(began);
            spent.user_s + spent.system_s
        };
        while spent_s() < 0.05 {}
    }

    #[test]
    fn another_machine_is_told_all_that_runs_here() {
        for (control, data) in [("203.0.113.1:1", None), ("127.0.0.1:1", Some("203.0.113.1:1"))] {
            let mut processors = Processors::new(control.parse().unwrap(), 2);
            data.into_iter().for_each(|data| processors.meet(data.parse().unwrap()));
            spend_50_ms();
            processors.end();
            let used = processors.used(CpuSeconds::default(), 50_000_000).unwrap();
            assert_eq!(
                (used.method.as_str(), used.cpus),
                (METHOD, cpus_online()),
                "{control} {data:?}"
            );
            assert!(used.util_percent > 0.0 && used.peak_cpu.is_some(), "{used:?}");
        }
    }

    #[test]
    fn cpu_before_the_start_or_after_a_mark_is_not_counted() {
        let here = "127.0.0.1:1".parse().unwrap();
        let mut processors = Processors::new(here, 1);
        processors.meet(here);
        spend_50_ms();
        processors.restart();
        spend_50_ms();
        processors.mark();
        spend_50_ms();
        processors.end();
        let used = processors.used(CpuSeconds::default(), 1_000_000_000).unwrap();
        assert_eq!(used.method, OWN_METHOD);
        assert!((4.9..8.0).contains(&used.util_percent), "{used:?}");
    }

    #[test]
    fn only_what_can_be_bound_to_is_this_machine() {
        for (address, own) in [
            ("127.0.0.1:80", true),
            ("127.9.9.9:80", true),
            ("[::1]:80", true),
            ("192.0.2.1:80", false),
            ("[2001:db8::1]:80", false),
        ] {
            assert_eq!(is_own(address.parse().unwrap()), own, "{address}");
        }
        // What a datagram for elsewhere would be sent from, where there is a way: an address of this machine's.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("203.0.113.1:9").is_ok() {
            let local = socket.local_addr().unwrap();
            let nonlocal = fs::read_to_string("/proc/sys/net/ipv4/ip_nonlocal_bind").unwrap();
            assert_eq!(is_own(local), nonlocal.trim() == "0", "{local}");
            let IpAddr::V4(mapped) = local.ip() else { panic!("{local}") };
            assert!(!mapped.is_loopback(), "{local}");
            let mapped = SocketAddr::new(mapped.to_ipv6_mapped().into(), 80);
            assert_eq!(is_own(mapped), is_own(local), "{mapped}");
        }
    }
}
