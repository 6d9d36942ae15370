//! Hosts over real ssh, each in a namespace with an sshd of its own.

use std::sync::Arc;

use linerate_lab::agent::StartTask;
use linerate_lab::host::{Binaries, Executable, Host, HostErrorKind, NamedHost, RemoteHost};
use linerate_lab::plan::SshHost;
use rustix::process::Signal;

use crate::fleet::{Fleet, address};
use crate::process::{Place, SHA256, Watched, signal};
use crate::skipped::skip;

/// What login files of busy people print, without an end of line at last.
const NOISY: &str =
    "echo 'Welcome to host one!'; echo 'mail: 3 new' >&2; printf '{\"hello\": no}\\nprompt> '";

fn host(place: &Place, spec: SshHost) -> NamedHost {
    let binaries = Binaries { own: place.executable(), others: Vec::new() };
    NamedHost { name: spec.address.clone(), host: remote(spec, binaries) }
}

fn remote(spec: SshHost, binaries: Binaries) -> Arc<dyn Host> {
    Arc::new(RemoteHost::new(spec, Arc::new(binaries)).unwrap())
}

fn fleet(hosts: usize, login: &str) -> Option<Fleet> {
    let made = Fleet::create(hosts).and_then(|mut fleet| {
        fleet.serve_ssh(login)?;
        Ok(fleet)
    });
    made.map_err(|why| skip(&why)).ok()
}

