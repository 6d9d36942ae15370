//! What the printers print: the figures of one test, or the means of its iterations.

use linerate_engine::netperf::{Outcome, TestKind, TestPlan, TestTransport};
use linerate_measure::dialect::netperf::{CpuUse, End};
use linerate_measure::histogram::Histogram;
use linerate_personality::netperf::unit::Unit;

use super::confidence::{Agreement, Mean, Repetitions, Schedule};
use super::latency::Statistics;

/// The figures of a test. What was not measured is absent.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// The last iteration: counts, sizes, addresses.
    pub last: Outcome,
    /// Latency of all iterations.
    pub latency: Histogram,
    /// The unit of rates.
    pub unit: Unit,
    /// Mean duration.
    pub elapsed_s: f64,
    /// Mean result.
    pub throughput: f64,
    /// Each iteration's result.
    pub results: Vec<f64>,
    /// Mean of what each end sent and received, in the unit of the result.
    pub rates: Rates,
    /// Mean counts of messages.
    pub messages: Messages,
    /// Mean of transactions a second.
    pub transactions_per_s: f64,
    /// This end's processors.
    pub local: Cost,
    /// The server's.
    pub remote: Cost,
    /// How well the iterations agree.
    pub agreement: Agreement,
}

/// Rates of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Sent by this end.
    pub local_sent: f64,
    /// Received by this end.
    pub local_received: f64,
    /// Sent by the server.
    pub remote_sent: f64,
    /// Received by the server.
    pub remote_received: f64,
}

/// Messages of an iteration: the rates are means too, so that both belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Messages {
    /// Sent by this end.
    pub sent: f64,
    /// Refused by its own stack.
    pub refused: f64,
    /// Received by the server.
    pub arrived: f64,
}

/// What stands for a figure that was not measured.
pub(super) const UNMEASURED: f64 = -1.0;

/// What the test cost one end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cost {
    /// How busy its processors were, in percent.
    pub util_percent: Option<f64>,
    /// Microseconds of a processor per KB (1024 bytes) or per transaction.
    pub demand_us: Option<f64>,
}

/// What a test is about, as far as its result depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Subject {
    pub(super) kind: TestKind,
    pub(super) transport: TestTransport,
    pub(super) unit: Unit,
    /// Local processors as told (`-n`).
    pub(super) cpus: Option<u32>,
}

impl Figures {
    /// The time of one transaction, as so many of them were on their way at once; None without any.
    pub(super) fn round_trip_us(&self, plan: &TestPlan) -> Option<f64> {
        let rate = self.transactions_per_s;
        if !plan.kind.has_transactions() || rate <= 0.0 {
            return None;
        }
        if plan.local.pacing.is_some() {
            // The rate is the pace's; what a transaction takes was seen of each.
            return Statistics::of(&self.latency).map(|statistics| statistics.mean_us());
        }
        if plan.kind != TestKind::RequestResponse {
            // There is one connection at a time, whatever burst was asked for.
            return Some(1e6 / rate);
        }
        Some(1e6 / rate * (1.0 + f64::from(plan.burst)))
    }
}

/// Adds up iterations.
#[derive(Debug)]
pub(super) struct Iterations {
    subject: Subject,
    elapsed_s: Mean,
    transactions_per_s: Mean,
    local_sent: Mean,
    local_received: Mean,
    remote_sent: Mean,
    remote_received: Mean,
    messages_sent: Mean,
    messages_refused: Mean,
    messages_arrived: Mean,
    local_demand: Mean,
    remote_demand: Mean,
    repetitions: Repetitions,
    results: Vec<f64>,
    latency: Histogram,
    last: Option<Outcome>,
}

