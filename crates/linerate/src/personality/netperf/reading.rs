//! From words to work: what was typed, then what it comes to.

use linerate_engine::netperf::{TestPlan, TestTransport};
use linerate_personality::netperf::EXIT_USAGE;
use linerate_personality::netperf::command_line::{Said, parse_command_line};
use linerate_personality::netperf::options::OmniOptions;

use super::EXIT_FAILED;
use super::planning::{Control, Refusal, Request, Table, Work, plan_work};
use super::selection::render_names;

/// What a command line comes to.
#[derive(Debug)]
pub(super) enum Read {
    /// Something to do, and what the user should know before.
    Work(Box<Control>, Work, Vec<String>),
    /// Nothing to do.
    Said(Said),
}

impl From<Said> for Read {
    fn from(said: Said) -> Self {
        Self::Said(said)
    }
}

/// Reads a command line.
pub(super) fn read(name: &str, words: &[String]) -> Read {
    match read_words(name, words) {
        Ok(read) | Err(read) => read,
    }
}

fn read_words(name: &str, words: &[String]) -> Result<Read, Read> {
    let (options, mut notes) = parse_command_line(name, words)?;
    if let Some(selected) = &options.shown.selected
        && selected.list == "?"
    {
        let (stdout, stderr) = (render_names(selected.layout), String::new());
        return Ok(Read::Said(Said { stdout, stderr, exit_code: EXIT_USAGE }));
    }
    let omni = options.omni.clone();
    let (control, work) = plan_work(options).map_err(|refusal| refuse(name, refusal))?;
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
fn omni_notes(name: &str, omni: &OmniOptions, request: &Request) -> Vec<String> {
    if request.table != Table::Omni {
        return Vec::new();
    }
    let TestPlan { kind, transport, .. } = request.plan;
    let done = if kind.connects() { "connections carry nothing" } else { "this end sends" };
    let aimless = omni.aimless.iter().map(|told| {
        format!(
            "{name}: -d {told} names no direction, so {done}, as with the original; -c -d rr makes a \
             connection for each request\n"
        )
    });
    let carrier = match transport {
        TestTransport::Tcp => "TCP",
        TestTransport::Udp => "UDP",
    };
    let numbered = omni.numbered.iter().map(|told| {
        format!(
            "{name}: -T {told}: a number chooses no protocol, as with the original; the test uses \
             {carrier} (-T tcp, -T udp)\n"
        )
    });
    aimless.chain(numbered).collect()
}

fn refuse(name: &str, refusal: Refusal) -> Read {
    let (stdout, exit_code) = match refusal {
        Refusal::UnknownTest(test) => (
            format!(
                "The test you requested ({test}) is unknown to this netperf.\n\
                 Please verify that you have the correct test name, \n\
                 and that test family has been compiled into this netperf.\n"
            ),
            EXIT_USAGE,
        ),
        Refusal::UnknownLevel => {
            ("Only 95% and 99% confidence level is supported\n".to_owned(), EXIT_FAILED)
        }
        Refusal::SelectionFile { path, errno } => {
            (format!("Could not open output selection file '{path}' errno {errno}\n"), EXIT_FAILED)
        }
        Refusal::Sentence(sentence) => {
            return Read::Said(Said::complaint(format!("{name}: {sentence}\n")));
        }
    };
    Read::Said(Said { stdout, stderr: String::new(), exit_code })
}
