//! An agent without linerate behind it, its children, and a controller that may be killed: what the tests of hosts
//! start.
//!
//! * `agent` is an agent, as `linerate agent` is. Its digest is [`SHA256`].
//! * `controller PROGRAM N` opens N hosts on this machine by the agent PROGRAM, starts two children on each, and
//!   goes on until it is ended.
//! * `idle`, `say` and `wait` are children.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use linerate_lab::agent::{AgentEnd, AgentProcess, Moment, StartTask, become_child, hello};
use linerate_lab::host::{Executable, HostEventKind, LocalHost, NamedHost, OpenOptions, Session};

/// What this agent says for its digest: the tests needn't compute one.
const SHA256: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let [_, _, flag, agent, _, program, words @ ..] = &arguments[..]
        && flag == "--child-of"
    {
        let agent = agent.to_string_lossy().parse().unwrap_or(0);
        return Err(become_child(agent, program, words));
    }
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into()).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "agent"] => return serve(),
        [_, "controller", program, hosts] => control(program, hosts.parse().unwrap_or(1)),
        [_, "say"] => say()?,
        [_, "wait"] => wait()?,
        [_, "idle"] => loop {
            thread::sleep(Duration::from_secs(3600));
        },
        _ => return Ok(ExitCode::from(2)),
    }
    Ok(ExitCode::SUCCESS)
}

fn serve() -> io::Result<ExitCode> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let hello = hello("0", SHA256);
    let process = AgentProcess::new(hello, std::env::current_exe()?, input, output);
    let end = process.run(&mut (), &AtomicBool::new(false))?;
    writeln!(io::stderr(), "agent: {end}")?;
    let is_told = matches!(end, AgentEnd::Bye | AgentEnd::EndOfInput);
    Ok(if is_told { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says something by each way, then ends with an exit code of its own.
fn say() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{{\"record\":\"one\",\"text\":\"a \\\"b\\\" c\"}}")?;
    writeln!(out, "no JSON\n[1]\n{{\"cut\":")?;
    writeln!(io::stderr(), "{{\"record\":\"on standard error\"}}")?;
    write!(out, "{{\"record\":\"last, without an end\"}}")?;
    out.flush()?;
    std::process::exit(7);
}

/// Starts at the time that standard input names, and says when that was.
fn wait() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{{\"record\":\"armed\"}}")?;
    out.flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let (seconds, ns) = line.trim().trim_start_matches('@').split_once('.').unwrap_or_default();
    let number = |text: &str| text.parse::<i64>().unwrap_or(0);
    let due_ns = number(seconds) * 1_000_000_000 + number(ns);
    let left_ns = due_ns - Moment::now().utc_ns;
    thread::sleep(Duration::from_nanos(u64::try_from(left_ns).unwrap_or(0)));
    writeln!(out, "{{\"record\":\"started\",\"utc_ns\":{}}}", Moment::now().utc_ns)
}

fn control(program: &str, hosts: usize) {
    let executable =
        Executable { path: program.into(), sha256: SHA256.to_owned(), arch: String::new() };
    let host = |number| NamedHost {
        name: format!("h{number}"),
        host: Arc::new(LocalHost::new(executable.clone())),
    };
    let hosts: Vec<NamedHost> = (0..hosts).map(host).collect();
    let Ok(mut session) = Session::open(&hosts, &OpenOptions::default()) else { return };
    loop {
        let Some(event) = session.next_event(Duration::from_secs(1)) else { continue };
        if let HostEventKind::Opened { .. } = event.kind {
            let argv = vec!["idle".to_owned()];
            session.start(event.host, StartTask { argv, ..StartTask::default() });
            // A child that heeds no SIGTERM.
            let argv = ["-c", "trap '' TERM; \"$0\" idle & wait; wait"];
            let argv = argv.iter().map(|&word| word.to_owned()).chain([program.to_owned()]);
            session.start(
                event.host,
                StartTask {
                    argv: argv.collect(),
                    program: Some("/bin/sh".to_owned()),
                    ..StartTask::default()
                },
            );
        }
    }
}