impl Iterations {
    pub(super) fn new(subject: Subject) -> Self {
        Self {
            subject,
            elapsed_s: Mean::default(),
            transactions_per_s: Mean::default(),
            local_sent: Mean::default(),
            local_received: Mean::default(),
            remote_sent: Mean::default(),
            remote_received: Mean::default(),
            messages_sent: Mean::default(),
            messages_refused: Mean::default(),
            messages_arrived: Mean::default(),
            local_demand: Mean::default(),
            remote_demand: Mean::default(),
            repetitions: Repetitions::default(),
            results: Vec::new(),
            latency: Histogram::new(),
            last: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Whether an iteration is like those before it: what was sent where nobody knows what arrived is no measure
    /// beside what did arrive.
    pub(super) fn accepts(&self, outcome: &Outcome) -> bool {
        !self.last.as_ref().is_some_and(|last| last.server_told && !outcome.server_told)
    }

    /// Adds an iteration, where it is like those before it.
    pub(super) fn record(&mut self, outcome: Outcome) {
        if !self.accepts(&outcome) {
            return;
        }
        let Subject { unit, cpus, .. } = self.subject;
        let (local, remote) = (outcome.local(), outcome.remote());
        let elapsed_s = outcome.client.elapsed_ns as f64 / 1e9;
        let bytes_rate = |bytes: u64| bytes_unit(unit).rate(bytes as f64, elapsed_s);
        self.elapsed_s.record(elapsed_s);
        let result = unit.rate(self.units(&outcome), elapsed_s);
        self.repetitions.result.record(result);
        self.results.push(result);
        let transactions = local.transactions() as f64;
        self.transactions_per_s.record(Unit::Transactions.rate(transactions, elapsed_s));
        self.local_sent.record(bytes_rate(local.bytes_sent()));
        self.local_received.record(bytes_rate(local.bytes_received()));
        let told = |bytes| if outcome.server_told { bytes_rate(bytes) } else { UNMEASURED };
        self.remote_sent.record(told(remote.bytes_sent()));
        self.remote_received.record(told(remote.bytes_received()));
        self.messages_sent.record(local.send_calls() as f64);
        self.messages_refused.record(local.refused_sends() as f64);
        self.messages_arrived.record(remote.receive_calls() as f64);
        let work = self.work(&outcome);
        if let Some(cpu) = local.cpu() {
            self.repetitions.local_cpu.record(cpu.util_percent);
            if let Some(demand) = demand_us(cpu, work, elapsed_s, cpus.unwrap_or(cpu.cpus)) {
                self.local_demand.record(demand);
            }
        }
        if let Some(cpu) = remote.cpu() {
            self.repetitions.remote_cpu.record(cpu.util_percent);
            if let Some(demand) = demand_us(cpu, work, elapsed_s, cpu.cpus) {
                self.remote_demand.record(demand);
            }
        }
        self.latency.merge(&local.latency());
        self.last = Some(outcome);
    }

    pub(super) fn agreement(&self, schedule: &Schedule) -> Agreement {
        self.repetitions.agreement(schedule)
    }

    /// The figures of all iterations; None before the first.
    pub(super) fn figures(self, schedule: &Schedule) -> Option<Figures> {
        let agreement = self.repetitions.agreement(schedule);
        let mean = |figure: &Mean| figure.mean().unwrap_or(0.0);
        Some(Figures {
            last: self.last?,
            latency: self.latency,
            unit: self.subject.unit,
            elapsed_s: mean(&self.elapsed_s),
            throughput: mean(&self.repetitions.result),
            results: self.results,
            rates: Rates {
                local_sent: mean(&self.local_sent),
                local_received: mean(&self.local_received),
                remote_sent: mean(&self.remote_sent),
                remote_received: mean(&self.remote_received),
            },
            messages: Messages {
                sent: mean(&self.messages_sent),
                refused: mean(&self.messages_refused),
                arrived: mean(&self.messages_arrived),
            },
            transactions_per_s: mean(&self.transactions_per_s),
            local: Cost {
                util_percent: self.repetitions.local_cpu.mean(),
                demand_us: self.local_demand.mean(),
            },
            remote: Cost {
                util_percent: self.repetitions.remote_cpu.mean(),
                demand_us: self.remote_demand.mean(),
            },
            agreement,
        })
    }

    /// What the result counts: what arrived, or transactions.
    fn units(&self, outcome: &Outcome) -> f64 {
        if self.subject.unit == Unit::Transactions {
            return outcome.local().transactions() as f64;
        }
        let bytes = match self.subject.kind {
            // What was sent is all that is known.
            _ if !outcome.server_told => outcome.local().bytes_moved(),
            TestKind::Send | TestKind::SendFile => outcome.remote().bytes_received(),
            TestKind::Receive => outcome.local().bytes_received(),
            _ => outcome.remote().bytes_moved(),
        };
        bytes as f64
    }

    /// What the service demand is told per: KB that this end moved, or transactions.
    fn work(&self, outcome: &Outcome) -> f64 {
        match self.subject.unit {
            Unit::Transactions => outcome.local().transactions() as f64,
            _ => outcome.local().bytes_moved() as f64 / 1024.0,
        }
    }
}

/// The original's letter for how an end's processor use was measured; `U` where it wasn't.
pub(super) fn letter(end: End<'_>) -> &str {
    end.cpu().map_or("U", |cpu| &cpu.method)
}

/// Bytes have no rate in transactions: each end's bytes are shown in 10^6 bits then, as netperf does.
fn bytes_unit(unit: Unit) -> Unit {
    if unit == Unit::Transactions { Unit::Mbits } else { unit }
}

/// Microseconds of processor time per unit of work.
fn demand_us(cpu: &CpuUse, work: f64, elapsed_s: f64, cpus: u32) -> Option<f64> {
    if work <= 0.0 || elapsed_s <= 0.0 || cpus == 0 {
        return None;
    }
    Some(cpu.util_percent * 10_000.0 / (work / elapsed_s) * f64::from(cpus))
}
