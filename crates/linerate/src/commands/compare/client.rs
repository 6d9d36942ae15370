//! One of the commands that are compared: which program it is, and how its figures are read.

use std::env;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use linerate_engine::event::Cancel;
use linerate_measure::comparison::{ComparedRun, Figures, PrintedBy, Side, figures_of_run};
use linerate_measure::run::exit;
use linerate_measure::{Outcome, Run};
use linerate_wire::visible::visible_line;
use rustix::process::{Pid, Signal, kill_process};

/// What is read of a client's output; a document of many flows is long.
const OUTPUT_BYTES: u64 = 256 << 20;
/// What is read of what a client complains about.
const COMPLAINT_BYTES: u64 = 64 << 10;
/// How often a running client is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// A client that was asked to stop has so long for its last words.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The commands of this program that measure.
const MEASURING: [&str; 4] = ["stream", "media", "rr", "connect"];

/// A command that measures.
pub(super) struct Client {
    program: OsString,
    words: Vec<String>,
    printed_by: Option<PrintedBy>,
}

/// What a client left behind.
struct Ended {
    status: ExitStatus,
    output: String,
    complaint: String,
}

impl Client {
    /// The client of a command line.
    ///
    /// # Errors
    ///
    /// Why its figures could not be read, in words.
    pub(super) fn of(command: &str) -> Result<Self, String> {
        let mut words =
            shlex::split(command).ok_or_else(|| format!("{command:?} has an open quote"))?;
        let this = env::current_exe()
            .map_err(|error| format!("can't find this program: {error}"))?
            .into_os_string();
        if words.first().is_some_and(|word| word == "linerate") {
            words.remove(0);
        }
        let Some(first) = words.first().cloned() else { return Err("it is empty".to_owned()) };
        if MEASURING.contains(&first.as_str()) {
            let is_repeated =
                |word: &&String| word.starts_with("--repeat") || word.starts_with("--precision");
            if let Some(word) = words.iter().find(is_repeated) {
                return Err(format!(
                    "{word} makes several runs, and a pair has one of each: use --pairs"
                ));
            }
            if words.iter().any(|word| word == "--explain") {
                return Err(
                    "--explain makes up to three runs, and a pair has one of each command: leave it out".to_owned(),
                );
            }
            if !words.iter().any(|word| word == "--json") {
                words.push("--json".to_owned());
            }
            return Ok(Self { program: this, words, printed_by: None });
        }
        let name = Path::new(&first).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(printed_by) = PrintedBy::of_name(name) else {
            let others = PrintedBy::ALL.map(PrintedBy::name).join(", ");
            return Err(format!(
                "no figures can be read of {first:?}: begin with one of {}, {others}",
                MEASURING.join(", ")
            ));
        };
        // `linerate iperf3 ...` is this program's, `iperf3 ...` the one in the path.
        let is_ours = shlex::split(command)
            .is_some_and(|words| words.first().is_some_and(|word| word == "linerate"));
        let program = if is_ours { this } else { OsString::from(words.remove(0)) };
        if printed_by == PrintedBy::Iperf3
            && !words.iter().any(|word| word == "-J" || word == "--json")
        {
            words.push("-J".to_owned());
        }
        Ok(Self { program, words, printed_by: Some(printed_by) })
    }

    /// Runs it to its end, or until somebody asks to stop.
    pub(super) fn run(&self, (side, pair): (Side, usize), cancel: &Cancel) -> ComparedRun {
        let failed = |exit_code: i32, why: String| ComparedRun {
            side,
            pair,
            run_id: None,
            exit_code,
            figures: Figures::new(),
            message: Some(visible_line(&why)),
        };
        let ended = match self.execute(cancel) {
            Ok(ended) => ended,
            Err(why) => return failed(i32::from(exit::FAILED), why),
        };
        let exit_code = ended.status.code().unwrap_or(i32::from(exit::FAILED));
        let read = match self.printed_by {
            None => read_document(&ended.output),
            Some(tool) => tool.figures(&ended.output).map(|figures| (None, figures, None)),
        };
        match read {
            Ok((run_id, figures, message)) if is_measured(exit_code) => ComparedRun {
                side,
                pair,
                run_id,
                exit_code,
                figures,
                message: message.map(|why| visible_line(&why)),
            },
            read => {
                let said = read.map_or_else(Some, |(_, _, message)| message);
                let complaint =
                    ended.complaint.lines().map(str::trim).rfind(|line| !line.is_empty());
                let why = complaint
                    .map(str::to_owned)
                    .or(said)
                    .unwrap_or_else(|| ended.status.to_string());
                failed(exit_code, why)
            }
        }
    }