#[test]
fn a_binary_is_put_on_a_host_with_noisy_login_files_once() {
    let Some(fleet) = fleet(1, NOISY) else { return };
    let put = fleet.place.path().join(format!("home-0/.cache/linerate/bin/linerate-{SHA256}"));
    assert!(!put.exists());
    let mut written = None;
    for _ in 0..2 {
        fleet.inside(|| {
            let mut watched = Watched::open(&[host(&fleet.place, fleet.spec(0))]);
            let clock = watched.await_opened(0);
            assert!(clock.offset.offset_ns.unsigned_abs() <= clock.offset.bound_ns, "{clock:?}");
            let task = watched.start(0, &["say"]);
            assert_eq!(watched.await_line(task), r#"{"record":"one","text":"a \"b\" c"}"#);
            assert_eq!(watched.await_ended(task).code, Some(7));
            let task = watched.start(0, &["idle"]);
            watched.await_started(task);
        });
        let modified = put.metadata().unwrap().modified().unwrap();
        assert_eq!(*written.get_or_insert(modified), modified, "it was put there again");
        assert_eq!(std::fs::read_dir(put.parent().unwrap()).unwrap().count(), 1);
    }
}

#[test]
fn what_is_in_the_way_is_told_with_the_way_out() {
    let Some(mut fleet) = fleet(6, "") else { return };
    // Host 0: wrong key; 1: unknown host key; 2: no home; 3: another architecture; 4: full disk; 5: no Linux.
    std::fs::write(fleet.path("nobody_known"), "").unwrap();
    fleet.write_login(2, "export HOME=/proc/nowhere");
    fleet.write_login(
        3,
        "uname() { [ \"$1\" = -m ] && echo riscv64 || echo Linux; }; export -f uname",
    );
    fleet.write_login(
        5,
        "uname() { [ \"$1\" = -m ] && echo arm64 || echo Darwin; }; export -f uname",
    );
    let bash = fleet.path("bash");
    for host in [3, 5] {
        // The functions are those of bash, whatever `sh` is.
        let login = std::fs::read_to_string(fleet.path(&format!("login-{host}"))).unwrap();
        let login = login.replace("eval ", &format!("export PATH={bash}:$PATH\neval "));
        std::fs::write(fleet.path(&format!("login-{host}")), login).unwrap();
    }
    std::fs::create_dir(&bash).unwrap();
    std::os::unix::fs::symlink("/bin/bash", format!("{bash}/sh")).unwrap();
    if let Err(why) = fleet.shrink_home(4) {
        return skip(&why);
    }
    let refused = SshHost { address: "root@10.78.0.1".to_owned(), ..fleet.spec(0) };
    let unknown = SshHost { address: "root@no-such-host.invalid".to_owned(), ..fleet.spec(0) };
    let specs = [
        fleet.spec_with(0, "strange_key", "known_hosts"),
        fleet.spec_with(1, "user_key", "nobody_known"),
        fleet.spec(2),
        fleet.spec(3),
        fleet.spec(4),
        fleet.spec(5),
        refused,
        unknown,
    ];
    let hosts: Vec<NamedHost> = specs.into_iter().map(|spec| host(&fleet.place, spec)).collect();
    let errors = fleet.inside(|| {
        let mut watched = Watched::open(&hosts);
        (0..hosts.len()).map(|host| watched.await_lost(host).0).collect::<Vec<_>>()
    });
    let kinds: Vec<_> = errors.iter().map(|error| error.kind.clone()).collect();
    let expected = [
        HostErrorKind::PermissionDenied,
        HostErrorKind::HostKey,
        HostErrorKind::NoHome,
        HostErrorKind::Architecture { arch: "riscv64".to_owned() },
        HostErrorKind::DiskFull,
        HostErrorKind::NotLinux { uname: "Darwin arm64".to_owned() },
        HostErrorKind::Refused,
        HostErrorKind::Unresolved,
    ];
    assert_eq!(kinds, expected, "{errors:#?}");
    assert!(errors.iter().all(|error| !error.way_out().is_empty()));
    // Nothing half is left of what did not fit.
    let left = fleet.place.path().join("home-4/.cache/linerate/bin");
    assert_eq!(std::fs::read_dir(left).map_or(0, Iterator::count), 0);
}

#[test]
fn a_host_of_another_architecture_gets_its_binary() {
    let Some(fleet) = fleet(1, "") else { return };
    let own = Executable {
        arch: "mips64".to_owned(),
        sha256: "0".repeat(64),
        ..fleet.place.executable()
    };
    let binaries = Binaries { own, others: vec![fleet.place.executable()] };
    let directory = Some(fleet.path("another directory/bin"));
    let spec = SshHost { binary_dir: directory, ..fleet.spec(0) };
    let named = NamedHost { name: "a".to_owned(), host: remote(spec, binaries) };
    fleet.inside(|| Watched::open(&[named]).await_opened(0));
    assert!(fleet.place.path().join(format!("another directory/bin/linerate-{SHA256}")).exists());
}

#[test]
fn a_host_that_dies_and_one_that_hangs_are_lost_by_themselves() {
    let Some(fleet) = fleet(3, "") else { return };
    let hosts: Vec<_> = (0..3).map(|n| host(&fleet.place, fleet.spec(n))).collect();
    fleet.inside(|| {
        let mut watched = Watched::open(&hosts);
        let tasks: Vec<u32> = (0..3)
            .map(|host| {
                watched.await_opened(host);
                let task = watched.start(host, &["idle"]);
                watched.await_started(task);
                task
            })
            .collect();
        let agent = |host: usize| {
            let name = fleet.path(&format!("home-{host}/"));
            let found = fleet.place.processes();
            let agents = found.iter().filter(|(_, line)| line.ends_with(" agent "));
            *agents.filter(|(_, line)| line.starts_with(&name)).map(|(pid, _)| pid).next().unwrap()
        };
        signal(agent(0), Signal::KILL);
        let hung = agent(1);
        signal(hung, Signal::STOP);
        let (error, lost) = watched.await_lost(0);
        assert_eq!((lost, error.kind), (vec![tasks[0]], dead()), "{}", error.said);
        let (error, lost) = watched.await_lost(1);
        assert_eq!(lost, [tasks[1]]);
        assert!(error.to_string().contains("nothing was heard for 5 s"), "{error}");
        signal(hung, Signal::CONT);
        // The third goes on, with what it is told.
        let task = watched
            .session
            .start(2, StartTask { argv: vec!["say".to_owned()], ..StartTask::default() });
        assert_eq!(watched.await_ended(task).code, Some(7));
    });
    await_no_agent(&fleet);
}

fn dead() -> HostErrorKind {
    HostErrorKind::Channel(linerate_lab::agent::Failure::Ended)
}

#[test]
fn nothing_is_left_on_four_hosts_of_a_controller_that_is_cut_off() {
    let Some(fleet) = fleet(4, NOISY) else { return };
    let hosts: Vec<_> = (0..4).map(|n| host(&fleet.place, fleet.spec(n))).collect();
    fleet.inside(|| {
        let mut watched = Watched::open(&hosts);
        for host in 0..4 {
            watched.await_opened(host);
            let task = watched.start(host, &["idle"]);
            watched.await_started(task);
        }
        fleet.cut();
        for host in 0..4 {
            let error = watched.await_lost(host).0.to_string();
            assert!(error.contains("nothing was heard for 5 s"), "{} {error}", address(host));
        }
    });
    await_no_agent(&fleet);
}

/// Waits until no agent and no child of one is left on any host; the daemons stay.
#[track_caller]
fn await_no_agent(fleet: &Fleet) {
    let until = std::time::Instant::now() + crate::process::PATIENCE;
    loop {
        let mut left = fleet.place.processes();
        left.retain(|_, line| line.contains("linerate-aaaa"));
        if left.is_empty() {
            return;
        }
        assert!(std::time::Instant::now() < until, "still there: {left:?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
