//! From the flags of `hunt` to what is sought, and the plans of its trials.

use linerate_engine::error::Error;
use linerate_measure::hunt::{Goal, Limits, Method, RateUnit, Trial};
use linerate_measure::units::{UnitError, parse_count, parse_duration, parse_rate};
use linerate_measure::{Arrivals, Direction, End, Kind, Plan, Rate, Schedule, Transport, Workload};

use super::{check, contradiction, plan_from_args};
use crate::args::HuntArgs;

/// Before the measured time of a trial.
const WARM_UP_NS: u64 = 200_000_000;
/// Intervals in which both ends of a trial count.
const INTERVAL_NS: u64 = 50_000_000;
/// The limit on losses, unless told otherwise.
const LOSS_RATIO: f64 = 0.001;

/// What is sought, and the plan of its trials, as yet without a rate and a time.
///
/// # Errors
/// `Plan` where flags contradict each other or a number is outside its limits.
pub fn goal_from_args(args: &HuntArgs) -> Result<(Goal, Plan), Error> {
    if args.output.csv {
        return Err(contradiction("--csv: a hunt has no rows of samples: use --json or --ndjson"));
    }
    if args.output.verbose {
        return Err(contradiction(
            "--verbose: a hunt prints its trials; --json has all that is known",
        ));
    }
    if args.connect.start_at.is_some() {
        return Err(contradiction("--start-at: a hunt has many trials, which begin one by one"));
    }
    goal_and_plan(args)
}

/// The plan of the one trial that `--trial` asks for.
///
/// # Errors
/// Likewise, and where the flag can't be read.
pub fn plan_of_one_trial(args: &HuntArgs) -> Result<Plan, Error> {
    let text = args.trial.as_deref().unwrap_or_default();
    let fault = |why: &str| {
        contradiction(&format!("--trial {text}: {why}: give a rate and a time, such as 20M:10s"))
    };
    let (rate, time) = text.rsplit_once(':').ok_or_else(|| fault("has no colon"))?;
    let (goal, plan) = goal_and_plan(args)?;
    let rate = parse_rate_of(goal.unit, rate).map_err(|error| fault(&error.to_string()))?;
    let time_ns = parse_duration(time).map_err(|error| fault(&error.to_string()))?;
    let plan = plan_of_trial(&plan, rate, time_ns);
    check(&plan)?;
    Ok(plan)
}

fn goal_and_plan(args: &HuntArgs) -> Result<(Goal, Plan), Error> {
    let for_requests = args.requests || !args.latency.is_empty();
    let workload = match for_requests {
        true => workload_of_requests(args),
        false => workload_of_stream(args)?,
    };
    let unit = match for_requests {
        true => RateUnit::RequestsPerSecond,
        false => RateUnit::BitsPerSecond,
    };
    let (low, high) = range_of(args.rate.as_deref(), unit)?;
    let default_loss = if args.compat { 0.0 } else { LOSS_RATIO };
    let goal = Goal {
        method: if args.compat { Method::Bisection } else { Method::Sequential },
        unit,
        low,
        high,
        step: if args.compat { step_of(args.rate.as_deref()) } else { 1 },
        per_item: workload.unit_bytes().map_or(1, |bytes| u64::from(bytes) * 8),
        limits: Limits {
            loss_ratio: args.loss.unwrap_or(default_loss),
            latencies: args.latency.clone(),
        },
        trial_ns: args.time,
    };
    let plan = plan_from_args(&args.host, &args.connect, &args.output, workload)?;
    for rate in [low, high] {
        check(&plan_of_trial(&plan, rate, goal.trial_ns))?;
    }
    Ok((goal, plan))
}

/// The plan of a trial.
pub fn trial_plan(plan: &Plan, trial: &Trial) -> Plan {
    plan_of_trial(plan, trial.rate, trial.longest_ns)
}

fn plan_of_trial(plan: &Plan, rate: u64, duration_ns: u64) -> Plan {
    let mut plan = plan.clone();
    plan.workload.end = End::Time { duration_ns };
    match &mut plan.workload.kind {
        Kind::Rr { schedule, .. } => {
            *schedule = Some(Schedule { per_s: rate as f64, arrivals: Arrivals::Even });
        }
        _ => plan.workload.rate = Some(Rate::AllFlows { bps: rate }),
    }
    plan
}

fn workload_of_stream(args: &HuntArgs) -> Result<Workload, Error> {
    if args.tcp || args.tls {
        return Err(contradiction(
            "a stream over TCP loses nothing: leave out --tcp and --tls, or search the highest rate of \
             requests (--requests)",
        ));
    }
    let direction = if args.down { Direction::Down } else { Direction::Up };
    let transport = if args.quic { Transport::Quic } else { Transport::Udp };
    let mut workload = common(Workload::stream(direction, transport), args);
    if args.quic {
        workload.use_quic_datagrams();
    }
    if let (Kind::Stream { send_bytes, .. }, Some(size)) = (&mut workload.kind, args.size) {
        *send_bytes = size;
    }
    Ok(workload)
}

fn workload_of_requests(args: &HuntArgs) -> Workload {
    let transport = match (args.tls, args.udp, args.quic) {
        (true, _, _) => Transport::Tls,
        (_, true, _) => Transport::Udp,
        (_, _, true) => Transport::Quic,
        _ => Transport::Tcp,
    };
    let mut workload = common(Workload::rr(transport), args);
    if let (Kind::Rr { request_bytes, response_bytes, .. }, Some(size)) =
        (&mut workload.kind, args.size)
    {
        (*request_bytes, *response_bytes) = (size, size);
    }
    workload
}

fn common(mut workload: Workload, args: &HuntArgs) -> Workload {
    workload.flows = args.flows;
    workload.omit_ns = WARM_UP_NS;
    workload.interval_ns = INTERVAL_NS;
    workload
}

/// The unit of the first of two rates: the original's search goes over whole numbers in it.
fn step_of(text: Option<&str>) -> u64 {
    let low = text.and_then(|text| text.split("..").next()).unwrap_or("1M");
    let unit = low.trim_start_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
    parse_rate(&format!("1{unit}")).ok().filter(|step| *step > 0).unwrap_or(1)
}

fn parse_rate_of(unit: RateUnit, text: &str) -> Result<u64, UnitError> {
    match unit {
        RateUnit::BitsPerSecond => parse_rate(text),
        RateUnit::RequestsPerSecond => parse_count(text.strip_suffix("/s").unwrap_or(text)),
    }
}

/// Two rates, the lower first, or one twice.
fn range_of(text: Option<&str>, unit: RateUnit) -> Result<(u64, u64), Error> {
    let text = text.unwrap_or(match unit {
        RateUnit::BitsPerSecond => "1M..10G",
        RateUnit::RequestsPerSecond => "10..1M",
    });
    let rate = |text| {
        parse_rate_of(unit, text).map_err(|error| contradiction(&format!("--rate: {error}")))
    };
    let (low, high) = match text.split_once("..") {
        Some((low, high)) => (rate(low)?, rate(high)?),
        None => (rate(text)?, rate(text)?),
    };
    if low == 0 || low > high {
        return Err(contradiction(&format!(
            "--rate {text}: give LOW..HIGH, two rates above 0 of which the first is the lower one, such as \
             10M..1G"
        )));
    }
    Ok((low, high))
}
