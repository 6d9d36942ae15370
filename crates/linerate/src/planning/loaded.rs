//! Latency under load: what is asked, and the plan of each test of each phase.

use linerate_engine::check_congestion;
use linerate_engine::error::Error;
use linerate_measure::loaded::{LoadedPlan, Part, PhaseName};
use linerate_measure::{Plan, Transport};

use super::{check, contradiction, plan_from_args};
use crate::args::LoadedArgs;

/// The tests of a phase.
pub struct PhasePlans {
    /// The phase.
    pub name: PhaseName,
    /// The plan of each part, in the order in which they are opened.
    pub parts: Vec<(Part, Plan)>,
}

/// What is asked, and the tests of each phase.
///
/// # Errors
/// `Plan` where flags contradict each other or a number is outside its limits.
pub fn plans_from_loaded(args: &LoadedArgs) -> Result<(LoadedPlan, Vec<PhasePlans>), Error> {
    refuse(args)?;
    let transport = match (args.tls, args.quic) {
        (true, _) => Transport::Tls,
        (_, true) => Transport::Quic,
        _ => Transport::Tcp,
    };
    let asked = LoadedPlan {
        transport,
        flows: args.flows,
        congestion: match &args.congestion {
            Some(name) => name.clone(),
            None => default_congestion(transport).to_owned(),
        },
        idle_ns: args.idle_time,
        longest_ns: args.time,
        warm_up_ns: args.omit,
    };
    let plan_of = |phase: PhaseName, part: Part| {
        let workload = asked.workload(phase, part);
        let plan = plan_from_args(&args.host, &args.connect, &args.output, workload)?;
        check(&plan).map_err(|error| match (error, phase) {
            (Error::Plan(text), PhaseName::Idle) => {
                Error::Plan(text.replacen("--time: ", "--idle-time: ", 1))
            }
            (error, _) => error,
        })?;
        Ok((part, plan))
    };
    let phase_of = |name: PhaseName| {
        let parts = Part::of(name).into_iter().map(|part| plan_of(name, part));
        let mut parts = parts.collect::<Result<Vec<_>, Error>>()?;
        // The others run within the lease of the first. A server that knows no leases would have them wait for it.
        parts.iter_mut().skip(1).for_each(|(_, plan)| plan.exclusive = false);
        Ok(PhasePlans { name, parts })
    };
    let phases = PhaseName::ALL.into_iter().map(phase_of).collect::<Result<_, Error>>()?;
    Ok((asked, phases))
}

/// The congestion control of a load that names none: cubic, which fills a queue as most senders do. Where the machine
/// allows ordinary users no cubic, as its own default may be another, it is reno, which every user may choose and which
/// fills a queue as well. QUIC has controls of its own.
fn default_congestion(transport: Transport) -> &'static str {
    let is_usable = transport == Transport::Quic || check_congestion("cubic").is_ok();
    if is_usable { "cubic" } else { "reno" }
}

/// Refuses flags of the other commands that mean nothing here.
fn refuse(args: &LoadedArgs) -> Result<(), Error> {
    let (connect, output) = (&args.connect, &args.output);
    for (is_given, sentence) in [
        (
            args.udp,
            "--udp: datagrams have no congestion control, so they fill any queue: choose --tcp, --tls or --quic \
             for the load; requests over UDP are always a part of the measurement",
        ),
        (output.csv, "--csv: loaded has no rows of samples: use --json"),
        (output.ndjson, "--ndjson: loaded has no records: use --json"),
        (output.verbose, "--verbose: loaded prints its phases; --json has all that is known"),
        (output.live, "--live: loaded has no screen: it prints each phase as it begins"),
        (output.report.is_some(), "--report: loaded has no page: use --json"),
        (connect.start_at.is_some(), "--start-at: loaded has four phases, which begin one by one"),
    ] {
        if is_given {
            return Err(contradiction(sentence));
        }
    }
    Ok(())
}
