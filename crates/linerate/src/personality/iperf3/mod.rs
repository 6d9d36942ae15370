//! iperf3: its options, its output, its exit codes, with our engine behind them.
//!
//! What is typed ([`flags`], [`options`], [`command_line`]) becomes a plan of the dialect ([`plan`]);
//! `client` and `server` run it; [`printer`] turns what happens into text or JSON.
//! docs/compat/iperf3.md says what is the same as in the original and what isn't.

mod background;
mod client;
pub mod context;
mod document;
mod ending;
pub mod json;
mod long_object;
mod moment;
mod outlet;
mod password;
mod pid_file;
pub mod plan;
pub mod printer;
mod record;
mod relayed;
mod row;
mod server;
mod signals;
pub mod stock;
pub mod sum;
pub mod text;

pub(super) use record::plan_of;

use std::sync::Arc;

use linerate_engine::HandedSockets;
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Failure, ServePlan, Server};
use linerate_measure::Role;
use linerate_personality::iperf3::command_line::{UsageError, parse_command_line};
use linerate_personality::iperf3::fault::render_failure;
use linerate_personality::iperf3::options::Options;
use linerate_personality::iperf3::release::Release;
use linerate_personality::iperf3::{help, most_tests, release};
use linerate_wire::iperf3::Code;

use context::Context;
use moment::Stamp;
use outlet::Outlet;
use pid_file::{Denied, PidFile};
use printer::Form;
use record::{Iperf3Server, TestRecord};
use signals::Signals;
use stock::Stock;

use super::recorder::ServerRecorder;
use crate::output::narrate;

/// Does what a command line says; the exit code of iperf3: 0, or 1 where something went wrong.
pub fn perform(name: &str, words: &[String]) -> u8 {
    let (release, tests) = match settings() {
        Ok(settings) => settings,
        Err(text) => {
            narrate(&format!("{name}: {text}\n"));
            return 1;
        }
    };
    match read(words) {
        Ok(options) => Performance { words, options, release, tests }.perform(),
        Err(UsageError::Lexical(error)) => {
            narrate(&format!("{name}: {error}\n{}", help::USAGE));
            1
        }
        Err(UsageError::Parameter(failure)) => refuse(&failure, release),
    }
}

/// What the environment says: whose output is printed, and how many tests a server has at once.
fn settings() -> Result<(Release, Option<usize>), String> {
    let value = |name| std::env::var(name).ok();
    let release = Release::parse(value(release::VARIABLE).as_deref())?;
    Ok((release, most_tests::parse(value(most_tests::VARIABLE).as_deref())?))
}

/// Reads a command line, without the program's name.
///
/// # Errors
/// Those of [`parse_command_line`].
pub fn read(words: &[String]) -> Result<Options, UsageError> {
    parse_command_line(words, |path| {
        let facts = std::fs::File::open(path).and_then(|file| file.metadata());
        facts.is_ok_and(|facts| !facts.is_dir())
    })
}

/// Says why a command line isn't one.
fn refuse(failure: &Failure, release: Release) -> u8 {
    let text = render_failure(failure, release);
    narrate(&format!("iperf3: parameter error - {text}\n{}", help::USAGE));
    1
}

/// A command line that can be followed.
struct Performance<'a> {
    words: &'a [String],
    options: Options,
    release: Release,
    /// Tests at once at a server that is told how many.
    tests: Option<usize>,
}

