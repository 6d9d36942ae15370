use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::Receiver;

use linerate_engine::event::{Event, Sink};

use super::{check, trust_only};

const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222222222222222222222222222";

fn note(events: &Receiver<Event>) -> String {
    match events.try_recv().unwrap() {
        Event::Note(text) => text,
        other => panic!("{other:?}"),
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_first_key_is_remembered_and_the_second_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made/known_servers");
    let (sink, events) = Sink::bounded(4);
    check(&path, "a:1", ONE, &sink).unwrap();
    let text = note(&events);
    assert!(text.contains("first time at a:1") && text.contains(ONE), "{text}");
    check(&path, "a:1", ONE, &sink).unwrap();
    assert!(events.try_recv().is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("a:1 {ONE}\n"));

    let error = check(&path, "a:1", TWO, &sink).unwrap_err();
    for part in [ONE, TWO, "a:1", "known_servers", "--server-key", "remove the line"] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("a:1 {ONE}\n"));
}

#[test]
fn other_lines_stay_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_servers");
    let before = format!("# mine\n\na:1  {ONE} and a remark\n[::1]:5250 {TWO}");
    fs::write(&path, &before).unwrap();
    check(&path, "a:2", TWO, &Sink::none()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{before}\na:2 {TWO}\n"));
    check(&path, "a:1", ONE, &Sink::none()).unwrap();
    check(&path, "[::1]:5250", TWO, &Sink::none()).unwrap();
}

#[test]
fn the_list_is_private_and_nothing_else_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_servers");
    check(&path, "a:1", ONE, &Sink::none()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names_in(directory.path()), ["known_servers", "known_servers.lock"]);
}

#[test]
fn a_list_that_cant_be_written_is_told_and_trusted_once() {
    let (sink, events) = Sink::bounded(4);
    // A file where a directory ought to be: refused to root too.
    let file = tempfile::NamedTempFile::new().unwrap();
    check(&file.path().join("known_servers"), "a:1", ONE, &sink).unwrap();
    let text = note(&events);
    assert!(text.contains("for this run") && text.contains("can't be remembered"), "{text}");
}

#[test]
fn a_list_that_cant_be_read_trusts_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_servers");
    fs::create_dir(&path).unwrap();
    assert!(check(&path, "a:1", ONE, &Sink::none()).unwrap_err().contains("can't read"));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(check(&path, "a:1", ONE, &Sink::none()).unwrap_err().contains("can't read"));
}

#[test]
fn a_line_without_a_key_trusts_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_servers");
    fs::write(&path, "a:1\n").unwrap();
    assert!(check(&path, "a:1", ONE, &Sink::none()).is_err());
}

#[test]
fn clients_at_the_same_time_lose_no_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_servers");
    std::thread::scope(|scope| {
        for client in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for server in 0..8 {
                    check(path, &format!("{client}:{server}"), ONE, &Sink::none()).unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 64);
}

#[test]
fn a_pinned_key_and_no_other() {
    let trust = trust_only(ONE.to_owned());
    assert!(trust(ONE).is_ok());
    let error = trust(TWO).unwrap_err();
    assert!(error.contains(ONE) && error.contains(TWO), "{error}");
}

#[test]
fn a_lock_that_another_program_holds_keeps_nobody_from_a_test() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_servers");
    let held = fs::File::create(directory.path().join("known_servers.lock")).unwrap();
    held.lock().unwrap();
    let (sink, events) = Sink::bounded(4);
    check(&path, "a:1", ONE, &sink).unwrap();
    let text = note(&events);
    assert!(text.contains("for this run") && text.contains("holds its lock"), "{text}");
    assert!(!path.exists());
    // A client that knows the server doesn't need the lock.
    fs::write(&path, format!("a:1 {ONE}\n")).unwrap();
    let began = std::time::Instant::now();
    check(&path, "a:1", ONE, &sink).unwrap();
    assert!(began.elapsed() < super::LOCK_WAIT && events.try_recv().is_err());
}

#[test]
fn only_regular_files_are_read() {
    let fifo = |path: &Path| {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap()
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known_servers");
    fifo(&directory.path().join("known_servers.lock"));
    let (sink, events) = Sink::bounded(4);
    check(&path, "a:1", ONE, &sink).unwrap();
    let text = note(&events);
    assert!(text.contains("for this run") && text.contains("known_servers.lock"), "{text}");

    let other = directory.path().join("other");
    fifo(&other);
    let error = check(&other, "a:1", ONE, &Sink::none()).unwrap_err();
    assert!(error.contains("no regular file"), "{error}");
}

#[test]
fn a_list_that_is_linked_to_stays_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    fs::write(&kept, "").unwrap();
    let path = directory.path().join("known_servers");
    std::os::unix::fs::symlink(&kept, &path).unwrap();
    check(&path, "a:1", ONE, &Sink::none()).unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&kept).unwrap(), format!("a:1 {ONE}\n"));
    // Where it leads nowhere, nothing is written, and the link is left.
    fs::remove_file(&kept).unwrap();
    let (sink, events) = Sink::bounded(4);
    check(&path, "a:2", ONE, &sink).unwrap();
    assert!(note(&events).contains("for this run"));
    assert!(path.is_symlink() && !kept.exists());
}
