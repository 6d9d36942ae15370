//! `link`: emulate a path.

use std::fs::File;
use std::path::{Path, PathBuf};

use linerate_engine::event::Cancel;
use linerate_link::{Forwarder, ForwarderOptions, Namespaces, NamespacesOptions, Pace};
use linerate_measure::link::report::Waiting;
use linerate_measure::link::{Link, LinkError, Report, limits, profile};

use super::{Failure, await_file, open_destination, read_text};
use crate::args::LinkArgs;
use crate::output::{narrate, render_json, render_link_begin, render_link_report};
use crate::state_directory::state_directory;

/// Where records go if the user has no home: gone at the next boot, as namespaces are.
const RECORDS_WITHOUT_HOME: &str = "/run/linerate";
/// From this many processors on the emulator spins unless told otherwise: one for each end beside
/// its own.
const SPINNING_FROM_PROCESSORS: usize = 3;

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        Self::usage(error.to_string())
    }
}

/// Emulates until the time is over or a signal comes; then prints the report.
pub(super) fn emulate(args: &LinkArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let link = link_of(args, cancel)?;
    let mut destination = open_destination(args.output.as_deref(), cancel)?;
    let pace = pace_of(args);
    let report = match args.relay {
        Some((listen, target)) => {
            let options = ForwarderOptions { listen, target, udp: !args.tcp, tcp: !args.udp };
            let forwarder = Forwarder::bind(options)?;
            say(args, &render_link_begin(&link, &forwarder.describe(), &pace));
            forwarder.run(&link, &pace, cancel)?
        }
        None => between_namespaces(args, &link, &pace, cancel)?,
    };
    let exit_code = report.status.exit_code;
    let text =
        if args.json { format!("{}\n", render_json(&report)) } else { render_link_report(&report) };
    destination.put(&text)?;
    destination.commit().map_err(Failure::here)?;
    Ok(exit_code)
}

fn between_namespaces(
    args: &LinkArgs,
    link: &Link,
    pace: &Pace,
    cancel: &Cancel,
) -> Result<Report, Failure> {
    let home = state_directory().unwrap_or_else(|| PathBuf::from(RECORDS_WITHOUT_HOME));
    let options = NamespacesOptions {
        left: args.left.clone(),
        right: args.right.clone(),
        records: home.join("link"),
    };
    let namespaces = Namespaces::create(link, &options)?;
    for note in namespaces.notes() {
        say(args, &format!("linerate: {note}\n"));
    }
    let [left, right] = namespaces.ends();
    let between =
        [left, right].map(|end| format!("namespace {} ({}, {})", end.namespace, end.v4, end.v6));
    let how = format!("run programs in it with: ip netns exec {} ...", left.namespace);
    let between = [between[0].clone(), between[1].clone(), how];
    say(args, &render_link_begin(link, &between, pace));
    Ok(namespaces.run(link, pace, cancel)?)
}

fn link_of(args: &LinkArgs, cancel: &Cancel) -> Result<Link, Failure> {
    let mut link = match (&args.file, &args.profile) {
        (Some(file), _) => {
            let file = file.clone();
            await_file(cancel, move || read_link(&file))?
        }
        (None, Some(name)) => profile(name)?,
        (None, None) => {
            let text = "no link is given: give a FILE that describes it, or --profile with a name";
            return Err(Failure::usage(text));
        }
    };
    link.seed = args.seed.unwrap_or(link.seed);
    Ok(link)
}

fn read_link(file: &Path) -> Result<Link, Failure> {
    let text = read(file).map_err(Failure::here)?;
    let beside = file.parent().unwrap_or(Path::new(""));
    Link::parse(&text, |name| read(&beside.join(name)))
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn read(file: &Path) -> Result<String, String> {
    read_text(File::open(file), &file.display().to_string(), limits::TEXT_BYTES as u64)
}

fn pace_of(args: &LinkArgs) -> Pace {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let spins = !args.sleep && (args.cpu.is_some() || processors >= SPINNING_FROM_PROCESSORS);
    Pace {
        waiting: if spins { Waiting::Spinning } else { Waiting::Sleeping },
        cpu: args.cpu,
        time_ns: args.time,
    }
}

fn say(args: &LinkArgs, text: &str) {
    if !args.quiet {
        narrate(text);
    }
}