impl Performance<'_> {
    fn perform(&self) -> u8 {
        let options = &self.options;
        let context = Context::new(options, self.release, system());
        if options.wants_help || options.wants_version {
            let text = if options.wants_help {
                help::render_help()
            } else {
                help::render_version(self.release, &context.system)
            };
            super::stdout::say(&text);
            return 0;
        }
        self.warn();
        let cancel = Cancel::default();
        let outlet = match self.open_outlet(&cancel) {
            Ok(outlet) => outlet,
            Err(failure) => {
                narrate(&format!("iperf3: error - {}\n", render_failure(&failure, self.release)));
                if options.host().is_none() && !self.form().is_json() {
                    narrate("iperf3: exiting\n");
                }
                return 1;
            }
        };
        let signals = match Signals::listen(&cancel) {
            Ok(signals) => signals,
            Err(error) => {
                let failure = Failure::system(Code::INIT_TEST, &error);
                client::conclude_nothing(&failure, &context, self.form(), &outlet);
                return 1;
            }
        };
        match options.host() {
            Some(_) => self.be_client(context, outlet, (&signals, &cancel)),
            None => self.be_server(&context, outlet, (&signals, &cancel)),
        }
    }

    fn form(&self) -> Form {
        match (self.options.output.json, self.options.output.json_stream) {
            (false, _) => Form::Text,
            (true, false) => Form::Json,
            (true, true) => Form::Stream { full: self.options.output.json_stream_full },
        }
    }

    /// What is accepted and has no effect says so.
    fn warn(&self) {
        let options = &self.options;
        let json = options.output.json;
        let warnings = [
            (
                json && options.output.format != Default::default(),
                "Report format (-f) flag ignored with JSON output (-J)",
            ),
            (
                json && options.output.verbose,
                "Verbose output (-v) may interfere with JSON output (-J)",
            ),
            (options.output.debug, "-d has no effect here: linerate has no debug output"),
            (options.socket.old_pacing, "--no-fq-socket-pacing is deprecated"),
        ];
        for (_, text) in warnings.iter().filter(|(holds, _)| *holds) {
            narrate(&format!("warning: {text}\n"));
        }
    }

    fn open_outlet(&self, cancel: &Cancel) -> Result<Outlet, Failure> {
        let stamp = match &self.options.output.timestamps {
            None => None,
            Some(format) => Some(Stamp::parse(format).ok_or_else(|| {
                Failure::of(Code::UNIMPLEMENTED)
                    .because(format!("'{format}' is no format of strftime"))
            })?),
        };
        // A document takes nothing before its lines.
        let stamp = stamp.filter(|_| !self.form().is_json());
        Outlet::open(self.options.output.log_file.as_deref(), stamp, cancel.clone())
            .map_err(|error| Failure::system(Code::LOG_FILE, &error))
    }

    fn be_client(
        &self,
        context: Context,
        outlet: Outlet,
        (signals, cancel): (&Signals, &Cancel),
    ) -> u8 {
        let plan = match plan::test_plan(&self.options, self.release, password::read_password) {
            Ok(plan) => plan,
            Err(failure) if failure.code == Code::CLIENT_AUTH => {
                return refuse(&failure, self.release);
            }
            Err(failure) => {
                client::conclude_nothing(&failure, &context, self.form(), &outlet);
                return 1;
            }
        };
        let _until_the_end = match self.take_pid_file() {
            Ok(file) => file,
            Err(text) => {
                outlet.complain(&text);
                return 1;
            }
        };
        let title = self.options.output.title.clone().filter(|_| !self.form().is_json());
        let outlet = outlet.with_title(title);
        let context = Context { asked: Some(plan.parameters.clone()), ..context };
        let record = match record::recorder(Role::Client, self.words, cancel) {
            Ok(recorder) => TestRecord::of_client(&recorder, &plan),
            Err(why) => {
                outlet.complain(&format!("error - {why}"));
                return 1;
            }
        };
        client::test(&plan, context, record, self.form(), &outlet, (signals, cancel))
    }

    fn be_server(
        &self,
        context: &Context,
        outlet: Outlet,
        (signals, cancel): (&Signals, &Cancel),
    ) -> u8 {
        let handed = match HandedSockets::take() {
            Ok(handed) => handed,
            Err(error) => {
                outlet.complain(&error.to_string());
                return 1;
            }
        };
        // An activated server stays in the foreground.
        let daemon = self.options.server.daemon && handed.is_empty();
        let background = daemon && background::is_background();
        if daemon && !background {
            return match background::start(self.words) {
                Ok(()) => 0,
                Err(said) => {
                    narrate(&format!("{said}\n"));
                    1
                }
            };
        }
        // The file is there before the port is, as the original's.
        let prepared = self
            .recorder(cancel)
            .and_then(|recorder| self.take_pid_file().map(|file| (recorder, file)));
        let (recorder, _until_the_end) = match prepared {
            Ok(prepared) => prepared,
            Err(text) if background => {
                background::tell_foreground(Some(&format!("iperf3: {text}")));
                return 1;
            }
            Err(text) => {
                outlet.complain(&text);
                return 1;
            }
        };
        let server = match self.bind(handed) {
            Ok(server) => server,
            Err(failure) if background => {
                let text = render_failure(&failure, self.release);
                background::tell_foreground(Some(&format!("iperf3: error - {text}")));
                return 1;
            }
            Err(failure) if failure.code == Code::SERVER_AUTH => {
                return refuse(&failure, self.release);
            }
            Err(failure) => {
                server::give_up(&failure, context, self.form(), &outlet);
                return 1;
            }
        };
        if background {
            background::tell_foreground(None);
            outlet.leave_stdout();
        }
        let context = Context { stock: Stock::for_tests(self.most_tests()), ..context.clone() };
        let outlet = Arc::new(outlet);
        server::serve(server, &context, &recorder, self.form(), &outlet, (signals, cancel))
    }

    /// What its tests are recorded with; or what to complain of.
    fn recorder(&self, cancel: &Cancel) -> Result<Arc<ServerRecorder<Iperf3Server>>, String> {
        let recorder = record::recorder(Role::Server, self.words, cancel)
            .map_err(|why| format!("error - {why}"))?;
        let one_off = self.options.server.one_off;
        let recorder = if one_off { recorder.of_one_test() } else { recorder };
        let dialect = Iperf3Server { interval: self.options.interval() };
        Ok(Arc::new(ServerRecorder::new(recorder, dialect)))
    }

    fn bind(&self, handed: HandedSockets) -> Result<Server, Failure> {
        let mut plan = plan::serve_plan(&self.options, self.release)?;
        plan.most_tests = self.most_tests();
        plan.handed = handed;
        Server::bind(&plan)
    }

    /// How many tests a server has at once.
    fn most_tests(&self) -> usize {
        let asked = self.options.server.most_tests.or(self.tests);
        asked.unwrap_or_else(|| ServePlan::default().most_tests)
    }

    /// The file of `-I`, where one is asked for; or what to complain of.
    fn take_pid_file(&self) -> Result<Option<PidFile>, String> {
        let Some(path) = &self.options.process.pid_file else { return Ok(None) };
        PidFile::write(path).map(Some).map_err(|denied| match denied {
            Denied::Taken => "Another instance of iperf3 appears to be running".to_owned(),
            Denied::Unwritten(error) => {
                let failure = Failure::system(Code::PID_FILE, &error);
                format!("error - {}", render_failure(&failure, self.release))
            }
        })
    }
}

/// What `uname` says of this machine.
fn system() -> String {
    let facts = rustix::system::uname();
    let parts =
        [facts.sysname(), facts.nodename(), facts.release(), facts.version(), facts.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}
