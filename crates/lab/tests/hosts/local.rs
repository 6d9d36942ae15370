//! This machine as a host.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use linerate_lab::agent::{OutputStream, StartTask};
use linerate_lab::host::{
    ChildEventKind, Executable, HostErrorKind, HostEventKind, LocalHost, NamedHost, OpenOptions,
};
use rustix::process::Signal;

use crate::process::{PATIENCE, Place, Watched, signal};

#[test]
fn a_child_is_started_and_all_that_it_prints_is_passed_on() {
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a")]);
    let clock = watched.await_opened(0);
    // It is one clock.
    assert!(clock.offset.offset_ns.unsigned_abs() <= clock.offset.bound_ns, "{clock:?}");
    let task = watched.start(0, &["say"]);
    assert!(watched.await_started(task) > 1);
    assert_eq!(watched.await_line(task), r#"{"record":"one","text":"a \"b\" c"}"#);
    for expected in ["no JSON", "[1]", "{\"cut\":"] {
        assert_eq!(watched.await_text(task, OutputStream::Stdout), expected);
    }
    assert_eq!(watched.await_line(task), r#"{"record":"last, without an end"}"#);
    let on_error = watched.await_text(task, OutputStream::Stderr);
    assert_eq!(on_error, r#"{"record":"on standard error"}"#);
    let end = watched.await_ended(task);
    assert_eq!((end.code, end.signal), (Some(7), None));
    drop(watched);
    place.await_nothing_left();
}

#[test]
fn a_program_that_is_missing_ends_with_127_and_a_sentence() {
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a")]);
    watched.await_opened(0);
    let program = Some("/nowhere/iperf3".to_owned());
    let task = watched.session.start(0, StartTask { program, ..StartTask::default() });
    let text = watched.await_text(task, OutputStream::Stderr);
    assert!(text.contains("No such file"), "{text}");
    assert_ne!(watched.await_ended(task).code, Some(0));
}

#[test]
fn what_a_childs_own_children_print_does_not_delay_its_end() {
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a")]);
    watched.await_opened(0);
    let task = watched.shell(0, "yes & exit 3");
    assert_eq!(watched.await_ended(task).code, Some(3));
}

#[test]
fn a_child_that_heeds_no_sigterm_is_killed_with_its_own_children() {
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a")]);
    watched.await_opened(0);
    let script = "trap '' TERM; \"$0\" idle & echo '{}'; wait; wait".to_owned();
    let program = place.agent().to_string_lossy().into_owned();
    let task = watched.session.start(
        0,
        StartTask {
            program: Some("/bin/sh".to_owned()),
            argv: vec!["-c".to_owned(), script, program],
            ..StartTask::default()
        },
    );
    watched.await_line(task);
    watched.session.stop(0, task, Duration::from_millis(100));
    let end = watched.await_ended(task);
    assert_eq!((end.code, end.signal), (None, Some(9)));
    drop(watched);
    place.await_nothing_left();
}

#[test]
fn a_killed_agent_is_lost_and_its_children_die_with_it() {
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a"), place.local("b")]);
    watched.await_opened(0);
    watched.await_opened(1);
    let task = watched.start(0, &["idle"]);
    let child = watched.await_started(task);
    let other = watched.start(1, &["idle"]);
    watched.await_started(other);
    signal(parent_of(child), Signal::KILL);
    let (error, tasks) = watched.await_lost(0);
    assert_eq!(tasks, [task]);
    assert!(error.to_string().contains("the channel ended while it was in use"), "{error}");
    // The other host goes on.
    watched.session.stop(1, other, Duration::from_secs(3));
    assert_eq!(watched.await_ended(other).signal, Some(15));
    drop(watched);
    place.await_nothing_left();
}

#[test]
fn an_agent_that_hangs_is_silent_then_lost() {
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a")]);
    watched.await_opened(0);
    let task = watched.start(0, &["idle"]);
    let agent = parent_of(watched.await_started(task));
    signal(agent, Signal::STOP);
    watched.await_event(|event| matches!(event.kind, HostEventKind::Silent).then_some(()));
    let (error, _) = watched.await_lost(0);
    assert!(error.to_string().contains("nothing was heard for 5 s"), "{error}");
    // An agent that was stopped ends what it has started when it goes on.
    signal(agent, Signal::CONT);
    place.await_nothing_left();
}

#[test]
fn another_binary_than_the_one_that_was_meant_is_refused() {
    let place = Place::new();
    let executable = Executable { sha256: "b".repeat(64), ..place.executable() };
    let host = NamedHost { name: "a".to_owned(), host: Arc::new(LocalHost::new(executable)) };
    let mut watched = Watched::open(&[host]);
    let (error, _) = watched.await_lost(0);
    assert_eq!(error.kind, HostErrorKind::Digest { found: crate::process::SHA256.to_owned() });
    place.await_nothing_left();
}

#[test]
fn a_program_that_says_no_hello_is_told_with_what_it_prints() {
    let place = Place::new();
    std::fs::write(place.agent(), "#!/bin/sh\necho Welcome; echo broken >&2; exit 3\n").unwrap();
    let mut watched = Watched::open(&[place.local("a")]);
    let text = watched.await_lost(0).0.to_string();
    assert!(text.contains("Welcome") && text.contains("broken"), "{text}");
}

#[test]
fn a_flood_of_children_is_taken_up_to_the_limit() {
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a")]);
    watched.await_opened(0);
    let tasks: Vec<u32> = (0..300).map(|_| watched.start(0, &["say"])).collect();
    let mut counts = [0, 0];
    for task in tasks {
        let is_refused = watched.await_child(task, |kind| match kind {
            ChildEventKind::Refused(_) => Some(true),
            ChildEventKind::Ended(_) => Some(false),
            _ => None,
        });
        counts[usize::from(is_refused)] += 1;
    }
    assert!(counts[0] >= 256 && counts[0] + counts[1] == 300, "{counts:?}");
}

/// As one line of JSON it would be longer than a controller takes.
#[test]
fn a_long_line_that_is_no_text_comes_in_pieces() {
    const LENGTH: usize = 3 << 20;
    let place = Place::new();
    let mut watched = Watched::open(&[place.local("a")]);
    watched.await_opened(0);
    let task = watched.shell(0, &format!("head -c {LENGTH} /dev/zero"));
    let (mut length, mut end) = (0, None);
    while end.is_none() {
        let (ended, printed) = watched.await_child(task, |kind| match kind {
            ChildEventKind::Text { text, .. } => Some((None, text.len())),
            ChildEventKind::Ended(end) => Some((Some(end.code), 0)),
            _ => None,
        });
        (length, end) = (length + printed, ended);
    }
    assert_eq!((end, length), (Some(Some(0)), LENGTH));
}

#[test]
fn a_host_that_floods_is_lost_and_no_other() {
    let place = Place::new();
    let hosts = [place.local("a"), place.local("b")];
    let options = OpenOptions { untaken: 1 << 20, ..OpenOptions::default() };
    let mut watched = Watched::open_with(&hosts, &options);
    watched.await_opened(0);
    watched.await_opened(1);
    let other = watched.start(1, &["idle"]);
    watched.await_started(other);
    let flood = watched.shell(0, "yes | head -c 67108864");
    let agent = parent_of(watched.await_started(flood));
    // Nothing is taken until the agent has ended, since its channel was closed.
    let until = Instant::now() + PATIENCE;
    while place.processes().contains_key(&agent) {
        assert!(Instant::now() < until, "the agent of a flooding host goes on");
        thread::sleep(Duration::from_millis(20));
    }
    let (error, tasks) = watched.await_lost(0);
    assert_eq!(tasks, [flood]);
    assert!(error.to_string().contains("more than 1 MiB that this program had no time"), "{error}");
    watched.session.stop(1, other, Duration::from_secs(3));
    assert_eq!(watched.await_ended(other).signal, Some(15));
    drop(watched);
    place.await_nothing_left();
}

/// Nonsense on an agent's input is a sentence and an exit code.
#[test]
fn an_agent_that_reads_nonsense_says_so_and_ends() {
    let place = Place::new();
    let long = vec![b'x'; 3 << 20];
    for input in [&b"help\n"[..], b"\0\n", b"{}\n", &long, b""] {
        let mut agent = Command::new(place.agent())
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The agent may have ended before all was written.
        let _cut = agent.stdin.take().unwrap().write_all(input);
        let mut printed = String::new();
        agent.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        let code = agent.wait().unwrap().code();
        if input.is_empty() {
            assert_eq!((printed.trim(), code), ("", Some(0)));
        } else {
            assert!(printed.contains("is not started by hand"), "{printed}");
            assert_eq!(code, Some(1));
        }
    }
}

/// The process that has started this one.
fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(1).unwrap().parse().unwrap()
}
