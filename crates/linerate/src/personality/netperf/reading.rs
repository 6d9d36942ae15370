//! From words to work: the two tables of flags, then what they come to.

use linerate_engine::netperf::{TestPlan, TestTransport};
use linerate_measure::plan::Family;

use super::flags::GLOBAL;
use super::planning::{Control, Refusal, Request, Table, Work, plan_work};
use super::selection::render_names;
use super::test_flags::TEST;
use super::typed::{Deed, OmniTyped, Stop, Typed, blame};
use super::{EXIT_FAILED, EXIT_USAGE, VERSION_LINE};
use linerate_personality::getopt::{Flag, parse_words, render_flags};

/// What a command line comes to.
#[derive(Debug)]
pub(super) enum Read {
    /// Something to do, and what the user should know before.
    Work(Box<Control>, Work, Vec<String>),
    /// Nothing to do: what is said, where, and the exit code.
    Said { stdout: String, stderr: String, exit_code: u8 },
}

/// Reads a command line.
pub(super) fn read(name: &str, words: &[String]) -> Read {
    match read_words(name, words) {
        Ok(read) | Err(read) => read,
    }
}

fn read_words(name: &str, words: &[String]) -> Result<Read, Read> {
    let mut typed = Typed::default();
    // getopt collects stray words behind the options, where those of the test begin.
    let rest = obey(name, GLOBAL, words, &mut typed)?;
    match typed.stop {
        Some(Stop::Help) => return Ok(complaint(usage(), EXIT_USAGE)),
        Some(Stop::Version) => {
            let (stdout, stderr) = (VERSION_LINE.to_owned(), String::new());
            return Ok(Read::Said { stdout, stderr, exit_code: 0 });
        }
        Some(Stop::TestHelp) | None => {}
    }
    if typed.family == Some(Family::Ipv6) && !typed.names_host {
        // The name may stand for the IPv4 address alone.
        "::1".clone_into(&mut typed.control.host);
    }
    let strays = obey(name, TEST, &rest, &mut typed)?;
    if typed.stop == Some(Stop::TestHelp) {
        let (stdout, stderr) = (test_usage(), String::new());
        return Ok(Read::Said { stdout, stderr, exit_code: EXIT_USAGE });
    }
    if let Some(selected) = &typed.shown.selected
        && selected.list == "?"
    {
        let (stdout, stderr) = (render_names(selected.layout), String::new());
        return Ok(Read::Said { stdout, stderr, exit_code: EXIT_USAGE });
    }
    let interval = typed.local_interval_us.or(typed.remote_interval_us);
    let paced = typed.local_burst.is_some() || typed.remote_burst.is_some();
    let mut notes: Vec<String> = strays
        .iter()
        .map(|word| format!("{name}: '{word}' belongs to no option and is not looked at\n"))
        .collect();
    if interval.is_some() && !paced {
        notes.push(format!("{name}: -w has no effect without -b\n"));
    }
    let omni = typed.omni.clone();
    let (control, work) = plan_work(typed).map_err(|refusal| refuse(name, refusal))?;
    if let Work::Test(request) = &work {
        notes.extend(omni_notes(name, &omni, request));
    }
    if let Work::Test(request) = &work
        && let Some(selection) = &request.selection
    {
        notes.extend(selection.unknown.iter().map(|unknown| {
            format!("{name}: no figure is called '{unknown}'; `-- -O ?` lists them\n")
        }));
    }
    Ok(Read::Work(Box::new(control), work, notes))
}

/// What an OMNI test says of options that the original takes and that mean less than they seem to.
fn omni_notes(name: &str, omni: &OmniTyped, request: &Request) -> Vec<String> {
    if request.table != Table::Omni {
        return Vec::new();
    }
    let TestPlan { kind, transport, .. } = request.plan;
    let done = if kind.connects() { "connections carry nothing" } else { "this end sends" };
    let aimless = omni.aimless.iter().map(|told| {
        format!(
            "{name}: -d {told} names no direction, so that {done}, as with the original; -c -d rr is a \
             connection for each request\n"
        )
    });
    let carrier = match transport {
        TestTransport::Tcp => "TCP",
        TestTransport::Udp => "UDP",
    };
    let numbered = omni.numbered.iter().map(|told| {
        format!(
            "{name}: -T {told}: a number chooses no protocol, as with the original; the test goes over \
             {carrier} (-T tcp, -T udp)\n"
        )
    });
    aimless.chain(numbered).collect()
}

/// Does what the flags say; the words that are none.
fn obey(
    name: &str,
    flags: &[Flag<Deed>],
    words: &[String],
    typed: &mut Typed,
) -> Result<Vec<String>, Read> {
    let lexed = parse_words(flags, words)
        .map_err(|error| complaint(format!("{name}: {error}\n{}", usage()), EXIT_USAGE))?;
    for (deed, value) in lexed.flags {
        (deed.act)(typed, value.as_deref().unwrap_or_default())
            .map_err(|sentence| complaint(blame(name, deed.letter, &sentence), EXIT_USAGE))?;
    }
    Ok(lexed.operands)
}

fn refuse(name: &str, refusal: Refusal) -> Read {
    match refusal {
        Refusal::UnknownTest(test) => Read::Said {
            stdout: format!(
                "The test you requested ({test}) is unknown to this netperf.\n\
                 Please verify that you have the correct test name, \n\
                 and that test family has been compiled into this netperf.\n"
            ),
            stderr: String::new(),
            exit_code: EXIT_USAGE,
        },
        Refusal::UnknownLevel => Read::Said {
            stdout: "Only 95% and 99% confidence level is supported\n".to_owned(),
            stderr: String::new(),
            exit_code: EXIT_FAILED,
        },
        Refusal::SelectionFile { path, errno } => Read::Said {
            stdout: format!("Could not open output selection file '{path}' errno {errno}\n"),
            stderr: String::new(),
            exit_code: EXIT_FAILED,
        },
        Refusal::Sentence(sentence) => complaint(format!("{name}: {sentence}\n"), EXIT_USAGE),
    }
}

fn complaint(stderr: String, exit_code: u8) -> Read {
    Read::Said { stdout: String::new(), stderr, exit_code }
}

const SYNOPSIS: &str = "\nUsage: netperf [global options] -- [test options]\n";

/// What `-h` behind `--` tells.
fn test_usage() -> String {
    format!("{SYNOPSIS}\nTest options:\n{}", render_flags(TEST))
}

/// What `-h` tells.
pub(in super::super) fn usage() -> String {
    format!(
        "{SYNOPSIS}\
         \nGlobal options:\n{}\
         \nTest options:\n{}\
         \nTests: TCP_STREAM TCP_MAERTS TCP_SENDFILE TCP_RR TCP_CRR TCP_CC TCP_MSS UDP_STREAM UDP_RR\n\
         OMNI UUID LOC_CPU REM_CPU\n\
         \nOptions that take a pair set both halves with `a`, one with `a,` or `,b`; -b -D -F -H -I -L -p\n\
         -w, and -H -L -m -M of a test, set only the first with `a`. Sizes may end with K, M, G (1024) or\n\
         k, m, g (1000), and b; -1 is the default of most options.\n",
        render_flags(GLOBAL),
        render_flags(TEST),
    )
}