    fn execute(&self, cancel: &Cancel) -> Result<Ended, String> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let failed = |error: std::io::Error| {
            format!("can't run {}: {error}", self.program.to_string_lossy())
        };
        let mut child = command.spawn().map_err(failed)?;
        let (output, complaint) = (child.stdout.take(), child.stderr.take());
        thread::scope(|scope| {
            let spawn = |read: Box<dyn FnOnce() -> String + Send>| {
                thread::Builder::new().spawn_scoped(scope, read)
            };
            let output = spawn(Box::new(move || read_whole(output, OUTPUT_BYTES)));
            let complaint = spawn(Box::new(move || read_whole(complaint, COMPLAINT_BYTES)));
            let status = wait(&mut child, cancel);
            if output.is_err() || complaint.is_err() || status.is_err() {
                // Whatever goes wrong here, no client stays behind.
                let _ended_already = child.kill();
                let _reaped_already = child.wait();
            }
            let text = |reading: std::io::Result<thread::ScopedJoinHandle<'_, String>>| {
                let reading = reading.map_err(|error| format!("can't start a thread: {error}"))?;
                reading.join().map_err(|_| "the reader of its output failed".to_owned())
            };
            let (output, complaint) = (text(output)?, text(complaint)?);
            Ok(Ended { status: status.map_err(failed)?, output, complaint })
        })
    }
}

/// Whether a client that returned this has measured something.
fn is_measured(exit_code: i32) -> bool {
    [exit::VALID, exit::UNTRUSTWORTHY].map(i32::from).contains(&exit_code)
}

/// Waits for a client's end. One that is asked to stop and doesn't is killed.
fn wait(child: &mut Child, cancel: &Cancel) -> std::io::Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match asked {
            None if cancel.requested() => {
                asked = Some(Instant::now());
                if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    // It may have ended by itself.
                    let _ended_already = kill_process(pid, Signal::INT);
                }
            }
            Some(since) if since.elapsed() > LAST_WORDS => {
                child.kill()?;
                return child.wait();
            }
            _ => {}
        }
        thread::sleep(LOOK);
    }
}

/// All that comes, of which so much is kept. A client whose output nobody takes would wait for ever.
fn read_whole(source: Option<impl Read>, most_bytes: u64) -> String {
    let Some(mut source) = source else { return String::new() };
    let mut bytes = Vec::new();
    // What came before a failure is looked at.
    let _shorter_at_worst = source.by_ref().take(most_bytes).read_to_end(&mut bytes);
    let _discarded = std::io::copy(&mut source, &mut std::io::sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The run's id, its figures, and why it is not to be trusted.
fn read_document(text: &str) -> Result<(Option<String>, Figures, Option<String>), String> {
    let run: Run = serde_json::from_str(text)
        .map_err(|error| format!("it printed no run document: {error}"))?;
    let message = run.status.message.clone();
    if !matches!(run.status.outcome, Outcome::Complete | Outcome::Untrustworthy) {
        return Err(message.unwrap_or_else(|| "it was not measured".to_owned()));
    }
    let figures = figures_of_run(&run);
    if figures.is_empty() {
        return Err("its summary has no figure that is compared".to_owned());
    }
    Ok((Some(run.run_id), figures, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_pair_makes_one_run() {
        for (command, way_out) in [
            ("stream a --repeat 2", "use --pairs"),
            ("linerate rr a --precision=2%", "use --pairs"),
            ("stream a --explain", "--explain makes up to three runs"),
        ] {
            let refused = Client::of(command).err().unwrap();
            assert!(refused.contains(way_out), "{command}: {refused}");
        }
        assert!(Client::of("stream a --tls").is_ok());
    }
}
